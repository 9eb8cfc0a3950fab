"""A checker of the lock rules that reads nothing but the events, and knows no table: LCK-2, LCK-3 and LCK-4.

The law: a plain list of unreleased runs, looked through from its head at every event.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from concorde_trio import events as ev


@attrs.define
class Taken:
    """A run in the list: waiting, running, or held."""

    run_id: str
    signal_id: str
    locks: frozenset[tuple[str, str]]
    state: str = "waiting"


@attrs.define
class LockChecker:
    """``holding``: the kinds whose handler has a post phase. ``max_running``: that of the worker."""

    holding: frozenset[str] = frozenset({"held", "again"})
    max_running: int | None = None
    runs: list[Taken] = attrs.field(factory=list)
    kinds: dict[str, str] = attrs.field(factory=dict)
    stopping: bool = False
    started: list[str] = attrs.field(factory=list)

    def check(self, events: Iterable[ev.Event]) -> LockChecker:
        """AssertionError, naming the event, where a rule is broken."""
        last: float | None = None
        for event in events:
            if last is not None and event.at > last:
                self.nothing_could_start(event)
            last = event.at
            self.take(event)
        self.nothing_could_start(None)
        return self

    def take(self, event: ev.Event) -> None:
        match event:
            case ev.SignalClaimed():
                self.kinds[event.signal_id] = event.kind
            case ev.RunQueued():
                locks = {("session", event.session), *(("resource", name) for name in event.resources)}
                self.runs.append(Taken(event.run_id, event.signal_id, frozenset(locks)))
            case ev.RunStarted():
                run = self.find(event.run_id)
                assert run.state == "waiting", f"{event} started twice"
                assert not self.blockers(run), f"{event} overtook {self.blockers(run)}"
                assert not self.full(), f"{event} is one more than max_running"
                run.state = "running"
                self.started.append(run.run_id)
            case ev.RunEnded():
                run = self.find(event.run_id)
                if event.started and self.kinds[run.signal_id] in self.holding:
                    run.state = "held"
                else:
                    self.runs.remove(run)
            case ev.SignalSettled():
                assert all(run.state == "held" for run in self.runs if run.signal_id == event.signal_id)
                self.runs = [run for run in self.runs if run.signal_id != event.signal_id]
            case ev.WorkerStopping():
                self.stopping = self.stopping or event.mode != "drain"

    def find(self, run_id: str) -> Taken:
        return next(run for run in self.runs if run.run_id == run_id)

    def blockers(self, run: Taken) -> list[Taken]:
        """The unreleased runs before it that share a lock; not the held ones of its own signal (LCK-4)."""
        before = self.runs[: self.runs.index(run)]
        return [
            other
            for other in before
            if other.locks & run.locks and not (other.state == "held" and other.signal_id == run.signal_id)
        ]

    def full(self) -> bool:
        running = sum(run.state == "running" for run in self.runs)
        return self.max_running is not None and running >= self.max_running

    def nothing_could_start(self, event: ev.Event | None) -> None:
        """LCK-2: a run starts as soon as it may; so none is left that could, when time goes on."""
        if self.stopping or self.full():
            return
        could = [run for run in self.runs if run.state == "waiting" and not self.blockers(run)]
        assert not could, f"before {event}: {could} may start and did not"

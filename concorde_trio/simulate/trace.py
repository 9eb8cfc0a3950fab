"""What happened in a play, from the worker's events, and the result that is printed of it.

The law of this module: everything in a result was told by an event or to a post phase; nothing is worked out here.
"""

from __future__ import annotations

from typing import Any

import attrs

from concorde_trio import events
from concorde_trio.errors import InternalError
from concorde_trio.records import PostOutcome, RunState, SignalState
from concorde_trio.simulate.scenario import SignalScenario
from concorde_trio.simulate.ticks import Ticks


@attrs.define
class _Run:
    state: RunState = RunState.PENDING
    queued: float | None = None
    started: float | None = None
    ended: float | None = None


@attrs.define
class _Signal:
    state: SignalState = SignalState.PENDING
    settled: float | None = None
    post: tuple[float, PostOutcome] | None = None
    queued: int = 0


class Trace:
    """Listens to one worker. Ids are those of the scenario; times are ticks until ``result``."""

    def __init__(self, scenario: SignalScenario) -> None:
        self._scenario = scenario
        self._prompts = {signal.id: signal.prompts for signal in scenario.signals}
        self._signals = {signal.id: _Signal() for signal in scenario.signals}
        self._runs: dict[str, _Run] = {}
        self._start_order: list[str] = []
        self._signal_ids: dict[str, str] = {}
        self._run_ids: dict[str, str] = {}
        self.open = len(scenario.signals)
        """How many signals are neither done nor failed."""
        self.fresh_sessions: dict[str, str] = {}
        """By what a scenario calls a fresh session, its real name (LCK-1)."""

    def emitted(self, signal: str, signal_id: str) -> None:
        """The scenario's ``signal`` is in the queue under this id."""
        self._signal_ids[signal_id] = signal

    def post_called(self, signal: str, outcome: PostOutcome, now: float) -> None:
        """The post phase of the scenario's ``signal`` began, and was told this."""
        self._signals[signal].post = (now, outcome)

    def unsettled(self) -> list[str]:
        """The scenario's ids of the signals that are neither done nor failed."""
        return [name for name, signal in self._signals.items() if signal.settled is None]

    def note(self, event: events.Event) -> None:
        """Take in one event of the worker."""
        match event:
            case events.SignalClaimed(signal_id=signal_id):
                self._signals[self._signal_ids[signal_id]].state = SignalState.PROCESSING
            case events.RunQueued():
                self._queued(event)
            case events.RunStarted(at=at, run_id=run_id):
                run = self._runs[self._run_ids[run_id]]
                run.state, run.started = RunState.RUNNING, at
                self._start_order.append(self._run_ids[run_id])
            case events.RunEnded(at=at, run_id=run_id, state=state):
                run = self._runs[self._run_ids[run_id]]
                run.state, run.ended = state, at
            case events.SignalSettled(at=at, signal_id=signal_id, state=settled):
                signal = self._signals[self._signal_ids[signal_id]]
                signal.state, signal.settled = settled, at
                self.open -= 1
            case _:
                pass

    def _queued(self, event: events.RunQueued) -> None:
        # The runs of a signal are queued together, in the order of its prompts.
        name = self._signal_ids[event.signal_id]
        signal = self._signals[name]
        prompt = self._prompts[name][signal.queued]
        signal.queued += 1
        self._run_ids[event.run_id] = prompt.id
        self._runs[prompt.id] = _Run(queued=event.at)
        if prompt.session is None:
            self.fresh_sessions[f"run_{prompt.id}"] = event.session

    def result(self, ticks: Ticks) -> dict[str, Any]:
        """The result as JSON: ``runs`` and ``signals`` by id, in file order, and ``start_order``. Times in seconds."""

        def seconds(at: float | None) -> float | None:
            return None if at is None else ticks.seconds(at)

        runs: dict[str, Any] = {}
        for prompt in self._scenario.prompts():
            run = self._runs.get(prompt.id)
            if run is not None:
                runs[prompt.id] = {
                    "state": run.state.value,
                    "queued": seconds(run.queued),
                    "started": seconds(run.started),
                    "ended": seconds(run.ended),
                }
        signals: dict[str, Any] = {}
        for name, signal in self._signals.items():
            post = None
            if signal.post is not None:
                started, outcome = signal.post
                post = {"started": seconds(started), "failed": outcome.failed, "limited": outcome.limited}
            signals[name] = {"state": signal.state.value, "settled": seconds(signal.settled), "post": post}
        if len(runs) != len(self._runs):
            raise InternalError("a run was queued that no prompt of the scenario asked for; please report this")
        return {"runs": runs, "signals": signals, "start_order": list(self._start_order)}

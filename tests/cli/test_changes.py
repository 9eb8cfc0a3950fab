"""What ``--follow`` tells: each change once, whatever was missed, against what the rows have gone through."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from concorde_trio._sansio.reports import Inbox, Step
from concorde_trio.cli.changes import REMEMBERED, Changes, RunChanges, SignalChanges
from concorde_trio.signals.documents import run_document, signal_document
from tests.sansio.test_dispatch_machine import DispatcherMachine

WHERE = {"signal_id": None, "session": None, "resource": None}


class Followed(DispatcherMachine):
    """The dispatcher's machine, with somebody who hears of it, is away for a while, and reads the lists again."""

    def boot(self, asked: Inbox) -> None:
        """Who followed hears nothing until it has read the lists."""
        self.log: list[dict[str, Any]] = []
        self.away = True
        if not hasattr(self, "runs"):
            self.runs, self.signals = RunChanges(WHERE), SignalChanges({"kind": None})
            self.said: dict[str, list[str]] = {}
        super().boot(asked)

    def carry_out(self, step: Step) -> None:
        """What the step tells is heard, unless nobody is there."""
        super().carry_out(step)
        for event in step.events:
            self.log.append(event.as_json())
            if not self.away:
                self.hear(self.log[-1])

    def hear(self, event: dict[str, Any]) -> None:
        for changes in (self.runs, self.signals):
            self.tell(list(changes.hear(event["event"], event, "boot-1")))

    def tell(self, changes: list[dict[str, Any]]) -> None:
        for change in changes:
            self.said.setdefault(change.get("run_id") or change["signal_id"], []).append(change["event"])

    def read(self, changes: Changes, listed: list[dict[str, Any]], whole: bool) -> None:
        floor = changes.floor(whole=whole)
        for row in sorted(listed, key=changes.place):
            if changes.place(row) >= floor:
                self.tell(list(changes.read(row)))

    @rule()
    def leave(self) -> None:
        """The connection is gone."""
        self.away = True

    @rule(data=st.data())
    def come_back(self, data: st.DataObject) -> None:
        """Everything is read that may have changed; what happened just before is heard, though it is in the lists."""
        self.read_lists(whole=True)
        self.away = False
        for event in self.log[data.draw(st.integers(0, len(self.log))) :]:
            self.hear(event)

    @rule()
    def look_for_new_ones(self) -> None:
        """Nobody is told that a signal was emitted."""
        if not self.away:
            self.read(self.signals, [signal_document(each, mask) for each in self.rows.signals.values()], False)

    def read_lists(self, *, whole: bool) -> None:
        self.read(self.runs, [run_document(each, mask) for each in self.rows.runs.values()], whole)
        self.read(self.signals, [signal_document(each, mask) for each in self.rows.signals.values()], whole)

    @invariant()
    def each_change_was_told_once(self) -> None:
        """SRV-4: what the rows went through, in order; nothing of it twice."""
        if not hasattr(self, "core") or self.away:
            return
        for run in self.rows.runs.values():
            gone = (
                ["RunQueued"]
                + ["RunStarted"] * (run.started_at is not None)
                + ["RunEnded"] * (run.ended_at is not None)
            )
            assert [each for each in self.said[run.id] if each != "RunStopping"] == gone
        for signal in self.rows.signals.values():
            claimed, settled = signal.claimed_at is not None, signal.settled_at is not None
            told = self.said.get(signal.id, [])
            assert told in (
                ["SignalClaimed"] * claimed + ["SignalSettled"] * settled,
                ["SignalEmitted"] + ["SignalClaimed"] * claimed + ["SignalSettled"] * settled,
            )


def mask(value: Any) -> Any:
    return value


TestChanges = Followed.TestCase
TestChanges.settings = settings(stateful_step_count=20, max_examples=25)


def row(number: int, state: str = "pending", **more: Any) -> dict[str, Any]:
    """A listed run."""
    known = {"id": f"r{number}", "signal_id": "s", "session": "ann", "resources": ["till"], "position": number}
    moments = {"queued_at": 1.0, "started_at": None if state == "pending" else 2.0, "ended_at": None}
    return {**known, "state": state, "stopping": None, "error": None, **moments, **more}


def test_what_was_over_at_the_beginning_is_no_news() -> None:
    """SRV-4: a list is read far down for an old run that waits, and what it passes has been told before."""
    changes = RunChanges(WHERE)
    for known in (row(9, "done", ended_at=3.0), row(2)):
        changes.learn(known)
    assert changes.floor(whole=True) == 2 and changes.floor(whole=False) == 10
    told = [
        change for each in (row(2, "running"), row(5, "done", ended_at=3.0), row(10)) for change in changes.read(each)
    ]
    assert [(change["event"], change["run_id"]) for change in told] == [("RunStarted", "r2"), ("RunQueued", "r10")]
    assert all(change["id"] is None for change in told)


def test_a_filter_passes_what_it_names_and_no_other() -> None:
    """SRV-2: by session, signal and resource; an event of a run that the filter does not know is passed over."""
    for where in ({"session": "ann"}, {"signal_id": "s"}, {"resource": "till"}):
        changes = RunChanges(where)
        other = row(1, session="bob", signal_id="t", resources=[])
        assert len(list(changes.read(row(2)))) == 1 and not list(changes.read(other | {"position": 3, "id": "r3"}))
        event = {"at": 2.0, "run_id": "r2", "signal_id": "s", "session": "ann"}
        assert len(list(changes.hear("RunStarted", event, "b-1"))) == 1
        other = {**event, "run_id": "r3", "signal_id": "t", "session": "bob"}
        assert not list(changes.hear("RunStarted", other, "b-2"))
        queued = {**event, "run_id": "r4", "resources": ["till"]}
        assert len(list(changes.hear("RunQueued", queued, "b-3"))) == 1


def test_what_is_over_is_forgotten_in_the_end() -> None:
    """Who follows for weeks keeps what is in hand, and no more of what is over than events may still tell of."""
    changes = SignalChanges({"kind": None})
    for number in range(REMEMBERED + 10):
        event = {"at": 1.0, "signal_id": f"s{number}", "kind": "mail", "state": "done", "error": None}
        assert len(list(changes.hear("SignalSettled", event, "b-1"))) == 1
    assert changes.known("s0") == {} and changes.known(f"s{REMEMBERED}")


def test_prompts_and_payloads_are_not_remembered() -> None:
    """Ten thousand waiting runs may have a prompt of a megabyte each."""
    changes = RunChanges(WHERE)
    changes.learn(row(1, prompt="long" * 1000))
    assert "prompt" not in changes.known("r1") and changes.known("r1")["session"] == "ann"

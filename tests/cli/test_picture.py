"""What ``top`` knows: a snapshot and the events after it, against what the worker says of itself."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from concorde_trio._sansio.reports import Inbox, Step
from concorde_trio.cli.picture import Picture
from concorde_trio.signals.in_hand import InHand, pending_row
from tests.sansio.test_dispatch_machine import DispatcherMachine

EMPTY: dict[str, Any] = {
    "id": "boot-0",
    "at": 1.0,
    "worker": {"status": "running", "stop_mode": None, "last_error": None},
    **{part: [] for part in ("signals", "pending", "runs", "sessions", "locks")},
    **{f"more_{part}": 0 for part in ("signals", "pending", "runs", "sessions", "locks")},
}


class Watched(DispatcherMachine):
    """The dispatcher's machine, with somebody who follows what it tells, over restarts."""

    def boot(self, asked: Inbox) -> None:
        """A worker starts; whoever followed is told to begin anew."""
        self.boots = getattr(self, "boots", 0) + 1
        self.log: list[dict[str, Any]] = []
        self.picture = getattr(self, "picture", Picture())
        super().boot(asked)
        self.picture.begin(self.snapshot(0))

    def carry_out(self, step: Step) -> None:
        """What the step tells is heard at once."""
        super().carry_out(step)
        for event in step.events:
            self.log.append(event.as_json())
            self.picture.take(f"boot{self.boots}-{len(self.log)}", event.name, event.as_json())

    def snapshot(self, number: int) -> dict[str, Any]:
        """What is true now, as of this event or a later one."""
        hand = InHand(self.core, lambda run_id: None)
        return {
            **EMPTY,
            "id": f"boot{self.boots}-{number}",
            "signals": [hand.signal_row(each) for each in hand.signals()],
            "pending": [pending_row(each) for each in self.rows.pending()],
            "runs": hand.run_rows(hand.runs()),
        }

    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        """A snapshot is asked for; what it says is newer than its id, and it comes a while later."""
        self.asked = self.snapshot(data.draw(st.integers(0, len(self.log))))

    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        """The snapshot comes, and perhaps some events a second time. One of an earlier worker is thrown away."""
        asked, self.asked = getattr(self, "asked", None), None
        if asked is None or not asked["id"].startswith(f"boot{self.boots}-"):
            return
        self.picture.begin(asked)
        again = data.draw(st.integers(0, len(self.log))) if data.draw(st.booleans()) else len(self.log)
        for at in range(again, len(self.log)):
            event = self.log[at]
            self.picture.take(f"boot{self.boots}-{at + 1}", event["event"], event)

    @invariant()
    def what_was_followed_is_what_a_snapshot_says(self) -> None:
        """SRV-4: runs that wait or run, and signals in hand, are the same; of what ended only a snapshot knows more."""
        if not hasattr(self, "core"):
            return
        later = Picture()
        later.begin(self.snapshot(len(self.log)))
        here, there = self.picture, later
        for states in (("waiting", "ready"), ("running",)):
            assert shown(here, *states) == shown(there, *states)
        assert shown(there, "held").items() <= shown(here, "held", "ended").items()
        assert {run["signal_id"] for run in here.runs.values()} <= here.signals.keys()
        # That the handle of a repeatable handler is being called is told when it is over.
        known = {signal["id"] for signal in there.signals.values() if signal["phase"] != "handling"}
        assert known <= here.signals.keys() <= there.signals.keys()
        assert posting(here) == posting(there)
        assert {run["kind"] for run in here.runs.values() if run["state"] != "ended"} <= {
            signal["kind"] for signal in there.signals.values()
        }


def shown(picture: Picture, *states: str) -> dict[str, tuple[Any, ...]]:
    return {
        run["id"]: (run["signal_id"], run["session"], run["started_at"])
        for run in picture.runs.values()
        if run["state"] in states
    }


def posting(picture: Picture) -> set[str]:
    return {signal["id"] for signal in picture.signals.values() if signal["phase"] == "posting"}


TestPicture = Watched.TestCase
TestPicture.settings = settings(stateful_step_count=20, max_examples=30)


def event(name: str, run_id: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """An event about a run of signal s."""
    return name, {"event": name, "at": 2.0, "run_id": run_id, "signal_id": "s", "session": "ann", **more}


def test_what_was_heard_after_a_snapshot_was_asked_for_is_told_to_it_again() -> None:
    """SRV-4: it is as of an event, and may come after others were heard."""
    picture = Picture()
    picture.begin(EMPTY)
    assert picture.take("boot-1", *event("RunQueued", "r1", resources=["till"])) and picture.stale
    picture.begin(EMPTY)
    assert picture.runs["r1"]["state"] == "waiting" and picture.runs["r1"]["resources"] == ["till"]
    picture.begin({**EMPTY, "id": "boot-1"})
    assert not picture.runs and not picture.take("boot-1", *event("RunQueued", "r1", resources=[]))
    assert not picture.runs and not picture.stale


def test_an_event_of_another_start_tells_nothing_but_that_it_is_time_to_look() -> None:
    """SRV-4: numbers of two starts are not compared."""
    picture = Picture()
    picture.begin({**EMPTY, "id": "boot-5"})
    assert not picture.take("other-9", *event("RunQueued", "r1", resources=[])) and not picture.runs
    assert picture.stale


def test_a_run_that_may_start_starts_and_one_that_is_stopped_is_seen_to_be() -> None:
    """LCK-3, RUN-6: from ready to running, told to stop, ended, and gone with its signal."""
    picture = Picture()
    picture.begin(EMPTY)
    picture.take("boot-1", *event("RunQueued", "r1", resources=[]))
    picture.runs["r1"]["state"] = "ready"
    picture.take("boot-2", *event("RunStarted", "r1"))
    picture.take("boot-3", *event("RunStopping", "r1", reason="an operator asked"))
    assert picture.runs["r1"]["state"] == "running" and picture.runs["r1"]["stopping_since"] == 2.0
    picture.take("boot-4", *event("RunEnded", "r1", state="cancelled", error="by an operator", started=True))
    assert picture.runs["r1"]["state"] == "ended" and picture.runs["r1"]["outcome"] == "cancelled"
    settled = {"event": "SignalSettled", "at": 3.0, "signal_id": "s", "kind": "k", "state": "failed", "error": "x"}
    picture.take("boot-5", "SignalSettled", settled)
    assert not picture.runs and not picture.signals


def test_sessions_and_the_worker_come_and_go_by_events() -> None:
    """SES-19, STP-1: what they wait on only a snapshot tells."""
    picture = Picture()
    picture.begin(EMPTY)
    loaded = {"event": "SessionLoaded", "at": 2.0, "session": "ann", "messages": 0, "queued": 2, "repaired": 0}
    picture.take("boot-1", "SessionLoaded", loaded)
    assert picture.sessions["ann"]["queued"] == 2 and picture.sessions["ann"]["waiting_on"] is None
    picture.take("boot-2", "SessionUnloaded", {"event": "SessionUnloaded", "at": 2.0, "session": "ann"})
    picture.take("boot-3", "WorkerStopping", {"event": "WorkerStopping", "at": 2.0, "mode": "drain"})
    assert not picture.sessions and picture.worker["status"] == "stopping" and picture.worker["stop_mode"] == "drain"
    picture.take("boot-4", "WorkerStopped", {"event": "WorkerStopped", "at": 2.0})
    assert picture.worker["status"] == "stopped"

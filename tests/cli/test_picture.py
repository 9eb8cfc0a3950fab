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
TestPicture.settings = settings(stateful_step_count=20, max_examples=60)

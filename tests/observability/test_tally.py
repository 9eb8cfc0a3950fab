"""What is counted of a worker's events, and that it stays bounded whatever happens."""

from __future__ import annotations

from typing import Any

from concorde_trio import events
from concorde_trio.messages import CallOutcome
from concorde_trio.observability.tally import MOST_KINDS, OTHER, Histogram, Tally
from concorde_trio.records import RunState, SignalState


def queued(run_id: str, at: float) -> events.RunQueued:
    return events.RunQueued(at=at, run_id=run_id, signal_id="s", session=run_id, resources=())


def started(run_id: str, at: float) -> events.RunStarted:
    return events.RunStarted(at=at, run_id=run_id, signal_id="s", session=run_id)


def ended(run_id: str, at: float, state: RunState = RunState.DONE) -> events.RunEnded:
    return events.RunEnded(at=at, run_id=run_id, signal_id="s", session=run_id, state=state, error=None, started=True)


def test_a_histogram_counts_each_value_under_the_bounds_it_does_not_pass() -> None:
    """SRV-7: a bound itself counts as below; what is above all of them only in the last."""
    histogram = Histogram((1, 5))
    for value in (0.5, 1, 1.5, 5, 7):
        histogram.add(value)
    assert histogram.cumulative() == [("1.0", 2), ("5.0", 4), ("+Inf", 5)]
    assert histogram.total == 15


def test_waits_and_lengths_of_runs_are_between_their_events() -> None:
    """SRV-7: also of runs that never started, or were queued by an earlier worker; nothing is kept of those that ended."""
    tally = Tally()
    for event in (queued("a", 10), queued("b", 10), started("a", 12), ended("a", 15), started("c", 20), ended("c", 21)):
        tally(event)
    tally(events.RunEnded(**{**_fields(ended("b", 30, RunState.CANCELLED)), "started": False}))
    assert (tally.waited.total, sum(tally.waited.counts)) == (2, 1)
    assert (tally.lasted.total, sum(tally.lasted.counts)) == (4, 2)
    assert tally.ended == {"done": 2, "cancelled": 1}
    assert not tally._queued
    assert not tally._started


def test_kinds_are_counted_by_name_up_to_a_bound() -> None:
    """SRV-7: who chooses the names of kinds cannot fill a memory with them."""
    tally = Tally()
    for number in range(MOST_KINDS + 50):
        tally(events.SignalClaimed(at=0, signal_id=f"s{number}", kind=f"k{number}"))
        tally(
            events.SignalSettled(at=0, signal_id=f"s{number}", kind=f"k{number}", state=SignalState.FAILED, error="no")
        )
    assert len(tally.claimed) == len(tally.settled) == MOST_KINDS + 1
    assert tally.claimed[OTHER] == tally.settled[OTHER, "failed"] == 50
    assert tally.claimed["k0"] == 1


def test_every_event_can_be_counted_and_names_no_session() -> None:
    """SRV-7: whatever is told, and however often, nothing that is counted under has a name of anybody's."""
    tally = Tally()
    secret = "a-session-or-call"
    samples: dict[str, Any] = {
        "at": 1.0,
        "state": RunState.DONE,
        "outcome": CallOutcome.OK,
        "seconds": 2.0,
        "what": "llm",
        "reason": "ceiling",
        "purpose": "turn",
        "kind": "jobs",
        "resources": (),
    }
    classes = [each for each in vars(events).values() if isinstance(each, type) and issubclass(each, events.Event)]
    for each in classes:
        names = [field.name for field in each.__attrs_attrs__]
        tally(each(**{name: samples.get(name, secret) for name in names}))
    assert secret not in repr(vars(tally)).replace(f"'{secret}': 1.0", "")
    assert tally.blocked == {"handler": 1, "loop": 1}
    assert tally.blocked_seconds == {"handler": 2.0, "loop": 2.0}
    assert tally.expired == {("llm", "ceiling"): 1}


def _fields(event: Any) -> dict[str, Any]:
    return {field.name: getattr(event, field.name) for field in event.__attrs_attrs__}

"""The log of events: numbers, what is kept, and what a reader that comes back is given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio._sansio.event_log import NOT_KEPT, UNKNOWN_BOOT, EventFilter, EventLog, Lost, event_names
from concorde_trio.events import Event, RunEnded, RunStarted, SignalClaimed, TurnStarted, WorkerStopped
from concorde_trio.records import RunState


def started(number: int = 1, session: str = "ann") -> RunStarted:
    """An event of a run."""
    return RunStarted(at=float(number), run_id=f"s{number}-1", signal_id=f"s{number}", session=session)


def filled(count: int, size: int = 10) -> EventLog:
    """A log in which so many events were written."""
    log = EventLog("boot1", size)
    for number in range(1, count + 1):
        log.append(started(number))
    return log


@given(count=st.integers(0, 50), size=st.integers(1, 20), after=st.integers(0, 60))
def test_who_comes_back_gets_each_event_after_the_last_one_seen_or_is_told_that_some_are_lost(
    count: int, size: int, after: int
) -> None:
    """SRV-4: against a list of everything."""
    log = filled(count, size)
    place = log.place(f"boot1-{after}")
    if after > count:
        assert place == Lost(UNKNOWN_BOOT)
    elif count - after > size:
        assert place == Lost(NOT_KEPT)
        assert log.lost(after)
    else:
        assert place == after
        found = list(log.entries(after, log.last))
        assert [entry.number for entry in found] == list(range(after + 1, count + 1))
        assert [entry.event.at for entry in found] == [float(number) for number in range(after + 1, count + 1)]


@pytest.mark.parametrize(
    "given_id",
    [
        "",
        "5",
        "boot1",
        "boot1-",
        "-5",
        "boot2-5",
        "BOOT1-5",
        "boot1-5 ",
        " boot1-5",
        "boot1-5\n",
        "boot1-5\r\nevil: 1",
        "boot1--5",
        "boot1-+5",
        "boot1-5.0",
        "boot1-5e3",
        "boot1-\u0665",
        "boot1-" + "9" * 15,
        "boot1-" + "9" * 100_000,
        "x" * 100_000,
        "boot1-5\x00",
        "\ufffd\udc80",
        "null",
    ],
)
def test_an_id_that_is_none_of_this_start_is_an_unknown_one(given_id: str) -> None:
    """SRV-4: whatever a client sends as Last-Event-ID leads to a reset, and to nothing else."""
    assert filled(8).place(given_id) == Lost(UNKNOWN_BOOT)


@given(st.text())
def test_no_text_at_all_is_taken_for_an_id_by_mistake(text: str) -> None:
    """SRV-4: the only ids are those that were given out."""
    log = filled(8)
    place = log.place(text)
    assert isinstance(place, Lost) or text.removeprefix("boot1-").lstrip("0") in (str(place), "" if not place else "-")


def test_a_filter_lets_through_what_names_all_that_it_asks_for() -> None:
    """SRV-4: an event that has no such field does not pass."""
    ended = RunEnded(
        at=1.0, run_id="s1-1", signal_id="s1", session="ann", state=RunState.DONE, error=None, started=True
    )
    claimed = SignalClaimed(at=1.0, signal_id="s1", kind="mail")
    turn = TurnStarted(at=1.0, session="ann", turn=1, input_ids=())
    everything: list[Event] = [started(1), started(2, "bob"), ended, claimed, turn, WorkerStopped(at=1.0)]

    def passing(**asked: object) -> list[str]:
        return [event.name for event in everything if EventFilter(**asked).passes(event)]  # type: ignore[arg-type]

    assert passing() == [event.name for event in everything]
    assert EventFilter().all and not EventFilter(session="ann").all
    assert passing(kinds=frozenset({"RunEnded", "WorkerStopped"})) == ["RunEnded", "WorkerStopped"]
    assert passing(session="ann") == ["RunStarted", "RunEnded", "TurnStarted"]
    assert passing(signal_id="s1") == ["RunStarted", "RunEnded", "SignalClaimed"]
    assert passing(run_id="s1-1", session="ann", kinds=frozenset({"RunEnded"})) == ["RunEnded"]
    assert passing(session="ann", signal_id="s2") == []


def test_an_event_that_a_user_defines_is_known_by_its_name() -> None:
    """SRV-4: runtimes may publish events of their own."""

    class DoorOpened(Event):
        """Of the user's."""

    names = event_names()
    assert "DoorOpened" in names and "RunStarted" in names and "InputAccepted" in names
    assert "Event" not in names and "SessionEvent" not in names

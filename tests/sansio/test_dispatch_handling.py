"""The dispatcher hands out signals to one handling task, which says itself when it is free."""

from __future__ import annotations

from concorde_trio._sansio.dispatch import Dispatcher
from concorde_trio._sansio.reports import Handled, Inbox, KindInfo
from concorde_trio.records import Prompt, SignalRecord, SignalState


def _pending(seq: int) -> SignalRecord:
    return SignalRecord(
        id=f"s{seq}", seq=seq, kind="task", payload=None, state=SignalState.PENDING, emitted_at=float(seq)
    )


def test_nothing_is_handed_out_before_the_handling_task_says_that_it_is_free() -> None:
    """CLM-1: one at a time. All that was given out is handled, but the task that handled it may not have returned."""
    dispatcher = Dispatcher({"task": KindInfo(holds=False, repeatable=True)})
    dispatcher.offer([_pending(1), _pending(2)])
    given = dispatcher.step(Inbox(), 0.0).handle
    assert [signal.id for signal in given] == ["s1", "s2"]
    dispatcher.offer([_pending(3)])

    handled = [Handled(signal, (Prompt(text="work", session=signal.id),)) for signal in given]
    assert dispatcher.step(Inbox(handled=handled), 1.0).handle == ()
    assert [signal.id for signal in dispatcher.step(Inbox(unhandled=[]), 2.0).handle] == ["s3"]


def test_a_signal_that_is_being_handled_is_not_offered_again() -> None:
    """CLM-6: the store still shows it as pending, for its claim is committed with its runs."""
    dispatcher = Dispatcher({"task": KindInfo(holds=False, repeatable=True)})
    assert dispatcher.offer([_pending(1)]) == [_pending(1)]
    dispatcher.step(Inbox(), 0.0)
    assert dispatcher.offer([_pending(1), _pending(2)]) == [_pending(2)]

"""The input queue, rule by rule, and what has gone wrong elsewhere by number."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from concorde_trio._sansio.input_queue import Delivery, InputQueue, Ledger, Receipt
from concorde_trio.errors import InputConflict, UsageError, WrongState
from concorde_trio.messages import Input, InputState


def said(input_id: str, text: str | None = None, **fields: Any) -> Input:
    return Input(id=input_id, text=f"text of {input_id}" if text is None else text, **{"at": 0.0, **fields})


def queue_of(*ids: str, bound: int = 1000) -> InputQueue:
    queue = InputQueue(bound=bound)
    for input_id in ids:
        assert queue.submit(said(input_id)).accepted
    return queue


def ids(inputs: Any) -> list[str]:
    return [given.id for given in inputs]


def drained(queue: InputQueue) -> Delivery:
    delivery = queue.drain()
    assert delivery is not None
    return delivery


# --- order and coalescing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["hello", "", " \n spaces \r\n", "---", "a\n---\nb", "[Multiple inputs received while processing:]\nx"]
)
def test_a_single_queued_input_is_delivered_verbatim(text: str) -> None:
    """SES-10, F-22: byte for byte."""
    queue = InputQueue()
    queue.submit(said("i1", text))
    assert drained(queue).text == text
    assert queue.drain() is None


def test_several_inputs_become_one_message_in_order() -> None:
    """SES-10: coalescing, under the header, with a line between each."""
    queue = InputQueue()
    for input_id, text in (("i1", "b"), ("i2", "c"), ("i3", "d\ne")):
        queue.submit(said(input_id, text))
    assert drained(queue).text == "[Multiple inputs received while processing:]\nb\n---\nc\n---\nd\ne"
    assert len(queue) == 0


def test_the_order_is_that_of_arrival_and_never_that_of_times_or_ids() -> None:
    """SES-10: nothing is reordered, whatever wall clocks and senders say."""
    queue = InputQueue()
    for input_id, at in (("c", 3.0), ("a", 1.0), ("b", 3.0), ("d", -1.0)):
        queue.submit(said(input_id, at=at))
    assert ids(queue) == ids(drained(queue).inputs) == ["c", "a", "b", "d"]


def test_the_parts_of_a_message_stay_apart() -> None:
    """SES-10, F-22: two pictures and a question; each part keeps its sender, time, id and attachments."""
    first, second = object(), {"image": [1, 2]}
    inputs = (
        said("i1", "", sender="ann", at=1.0, attachments=(first,)),
        said("i2", "", sender="bob", at=2.0, attachments=[second]),
        said("i3", "what is this?", sender="ann", at=3.0),
    )
    queue = InputQueue()
    for given in inputs:
        queue.submit(given)
    delivery = drained(queue)
    assert delivery.inputs == inputs
    assert delivery.attachments == (first, second)
    assert delivery.attachments[0] is first
    assert delivery.text.endswith("\n---\nwhat is this?")
    assert [(part.id, part.sender, part.at) for part in delivery.inputs] == [
        ("i1", "ann", 1.0),
        ("i2", "bob", 2.0),
        ("i3", "ann", 3.0),
    ]


def test_parts_that_look_like_the_joint_can_still_be_told_apart() -> None:
    """SES-10, F-22: two lists of inputs that coalesce to the same text are not the same delivery."""
    one, other = InputQueue(), InputQueue()
    for text in ("a\n---\nb", "c"):
        one.submit(said(text, text))
    for text in ("a", "b\n---\nc"):
        other.submit(said(text, text))
    left, right = drained(one), drained(other)
    assert left.text == right.text
    assert [part.text for part in left.inputs] == ["a\n---\nb", "c"]
    assert [part.text for part in right.inputs] == ["a", "b\n---\nc"]


def test_what_comes_after_a_delivery_is_the_next_one() -> None:
    """SES-10: nothing is lost or repeated."""
    queue = queue_of("i1", "i2")
    assert ids(drained(queue).inputs) == ["i1", "i2"]
    queue.submit(said("i3"))
    assert drained(queue).text == "text of i3"
    assert queue.drain() is None


# --- looking first, so that the store can be written in between ---------------------------------------------


def test_an_input_is_in_the_queue_until_its_message_is_delivered() -> None:
    """SES-10a, F-21: ready changes nothing; after it, either nothing happened or all of it."""
    queue = queue_of("i1", "i2")
    seen = queue.ready()
    assert seen is not None and seen.text == "[Multiple inputs received while processing:]\ntext of i1\n---\ntext of i2"
    assert ids(queue) == ["i1", "i2"]
    assert queue.state("i1") is InputState.QUEUED
    assert queue.ready() == seen
    assert queue.drain(seen) is seen
    assert queue.state("i1") is InputState.DELIVERED
    assert queue.ready() is None


def test_what_came_after_the_look_stays_queued() -> None:
    """SES-10a: exactly what was stored is delivered."""
    queue = queue_of("i1")
    seen = queue.ready()
    queue.submit(said("i2"))
    assert queue.drain(seen) is seen
    assert ids(queue) == ["i2"]
    assert drained(queue).text == "text of i2"


def test_a_look_that_is_out_of_date_delivers_nothing() -> None:
    """SES-10a: one of its inputs was cancelled, or it was delivered before."""
    queue = queue_of("i1", "i2", "i3")
    seen = queue.ready()
    queue.cancel("i2")
    assert queue.drain(seen) is None
    assert ids(queue) == ["i1", "i3"]
    queue.cancel("i3")
    assert queue.drain(seen) is None
    assert ids(queue) == ["i1"]
    again = queue.ready()
    assert queue.drain(again) is again
    queue.submit(said("i4"))
    assert queue.drain(again) is None
    assert queue.drain(Delivery(())) is None
    assert queue.drain(Delivery((said("i4"),))) is None, "equal, but not the one that is queued"
    assert ids(queue) == ["i4"]


# --- receipts -----------------------------------------------------------------------------------------------


def test_an_accepted_input_has_a_receipt_and_its_repetition_has_the_same() -> None:
    """SES-10a: an id names one input, queued, delivered or cancelled, and whoever repeats it."""
    queue = InputQueue()
    receipt = queue.submit(said("i1", "x", at=1.0, sender="ann"))
    assert receipt == Receipt("i1", "accepted")
    assert queue.submit(said("i1", "x", at=9.0)) == receipt
    assert len(queue) == 1
    drained(queue)
    assert queue.submit(said("i1", "x")) == receipt
    queue.submit(said("i2", "x"))
    queue.cancel("i2")
    assert queue.submit(said("i2", "x")) == Receipt("i2", "accepted")
    assert len(queue) == 0
    assert queue.ledger == Ledger(accepted=2, delivered=1, cancelled=1, queued=0)


def test_an_id_with_another_text_is_an_error() -> None:
    """SES-10a: and so with other attachments; nothing changes."""
    queue = InputQueue()
    queue.submit(said("i1", "x", attachments=["picture"]))
    for given in (said("i1", "y", attachments=["picture"]), said("i1", "x"), said("i1", "x", attachments=["other"])):
        with pytest.raises(InputConflict, match="'i1' was submitted before, with other text or attachments"):
            queue.submit(given)
    assert [part.text for part in drained(queue).inputs] == ["x"]
    with pytest.raises(InputConflict):
        queue.submit(said("i1", "y"))


def test_a_full_queue_refuses_and_says_why() -> None:
    """SES-10, SES-10a: what was rejected left no trace, so its sender may repeat it under its id."""
    queue = queue_of("i1", "i2", bound=2)
    receipt = queue.submit(said("i3"))
    assert (receipt.id, receipt.state, receipt.accepted) == ("i3", "rejected", False)
    assert receipt.reason is not None and "its queue holds 2" in receipt.reason
    assert queue.state("i3") is None
    assert ids(queue) == ["i1", "i2"]
    assert queue.submit(said("i1")).accepted, "a repetition takes no place"
    drained(queue)
    assert queue.submit(said("i3")).accepted


def test_the_answer_is_known_before_anything_is_stored() -> None:
    """SES-10a: an input is stored before it is accepted, and only if it will be."""
    queue = queue_of("i1", bound=2)
    assert queue.answer(said("i2")) is None
    assert ids(queue) == ["i1"]
    assert queue.answer(said("i1")) == Receipt("i1", "accepted")
    with pytest.raises(InputConflict):
        queue.answer(said("i1", "other"))
    queue.submit(said("i2"))
    answer = queue.answer(said("i3"))
    assert answer is not None and answer == queue.submit(said("i3"))
    assert not answer.accepted


def test_every_accepted_input_ends_once() -> None:
    """SES-10a: delivered or cancelled, and then neither again."""
    queue = queue_of("i1", "i2", "i3", "i4")
    cancelled = queue.cancel("i2")
    assert cancelled is not None and cancelled.text == "text of i2"
    assert queue.cancel("i2") is None
    assert queue.cancel("nobody") is None
    assert ids(drained(queue).inputs) == ["i1", "i3", "i4"]
    assert queue.cancel("i1") is None
    assert queue.cancel_all() == ()
    assert [queue.state(one) for one in ("i1", "i2", "i3", "nobody")] == ["delivered", "cancelled", "delivered", None]
    assert queue.ledger == Ledger(accepted=4, delivered=3, cancelled=1, queued=0)


def test_a_session_that_goes_cancels_what_waits_in_order() -> None:
    """SES-10a: held inputs too."""
    queue = queue_of("i1", "i2", "i3")
    queue.cancel("i1")
    queue.hold()
    assert ids(queue.cancel_all()) == ["i2", "i3"]
    assert queue.ledger == Ledger(accepted=3, delivered=0, cancelled=3, queued=0)
    assert not queue.held


def test_what_was_accepted_survives_a_crash() -> None:
    """SES-10a: in its order, beyond the bound if that became smaller, and its repetition is recognised."""
    queue = InputQueue(bound=1)
    queue.restore(said("i1"), InputState.DELIVERED)
    queue.restore(said("i2"))
    queue.restore(said("i3"), InputState.CANCELLED)
    queue.restore(said("i4"), InputState("queued"))
    assert ids(queue) == ["i2", "i4"]
    assert queue.ledger == Ledger(accepted=4, delivered=1, cancelled=1, queued=2)
    assert [queue.submit(said(one)) for one in ("i1", "i3", "i4")] == [
        Receipt("i1", "accepted"),
        Receipt("i3", "accepted"),
        Receipt("i4", "accepted"),
    ]
    assert not queue.submit(said("i5")).accepted
    with pytest.raises(WrongState, match="'i1' is known already, as delivered"):
        queue.restore(said("i1"))
    with pytest.raises(ValueError):
        queue.restore(said("i6"), "lost")  # type: ignore[arg-type]
    assert queue.state("i6") is None


def test_settled_inputs_can_be_forgotten_and_queued_ones_cannot() -> None:
    """SES-10a: the stored ledger answers for what is forgotten, and restore brings it back."""
    queue = queue_of("i1", "i2")
    queue.cancel("i1")
    for refused in (["i1", "i2"], ["i1", "nobody"]):
        with pytest.raises(WrongState, match="only settled inputs are forgotten"):
            queue.forget(refused)
    with pytest.raises(UsageError, match="not one string"):
        queue.forget("i1")
    assert queue.state("i1") is InputState.CANCELLED
    drained(queue)
    queue.forget(["i1", "i2", "i1"])
    assert queue.ledger == Ledger(accepted=0, delivered=0, cancelled=0, queued=0)
    queue.restore(said("i2"), InputState.DELIVERED)
    assert queue.submit(said("i2")).accepted
    assert len(queue) == 0


# --- hold_queue ---------------------------------------------------------------------------------------------


def test_a_held_queue_delivers_nothing_until_it_is_resumed() -> None:
    """SES-12: after an interrupt with hold_queue; a run or a person resumes it."""
    queue = queue_of("i1", "i2")
    assert queue.hold() is True
    assert queue.held
    assert queue.ready() is None and queue.drain() is None
    assert len(queue) == 2
    assert queue.resume() is True
    assert queue.resume() is False
    assert ids(drained(queue).inputs) == ["i1", "i2"]


def test_the_next_submit_ends_a_hold_and_joins_what_was_held() -> None:
    """SES-12: in order, as one message."""
    queue = queue_of("i1", "i2")
    queue.hold()
    queue.submit(said("i3"))
    assert ids(drained(queue).inputs) == ["i1", "i2", "i3"]


def test_a_submit_that_a_full_queue_refuses_ends_a_hold_too() -> None:
    """SES-12: or a full, held queue would wait for a submit that it does not let in."""
    queue = queue_of("i1", "i2", bound=2)
    queue.hold()
    assert not queue.submit(said("i3")).accepted
    assert ids(drained(queue).inputs) == ["i1", "i2"]


def test_a_repetition_does_not_end_a_hold() -> None:
    """SES-12, SES-10a: a client that sends again what it sent has said nothing new; nor has one in conflict."""
    queue = queue_of("i1")
    queue.hold()
    queue.submit(said("i1"))
    with pytest.raises(InputConflict):
        queue.submit(said("i1", "other"))
    assert queue.held


def test_an_empty_queue_is_not_held() -> None:
    """SES-12: what comes after an interrupt with nothing queued runs."""
    queue = queue_of()
    assert queue.hold() is False
    queue.submit(said("i1"))
    queue.hold()
    queue.cancel("i1")
    assert not queue.held
    queue.restore(said("i2"))
    assert queue.drain() is not None


# --- wrong arguments ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [0, -1, None, 1.5, True, "10"])
def test_a_queue_is_bounded(bound: Any) -> None:
    """SES-10: by a whole number of inputs."""
    with pytest.raises(UsageError, match="the bound of an input queue must be"):
        InputQueue(bound=bound)


def test_an_input_without_id_or_text_is_refused() -> None:
    """SES-10a: misuse is loud, and an input never changes."""
    no_id: Any
    for no_id in ("", None, 3):
        with pytest.raises(UsageError, match="the id of an Input must be"):
            said(no_id, "x")
    no_text: Any
    for no_text in (b"x", 3, ["x"]):
        with pytest.raises(UsageError, match="the text of an Input must be"):
            said("i1", no_text)
    with pytest.raises(UsageError, match=r"write \['picture'\]"):
        said("i1", attachments="picture")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        said("i1").text = "y"  # type: ignore[misc]

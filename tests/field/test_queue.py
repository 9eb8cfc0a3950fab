"""F-21 to F-23: what is accepted is delivered or cancelled, once, whatever happens at whatever moment."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
import trio

from concorde_trio._sansio.input_queue import HEADER
from concorde_trio.errors import InputConflict, WrongState
from concorde_trio.events import InputSettled, TurnEnded
from concorde_trio.messages import InputState
from tests.field.ledger import Crash, LedgerStore
from tests.field.stage import FieldModel, FieldTool, S, Scene, calls, fails, play, says, stage

BUSY = fails(503)


async def piece(scene: Scene) -> None:
    """A turn with a call and a back-off, two inputs that wait, one that is taken back."""
    await scene.say("one", id="i1")
    await trio.sleep_until(1.5)
    await scene.say("two", id="i2")
    await scene.say("three", id="i3")
    await scene.say("four", id="i4")
    with suppress(WrongState):  # it may have been delivered by then
        await scene.harness.cancel_input(S, "i3")
    await scene.idle()
    await scene.say("five", id="i5")
    await scene.idle()


def piece_model() -> FieldModel:
    return FieldModel(calls(("a", "work"), after=1), BUSY, then=says("so", after=1))


def crash_at(number: int, *, after: bool) -> bool:
    """Die at a commit, start again, send everything again that has no receipt. False if it never came to that commit."""
    store = LedgerStore()
    store.crash_at, store.after = number, after

    async def main() -> None:
        model = piece_model()
        with suppress(Crash):
            async with stage(model, FieldTool("work"), store=store) as scene:
                await piece(scene)
            return
        assert model.wrong == [] and store.dead
        store.revive()
        again = FieldModel(then=says("so", after=1))
        async with stage(again, FieldTool("work"), store=store) as scene:
            await trio.sleep(100)
            # A sender without a receipt sends again, under the same id.
            for input_id, text in (("i1", "one"), ("i2", "two"), ("i4", "four"), ("i5", "five")):
                await scene.say(text, id=input_id)
            await scene.idle()
            assert store.settled.items() >= dict.fromkeys(("i1", "i2", "i4", "i5"), InputState.DELIVERED).items()
            said = [each.id for message in await scene.messages() for each in message.inputs]
            assert said == sorted(said), "nothing is lost, repeated or reordered (SES-10)"

    play(main)
    return store.commits >= number > 0


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_no_input_is_lost_or_repeated_whatever_commit_the_process_dies_at(after: bool) -> None:
    """F-21, SES-10a, SES-17: before and after every commit of a piece; the ledger is judged at each of them."""
    store = LedgerStore()

    async def whole() -> None:
        async with stage(piece_model(), FieldTool("work"), store=store) as scene:
            await piece(scene)
            ends = [each.state for each in scene.told(InputSettled)]
            assert sorted(ends) == ["cancelled", *["delivered"] * 4]

    play(whole)
    for number in range(1, store.commits + 1):
        assert crash_at(number, after=after)


def test_an_interrupt_at_any_commit_leaves_each_input_in_the_queue_or_in_the_transcript() -> None:
    """F-21, SES-10a, SES-12: asked for while each commit of the piece is under way; everything is delivered in the end."""
    number = 1
    while _interrupt_at(number):
        number += 1
    assert number > 8


def _interrupt_at(wanted: int) -> bool:
    store = LedgerStore()

    async def main() -> None:
        async with trio.open_nursery() as nursery:

            async def hook(number: int, changes: Sequence[Any]) -> None:
                if number == wanted:
                    nursery.start_soon(scene.harness.interrupt, S)
                    await trio.sleep(0.1)

            model = FieldModel(calls(("a", "work"), after=1), BUSY, then=says("so", after=1))
            async with stage(model, FieldTool("work"), store=store) as scene:
                store.on_commit = hook
                await piece(scene)
                await trio.sleep(100)
                await scene.idle()
                assert all(store.settled[each] is InputState.DELIVERED for each in ("i1", "i2", "i4", "i5"))

    play(main)
    return store.commits >= wanted


def test_a_turn_that_fails_has_delivered_what_it_took_and_leaves_the_rest_queued() -> None:
    """F-21, SES-5, SES-10a: the failed turn's own input stays in the transcript; what waited is the next turn."""

    async def main() -> None:
        model = FieldModel(fails(400, after=5), says("so"))
        async with stage(model) as scene:
            await scene.say("one")
            await trio.sleep_until(1)
            await scene.say("two")
            await scene.idle()
            assert [each.outcome for each in scene.told(TurnEnded)] == ["failed", "ok"]
            assert await scene.texts() == ["one", "two", "so"]

    play(main)


def test_a_rejected_input_leaves_no_trace_and_may_come_again() -> None:
    """F-21, SES-10, SES-10a: the queue is bounded; its rejection is a receipt and an event, and no row."""

    async def main() -> None:
        async with stage(FieldModel(says("so", after=10), then=says("so")), max_queue=2) as scene:
            await scene.say("one")
            for text in ("two", "three"):
                await scene.say(text)
            receipt = await scene.harness.submit(S, "four", id="i4")
            assert not receipt.accepted and receipt.reason is not None and "queue holds 2" in receipt.reason
            assert "i4" not in scene.store.accepted
            await trio.sleep_until(20)
            assert (await scene.harness.submit(S, "four", id="i4")).accepted
            await scene.idle()

    play(main)


def test_an_id_names_one_input_for_ever() -> None:
    """F-21, SES-10a: while it is queued, once it is delivered, after a restart, from two senders at once, in two sessions."""

    async def main() -> None:
        store = LedgerStore()
        async with stage(FieldModel(says("so", after=10), then=says("so")), store=store) as scene:
            first = await scene.harness.submit(S, "one", id="i1")
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(lambda: scene.say("two", id="i2"))
            await trio.sleep_until(30)
            assert await scene.harness.submit(S, "one", id="i1") == first
            for session, text in ((S, "another"), ("bob", "one")):
                with pytest.raises(InputConflict):
                    await scene.harness.submit(session, text, id="i1")
        async with stage(FieldModel(), store=store) as scene:
            assert await scene.harness.submit(S, "one", id="i1") == first
            assert len(await scene.messages()) == 4

    play(main)


def test_one_id_sent_to_two_sessions_at_once_is_one_input() -> None:
    """F-21, SES-10a: neither harms the harness; one is accepted, the other told of the conflict, whoever comes first."""

    async def main() -> None:
        async with stage(FieldModel(then=says("so"))) as scene:
            conflicts: list[str] = []

            async def send(session: str) -> None:
                try:
                    await scene.harness.submit(session, "hi", id="i1")
                except InputConflict:
                    conflicts.append(session)

            async with trio.open_nursery() as nursery:
                for session in ("ann", "bob", "cid"):
                    nursery.start_soon(send, session)
            assert len(conflicts) == 2 and len(scene.store.accepted) == 1
            assert (await scene.harness.turn("ann", "still here")).outcome == "ok"

    play(main)


def test_inputs_that_waited_become_one_message_whose_parts_stay_apart() -> None:
    """F-22, SES-10: two images and a question are one turn, and each part keeps its sender, time, id and attachments. An

    input that contains the header or the separator is one part in the record all the same.
    """
    image = {"type": "image", "media_type": "image/png", "data": "aGk="}

    async def main() -> None:
        async with stage(FieldModel(says("so", after=10), says("a cat"))) as scene:
            await scene.say("wait")
            sent = [("", [image]), ("", [image]), ("what is this?", []), (f"{HEADER}\nx\n---\ny", [])]
            ids = []
            for number, (text, attachments) in enumerate(sent, 1):
                await trio.sleep_until(number)
                ids.append(await scene.say(text, sender=f"sender {number}", attachments=attachments))
            await scene.idle()
            both = (await scene.messages())[2]
            assert [each.id for each in both.inputs] == ids and [each.at for each in both.inputs] == [1, 2, 3, 4]
            assert [each.sender for each in both.inputs] == [f"sender {number}" for number in range(1, 5)]
            assert [(each.text, list(each.attachments)) for each in both.inputs] == sent
            assert both.text == HEADER + "\n" + "\n---\n".join(text for text, _ in sent)
            assert scene.model.sent()[1].messages[2].inputs == both.inputs, "the model's client gets the parts"

    play(main)


@pytest.mark.parametrize("text", ["hi", " \n hi\r\n\t ", HEADER, "---", "\ufeffé\u0301 🐈‍⬛\u202e", "x" * 100_000])
def test_one_input_is_delivered_byte_for_byte(text: str) -> None:
    """F-22, SES-10: verbatim, nothing stripped, normalised or framed."""

    async def main() -> None:
        async with stage(FieldModel(says("so"))) as scene:
            await scene.harness.turn(S, text)
            assert scene.model.sent()[0].messages[0].text.encode() == text.encode()

    play(main)


def test_input_at_any_moment_before_idle_runs_without_a_further_act() -> None:
    """F-23, SES-10b: submitted while each commit is under way, and after each, from the last tool result to idle."""
    number = 1
    while _submit_at(number):
        number += 1
    assert number > 4


def _submit_at(wanted: int) -> bool:
    store = LedgerStore()

    async def main() -> None:
        async with trio.open_nursery() as nursery:

            async def hook(number: int, changes: Sequence[Any]) -> None:
                if number == wanted:
                    for wait in range(3):
                        nursery.start_soon(late, wait)
                    await trio.sleep(0.05)

            async def late(checkpoints: int) -> None:
                for _ in range(checkpoints * 3):
                    await trio.lowlevel.checkpoint()
                await scene.say(f"late {checkpoints}", id=f"late {checkpoints}")

            async with stage(
                FieldModel(calls(("a", "work")), then=says("so")), FieldTool("work"), store=store
            ) as scene:
                store.on_commit = hook
                await scene.say("go", id="go")
                await trio.sleep(10)
                if store.commits >= wanted:
                    assert set(store.settled) == {"go", "late 0", "late 1", "late 2"}
                    assert scene.status() == "waiting_for_input"

    play(main)
    return store.commits >= wanted

"""SES-10, SES-10a, SES-20: another process writes into the ledger too; nothing it does ends the worker or changes an order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
import trio

from concorde_trio import Prompt, SessionHarness
from concorde_trio._sansio.session_changes import AddInput, LinkInputs
from concorde_trio.conversations.outside import Sent, submit_from_outside
from concorde_trio.conversations.session_input import SESSION_INPUT
from concorde_trio.errors import InputConflict, StoreError
from concorde_trio.messages import InputState
from concorde_trio.sessions.inputs import new_input
from tests.conversations.stage import S, WorkerStore, talking
from tests.field.ledger import Crash, LedgerStore
from tests.field.stage import FieldModel, FieldTool, calls, fails, play, says


async def outside(store: WorkerStore, text: str, input_id: str, session: str = S) -> Sent:
    """What ``concorde-trio send`` does in a process of its own."""
    return await submit_from_outside(store, session, new_input(text, at=trio.current_time(), id=input_id))


def first(store: LedgerStore, input_id: str, act: Any) -> list[int]:
    """Have ``act`` done right before the first commit that has this input; the numbers of such commits."""
    seen: list[int] = []

    async def hook(number: int, changes: Sequence[Any]) -> None:
        if any(isinstance(each, AddInput) and each.input.id == input_id for each in changes):
            seen.append(number)
            if len(seen) == 1:
                await act()

    store.on_commit = hook
    return seen


@pytest.mark.parametrize("when", ["no run is in flight", "a run is in flight"])
@pytest.mark.parametrize("what", ["the same", "another text", "another session"])
def test_an_id_that_another_process_wrote_at_the_same_instant_is_known(what: str, when: str) -> None:
    """SES-10a, SES-20: it is in the ledger once; its second sender gets the first receipt or a conflict; the worker lives."""

    async def main() -> None:
        store = WorkerStore()
        async with talking(FieldModel(then=says("so", after=5)), store=store) as talk:
            if when == "a run is in flight":
                await talk.chat("go")
                await trio.sleep(1)

            async def other() -> None:
                text, session = "hi", S
                if what == "another text":
                    text = "ho"
                elif what == "another session":
                    session = "bob"
                assert (await outside(store, text, "i1", session)).receipt.accepted

            seen = first(store, "i1", other)
            if what == "the same":
                receipt = await talk.runtime.sessions.submit(S, "hi", id="i1")
                assert receipt.accepted and receipt.id == "i1"
            else:
                with pytest.raises(InputConflict, match=what.split()[1] if what == "another session" else "other text"):
                    await talk.runtime.sessions.submit(S, "hi", id="i1")
            assert len(seen) == 2, "both wrote, and one of them was told that it is known"
            await talk.quiet()
            said = [each.id for name in (S, "bob") for message in await talk.messages(name) for each in message.inputs]
            assert said.count("i1") == 1 and talk.state("i1") is InputState.DELIVERED

    play(main)


def test_a_session_without_a_worker_outlives_a_second_writer_too() -> None:
    """SES-10a, SES-22: the same for a harness by itself."""

    async def main() -> None:
        store = WorkerStore()
        async with SessionHarness(store=store, model=FieldModel(then=says("so"))).open() as harness:

            async def other() -> None:
                await outside(store, "hi", "i1", "bob")

            first(store, "i1", other)
            with pytest.raises(InputConflict, match="session 'bob'"):
                await harness.submit(S, "hi", id="i1")
            assert (await harness.turn(S, "hi", id="i2")).text == "so"

    play(main)


def test_a_store_that_can_not_be_written_still_ends_the_worker_with_that_error() -> None:
    """REC-5: only what is in the ledger already is known; any other refusal is one of the store."""

    async def main() -> None:
        store = LedgerStore()

        async def broken() -> None:
            raise StoreError("the disk is full")

        first(store, "i1", broken)
        with pytest.raises(StoreError, match="the disk is full"):
            async with SessionHarness(store=store, model=FieldModel(then=says("so"))).open() as harness:
                await harness.submit(S, "hi", id="i1")
                await trio.sleep_forever()

    play(main)


ORDER = "[Multiple inputs received while processing:]\nB\n---\nC"


@pytest.mark.parametrize("how", ["as it was", "by a handler"])
def test_what_a_crash_left_in_a_queue_stands_before_what_was_sent_since(how: str) -> None:
    """SES-10, SES-20: B waited in the queue of the run that died, C was sent while no worker was there: B, then C."""

    async def main() -> None:
        store = WorkerStore()
        with suppress(Crash):
            async with talking(FieldModel(calls(("a", "work"))), FieldTool("work", 20.0), store=store) as talk:
                await talk.chat("A")
                await trio.sleep(1)
                await talk.say("B", id="B")
                await trio.sleep(1)
                await talk.die()
        store.revive()
        async with store.open():
            await outside(store, "C", "C")
        handlers = {}
        if how == "by a handler":
            handlers[SESSION_INPUT] = lambda signal: [Prompt(session=S, text=signal.payload["text"] * 2)]
        async with talking(FieldModel(then=says("so")), FieldTool("work"), store=store, handlers=handlers) as talk:
            await talk.quiet()
            assert (await talk.texts())[-2] == (ORDER if how == "as it was" else ORDER.replace("C", "CC"))
            assert talk.state("B") is talk.state("C") is InputState.DELIVERED

    play(main)


@pytest.mark.parametrize("first_", ["A2", "B"])
def test_what_waits_with_a_signal_and_what_waits_without_one_stay_in_their_order(first_: str) -> None:
    """SES-10: A2 is a signal when A's run begins, B joins that run's queue, C comes from outside; then the process dies."""

    async def main() -> None:
        store = WorkerStore()
        with suppress(Crash):
            async with talking(FieldModel(says("so", after=20)), store=store) as talk:
                await talk.chat("A")
                await trio.sleep(1)
                for each in ("A2", "B") if first_ == "A2" else ("B", "A2"):
                    await (outside(store, "A2", "A2") if each == "A2" else talk.say("B", id="B"))
                await outside(store, "C", "C")
                await trio.sleep(1)
                await talk.die()
        store.revive()
        async with talking(FieldModel(then=says("so")), store=store) as talk:
            await talk.quiet()
            order = [each.id for message in await talk.messages() for each in message.inputs][1:]
            assert order == (["A2", "B", "C"] if first_ == "A2" else ["B", "A2", "C"])

    play(main)


@pytest.mark.parametrize("end", ["its turn fails", "an operator cancels it"])
def test_what_a_run_leaves_stands_before_what_another_process_sent_meanwhile(end: str) -> None:
    """SES-10, SES-21: B is in the queue, C was sent from outside while the run was in flight, and the run ends badly."""

    async def main() -> None:
        store = WorkerStore()
        model = FieldModel(fails(400, after=10), then=says("so"))
        async with talking(model, store=store) as talk:
            await talk.chat("A")
            await trio.sleep(1)
            await talk.say("B", id="B")
            await outside(store, "C", "C")
            await trio.sleep(1)
            if end == "an operator cancels it":
                await talk.worker.cancel_run((await talk.runs())[0].id)
            await talk.quiet()
            assert (await talk.texts())[-2] == ORDER

    play(main)


def test_what_waited_for_a_later_inputs_run_gets_its_own_when_that_one_never_comes() -> None:
    """SES-10a, SES-20: C's signal is cancelled before it runs; B is run all the same."""

    async def main() -> None:
        store = WorkerStore()
        model = FieldModel(fails(400, after=10), says("so", after=30), then=says("so"))
        options = {"session_resources": lambda name: ["w"]}
        async with talking(model, store=store, **options) as talk:
            await talk.chat({"text": "A"})
            await talk.chat({"text": "blocker", "session": "bob", "resources": ["w"]})
            await trio.sleep(1)
            await talk.say("B", id="B")
            sent = await outside(store, "C", "C")
            await trio.sleep_until(12)
            stored = await store.input("B")
            assert stored is not None and stored.signal_id is None, "it waits for C's run"
            assert sent.signal_id is not None
            await talk.worker.cancel_signal(sent.signal_id)
            await talk.quiet()
            assert talk.state("C") is InputState.CANCELLED and talk.state("B") is InputState.DELIVERED
            assert (await talk.texts())[-2:] == ["B", "so"]

    play(main)


def test_what_is_said_while_a_run_hands_over_comes_after_what_it_leaves() -> None:
    """SES-10, SES-21: B's signal is in the commit that ends the run, and D is said before that commit is made."""

    async def main() -> None:
        store = WorkerStore()
        model = FieldModel(fails(400, after=10), then=says("so"))
        async with talking(model, store=store) as talk:
            said: list[str] = []

            async def hook(number: int, changes: Sequence[Any]) -> None:
                if not said and any(isinstance(each, LinkInputs) for each in changes):
                    said.append("D")
                    await talk.say("D", id="D")

            await talk.chat("A")
            await trio.sleep(1)
            await talk.say("B", id="B")
            store.on_commit = hook
            await talk.quiet()
            assert said and [each.id for message in await talk.messages() for each in message.inputs][1:] == ["B", "D"]

    play(main)

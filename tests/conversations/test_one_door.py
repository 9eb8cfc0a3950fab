"""SES-20: with a worker a turn begins only inside a run; input from outside takes its place, once, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio

from concorde_trio import Prompt, Signal
from concorde_trio.conversations.outside import submit_from_outside
from concorde_trio.conversations.session_input import SESSION_INPUT
from concorde_trio.errors import InputConflict, WrongState
from concorde_trio.events import InputSettled, RunStarted, TurnEnded, TurnStarted
from concorde_trio.messages import InputState
from concorde_trio.records import RunState, SignalState
from concorde_trio.sessions.inputs import new_input
from tests.conversations.stage import S, WorkerStore, about, talking
from tests.field.stage import FieldModel, FieldTool, calls, play, says

IMAGE = {"type": "image", "media_type": "image/png", "data": "aGk="}


def test_input_outside_a_run_becomes_one_signal_and_is_delivered_by_its_run() -> None:
    """SES-20: as it came: text, id, sender, time and attachments; verbatim for the model."""

    async def main() -> None:
        async with talking(FieldModel(says("so"))) as talk:
            await trio.sleep(3)
            mine = await talk.say(" hi\n", sender="bob", attachments=[IMAGE], id="i1")
            await talk.quiet()
            (signal,) = await talk.signals()
            (run,) = await talk.runs()
            assert (signal.kind, signal.state, run.session, run.resources) == (SESSION_INPUT, SignalState.DONE, S, ())
            message = (await talk.messages())[0]
            (part,) = message.inputs
            assert message.text == " hi\n" and (part.id, part.sender, part.at, part.attachments) == (
                mine,
                "bob",
                talk.store.accepted[mine].input.at,
                (IMAGE,),
            )
            stored = await talk.store.input("i1")
            assert stored is not None and stored.signal_id == signal.id and talk.state("i1") is InputState.DELIVERED

    play(main)


def test_input_during_a_run_runs_inside_it_and_the_run_keeps_its_locks_until_all_is_said() -> None:
    """SES-20, SES-21: during a call it joins the turn; at its end it is the next turn of the same run; a run that wants the

    same workspace waits for all of it.
    """

    async def main() -> None:
        model = FieldModel(calls(("a", "work")), says("one", after=5), says("two", after=5), then=says("other"))
        async with talking(model, FieldTool("work", 10.0)) as talk:
            await talk.chat({"text": "go", "resources": ["w"]})
            await talk.chat({"text": "other", "session": "bob", "resources": ["w"]})
            await trio.sleep_until(5)
            joins = await talk.say("joins")
            await trio.sleep_until(12)
            follows = await talk.say("follows")
            await talk.quiet()
            assert [each.input_ids[1:] for each in talk.told(TurnStarted)] == [(), (), ()]
            assert [run.text for run in await talk.runs()] == ["one", "other"], "of the turn that took its prompt"
            assert [each.id for message in await talk.messages() for each in message.inputs][1:] == [joins, follows]
            assert len(await talk.signals()) == 2 and len(talk.told(RunStarted)) == 2
            started = [at for at, each in talk.events if isinstance(each, RunStarted)]
            assert abs(started[1] - 20) < 0.1, "10 s of the call, 5 and 5 of the answers"

    play(main)


def test_input_takes_its_place_in_the_lock_table() -> None:
    """SES-20, LCK-2: behind what was claimed before it; two inputs of a session are two runs, in order."""

    async def main() -> None:
        async with talking(
            FieldModel(then=says("so", after=10)), session_resources=lambda name: [f"desk {name}"]
        ) as talk:
            await talk.chat({"text": "first", "session": "bob", "resources": ["desk ann"]})
            await trio.sleep(1)
            one = await talk.say("one")
            two = await talk.say("two")
            waits = talk.runtime.sessions.loops[S].machine.waiting_on()
            assert waits.on == "lock"
            await talk.quiet()
            assert about(30)
            runs = await talk.runs()
            assert [run.session for run in runs] == ["bob", S, S] and runs[1].resources == ("desk ann",)
            assert [each.inputs[0].id for each in await talk.messages() if each.inputs] == [one, two]

    play(main)


@pytest.mark.parametrize("when", ["waits", "in flight", "over", "after a restart"])
def test_an_id_that_comes_again_is_the_same_input(when: str) -> None:
    """SES-20, SES-10a: one signal and one delivery, whenever it comes again; with other text it is a conflict."""

    async def main() -> None:
        store = WorkerStore()
        async with talking(FieldModel(then=says("so", after=10)), store=store) as talk:
            await talk.chat("first")
            await trio.sleep(1)
            if when == "waits":
                await trio.sleep_until(11)
            first = await talk.runtime.sessions.submit(S, "hi", id="i1")
            if when == "over":
                await talk.quiet()
            if when == "in flight":
                await trio.sleep_until(11)
            again = await talk.runtime.sessions.submit(S, "hi", id="i1")
            assert first == again
            with pytest.raises(InputConflict):
                await talk.runtime.sessions.submit(S, "other", id="i1")
            with pytest.raises(InputConflict):
                await talk.runtime.sessions.submit("bob", "hi", id="i1")
            await talk.quiet()
        async with talking(FieldModel(then=says("so")), store=store) as talk:
            assert await talk.runtime.sessions.submit(S, "hi", id="i1") == first
            await talk.quiet()
            inputs = [each.id for message in await talk.messages() for each in message.inputs]
            assert inputs.count("i1") == 1 and len(talk.model.asked) == 0

    play(main)


@pytest.mark.parametrize("where", ["beside", "as a reply"])
def test_a_users_handler_for_input_replaces_the_built_in_one(where: str) -> None:
    """SES-20: it sees the payload, and what it makes of it runs; the input is delivered by the run in its own session."""

    def mine(signal: Signal) -> list[Prompt]:
        payload = signal.payload
        text = f"{payload['sender']} says: {payload['text']}"
        if where == "beside":
            return [Prompt(text=text, session="another")]
        return [Prompt(text=text, session=payload["session"], resources=["w"])]

    async def main() -> None:
        async with talking(FieldModel(says("so")), handlers={SESSION_INPUT: mine}) as talk:
            given = await talk.say("hi", sender="bob", attachments=[IMAGE])
            await talk.quiet()
            (run,) = await talk.runs()
            message = talk.model.sent()[0].messages[0]
            assert message.text == "bob says: hi" and run.state is RunState.DONE
            if where == "beside":
                assert run.session == "another" and talk.state(given) is InputState.CANCELLED
            else:
                assert run.resources == ("w",) and talk.state(given) is InputState.DELIVERED
                assert message.inputs[0].attachments == (IMAGE,)

    play(main)


@pytest.mark.parametrize("how", ["raises", "no prompts", "cancelled", "an unknown resource name"])
@pytest.mark.parametrize("door", ["the worker's", "another process's"])
def test_input_whose_signal_settles_without_a_run_is_cancelled(how: str, door: str) -> None:
    """SES-20, SES-10a: its handler raises, makes no prompt or a bad one, or an operator cancels the signal: the input is

    cancelled, with an event, and not run later; also where no loop of its session is in memory.
    """

    async def mine(signal: Signal) -> list[Prompt] | None:
        if how == "cancelled":
            await trio.sleep(50)
        if how == "raises":
            raise RuntimeError("not today")
        return None

    async def main() -> None:
        options: dict[str, Any] = {"handlers": {SESSION_INPUT: mine}}
        if how == "an unknown resource name":
            options = {"session_resources": lambda name: ["\n"]}
        async with talking(FieldModel(then=says("so")), **options) as talk:
            if door == "the worker's":
                given = await talk.say("hi")
            else:
                given = "i1"
                sent = await submit_from_outside(talk.store, S, new_input("hi", at=0.0, id=given))
                assert sent.receipt.accepted
            await trio.sleep(1)
            (signal,) = await talk.signals()
            if how == "cancelled":
                await talk.worker.cancel_signal(signal.id)
            await talk.quiet()
            assert talk.state(given) is InputState.CANCELLED
            assert [each.input_id for each in talk.told(InputSettled)] == [given]
            await talk.settled(await talk.chat("next"))
            assert await talk.texts() == ["next", "so"]

    play(main)


def test_input_that_became_a_signal_is_taken_back_with_it() -> None:
    """SES-20, SES-10a: its run waits behind another one's workspace; its sender is told which signal to cancel; then the

    input is cancelled, with an event, and no turn ever says its text.
    """

    async def main() -> None:
        async with talking(FieldModel(then=says("so", after=10)), session_resources=lambda name: ["w"]) as talk:
            await talk.chat({"text": "blocker", "session": "bob", "resources": ["w"]})
            await trio.sleep(1)
            given, kept = await talk.say("taken back"), await talk.say("kept")
            await trio.sleep(1)
            signal = (await talk.signals())[1]
            with pytest.raises(WrongState, match=signal.id):
                await talk.runtime.sessions.cancel_input(S, given)
            await talk.worker.cancel_signal(signal.id)
            await talk.quiet()
            assert talk.state(given) is InputState.CANCELLED and talk.state(kept) is InputState.DELIVERED
            assert await talk.texts() == ["kept", "so"] and about(20)

    play(main)


def test_input_that_joins_a_run_can_be_taken_back_while_it_waits() -> None:
    """SES-20, SES-10a: in the queue of a session whose run is in flight there is no signal."""

    async def main() -> None:
        async with talking(FieldModel(says("so", after=10))) as talk:
            await talk.chat("go")
            await trio.sleep(1)
            given = await talk.say("taken back")
            await talk.runtime.sessions.cancel_input(S, given)
            await talk.quiet()
            assert await talk.texts() == ["go", "so"] and talk.state(given) is InputState.CANCELLED

    play(main)


def test_input_at_the_very_end_of_a_run_is_run_in_it_or_in_one_of_its_own() -> None:
    """SES-20, SES-21, SES-10b: submitted while each commit is under way, the run's last ones above all, and shortly after."""

    def once(wanted: int, checkpoints: int) -> bool:
        store = WorkerStore()

        async def main() -> None:
            async with trio.open_nursery() as nursery:

                async def hook(number: int, changes: Sequence[Any]) -> None:
                    if number == wanted:
                        nursery.start_soon(late)
                        await trio.sleep(0.01)

                async def late() -> None:
                    for _ in range(checkpoints):
                        await trio.lowlevel.checkpoint()
                    await talk.say("late", id="late")

                async with talking(FieldModel(then=says("so", after=1)), store=store) as talk:
                    store.on_commit = hook
                    await talk.settled(await talk.chat("go"))
                    await trio.sleep(1)
                    await talk.quiet()
                    if "late" in store.accepted:
                        assert talk.state("late") is InputState.DELIVERED
                    assert all(each.outcome == "ok" for each in talk.told(TurnEnded))

        play(main)
        return "late" in store.accepted

    for checkpoints in (0, 2, 5, 9):
        number = 1
        while once(number, checkpoints):
            number += 1
        assert number > 5

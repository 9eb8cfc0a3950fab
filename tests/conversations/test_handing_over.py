"""SES-21: what is queued when a run ends otherwise than well, or under a stop, gets a run of its own; whatever crashes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import trio

from concorde_trio._sansio.model_events import UsageReport
from concorde_trio._sansio.session_changes import EmitSignals, LinkInputs
from concorde_trio.conversations.session_input import SESSION_INPUT
from concorde_trio.errors import WrongState
from concorde_trio.events import TurnStarted
from concorde_trio.messages import InputState
from concorde_trio.records import RunState, Usage
from concorde_trio.sessions.tool import Leftover
from tests.conversations.stage import S, WorkerStore, talking
from tests.field.ledger import Crash
from tests.field.stage import FieldModel, FieldTool, calls, fails, play, says

IMAGE = {"type": "image", "media_type": "image/png", "data": "aGk="}
USED: list[Any] = [(0.0, UsageReport(Usage(input_tokens=100)))]
ENDS = ["failed", "limited", "interrupted", "cancelled", "its time limit", "drain", "park", "cancel"]


@pytest.mark.parametrize("end", ENDS)
def test_what_waited_when_a_run_ended_badly_or_under_a_stop_becomes_signals(end: str) -> None:
    """SES-21, SES-20: with the same ids, in order, one signal each, in the commit that ends the run; delivered once, by runs

    of their own, in this worker or the next.
    """

    async def main() -> None:
        store = WorkerStore()
        commits: list[list[Any]] = []

        async def note(number: int, changes: Any) -> None:
            commits.append(list(changes))

        store.on_commit = note
        first: Any = {"failed": fails(400, after=20), "limited": [(20.0, USED[0][1]), *calls(("a", "work"))]}.get(
            end, says("so", after=20)
        )
        model = FieldModel(first, then=says("so"))
        limits: dict[str, Any] = {
            "limited": {"usage_limit": 50},
            "its time limit": {"time_limit": 10.0},
        }.get(end, {})
        async with talking(model, FieldTool("work"), store=store) as talk:
            signal = await talk.chat({"text": "go", **limits})
            await trio.sleep_until(5)
            ids = [await talk.say("one"), await talk.say("two", attachments=[IMAGE])]
            await trio.sleep_until(6)
            (run,) = await talk.runs()
            if end == "interrupted":
                await talk.runtime.sessions.interrupt(S)
            elif end == "cancelled":
                await talk.worker.cancel_run(run.id)
            elif end in ("drain", "park", "cancel"):
                talk.worker.stop(end)
            with suppress(WrongState):
                await talk.settled(signal)
            with suppress(WrongState):
                await talk.quiet()
        ending = next(each for each in commits if any(isinstance(change, EmitSignals) for change in each))
        assert any(type(change).__name__ == "RunEnd" or "run" in type(change).__name__.lower() for change in ending)
        links = [change.ids for change in ending if isinstance(change, LinkInputs)]
        assert links == [(each,) for each in ids], "same ids, in order, in the commit that ends the run"
        async with talking(model, FieldTool("work"), store=store) as talk:
            await talk.quiet()
            said = [each.id for message in await talk.messages() for each in message.inputs][1:]
            assert said == ids and all(talk.state(each) is InputState.DELIVERED for each in ids)
            runs = await talk.runs()
            states = {
                "failed": RunState.FAILED,
                "limited": RunState.LIMITED,
                "drain": RunState.DONE,
                "park": RunState.DONE,
            }
            states["its time limit"] = RunState.FAILED
            assert [each.state for each in runs] == [states.get(end, RunState.CANCELLED), RunState.DONE, RunState.DONE]
            assert [each.kind for each in await talk.signals()] == ["chat", SESSION_INPUT, SESSION_INPUT]
            last = next(each for each in model.sent() if each.messages[-1].text == "two")
            assert last.messages[-1].inputs[0].attachments == (IMAGE,)

    play(main)


def _crash(number: int, *, after: bool) -> bool:
    """One crash in the piece, then a worker that lives. False if the piece never came to that commit."""
    store = WorkerStore()
    store.crash_at, store.after = number, after
    sent: list[str] = []

    async def main() -> None:
        model = FieldModel(calls(("a", "work")), fails(400, after=1), then=says("so", after=1))
        with suppress(Crash):
            async with talking(model, FieldTool("work", 2.0), store=store) as talk:
                await talk.chat("go")
                await trio.sleep(1)
                for text in ("i1", "i2"):
                    await talk.say(text, id=text)
                    sent.append(text)
                await trio.sleep(4)
                await talk.say("i3", id="i3")
                sent.append("i3")
                await talk.quiet()
            return
        store.revive()
        model = FieldModel(then=says("so", after=1))
        async with talking(model, FieldTool("work", 2.0), store=store) as talk:
            await talk.quiet()
            for text in ("i1", "i2", "i3"):
                await talk.say(text, id=text)
            await talk.quiet()
            cut = {each.signal_id for each in await talk.runs() if each.error and "worker stopped" in each.error}
            for each in ("i1", "i2", "i3"):
                stored = await store.input(each)
                assert stored is not None
                wanted = InputState.CANCELLED if stored.signal_id in cut else InputState.DELIVERED
                assert stored.state is wanted or (stored.signal_id in cut and each in store.in_messages)
            said = [each.id for message in await talk.messages() for each in message.inputs if each.id[0] == "i"]
            assert said == [each for each in ("i1", "i2", "i3") if talk.state(each) is InputState.DELIVERED]
            prompts = [change for change in store.accepted.values() if change.prompt]
            assert all(each.input.id in store.settled for each in prompts), "every prompt is closed"
            runs = await talk.runs()
            assert all(each.ended_at is not None for each in runs)
            texts = [message.text for message in await talk.messages() if message.inputs]
            assert texts.count("go") <= 1, "a failed run's own prompt is never run again"

    play(main)
    return store.commits >= number


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_at_any_commit_loses_no_input_and_repeats_none(after: bool) -> None:
    """SES-20, SES-21, REC-2, REC-3: at every commit of a run that fails while two inputs wait, and of the runs they get.

    Nothing lost, nothing twice, in order. The one end that is not delivery is REC-2's: a run that had started when the process
    died is never run again, so the input that it was for is cancelled with it, if it had not been delivered yet.
    """
    number = 1
    while _crash(number, after=after):
        number += 1
    assert number > 12


def test_a_restart_hands_over_what_a_crash_left_in_a_queue() -> None:
    """SES-20, SES-21: queued in a run that a crash cut; recovery routes it, before anything is claimed."""

    async def main() -> None:
        store = WorkerStore()
        with suppress(Crash):
            async with talking(FieldModel([]), store=store) as talk:
                await talk.chat("go")
                await trio.sleep(1)
                given = await talk.say("waits")
                await talk.die()
        store.revive()
        async with talking(FieldModel(says("so")), store=store) as talk:
            await talk.quiet()
            assert await talk.texts() == ["go", "waits", "so"] and talk.state(given) is InputState.DELIVERED
            assert [each.state for each in await talk.runs()] == [RunState.FAILED, RunState.DONE]

    play(main)


def test_input_while_a_run_ends_what_its_tools_left_does_not_begin_a_turn_in_it() -> None:
    """SES-21, SES-8: the turn is over, and a program that a call left running takes 5 s to end: the run still has its locks,

    and input that comes then gets a run of its own, after this one.
    """

    async def main() -> None:
        async def leaves(arguments: Any, context: Any) -> str:
            left = context.left(Leftover("process", 1, "a sleeper"))

            async def lives() -> None:
                try:
                    await trio.sleep_forever()
                finally:
                    with trio.CancelScope(shield=True):
                        await trio.sleep(5)
                    left.ended()

            context.keep(lives)
            return "done"

        model = FieldModel(calls(("a", "work")), then=says("so", after=10))
        async with talking(model, FieldTool("work", leaves)) as talk:
            signal = await talk.chat("go")
            await trio.sleep(12)
            assert len(talk.told(TurnStarted)) == 1 and S in talk.running and S not in talk.turning
            given = await talk.say("late")
            await talk.settled(signal)
            assert 14.9 < trio.current_time() < 15.1
            await talk.quiet()
            assert talk.state(given) is InputState.DELIVERED and len(await talk.runs()) == 2

    play(main)


def test_what_waited_is_handed_over_though_what_a_tool_left_will_not_end() -> None:
    """SES-21, SES-8: the turn failed, and its leftovers take a minute where 25 s are allowed: the run ends then, and what is

    queued gets a run of its own all the same.
    """

    async def main() -> None:
        async def leaves(arguments: Any, context: Any) -> str:
            async def lives() -> None:
                with trio.CancelScope(shield=True):
                    await trio.sleep(60)

            context.keep(lives)
            return "done"

        model = FieldModel(calls(("a", "work")), fails(400, after=5), then=says("so"))
        async with talking(model, FieldTool("work", leaves)) as talk:
            signal = await talk.chat("go")
            await trio.sleep(1)
            joins = await talk.say("joins")
            await trio.sleep(1)
            assert talk.state(joins) is InputState.QUEUED
            await talk.settled(signal)
            assert 29 < trio.current_time() < 31
            await talk.quiet()
            assert talk.state(joins) is InputState.DELIVERED and len(await talk.runs()) == 2

    play(main)


@pytest.mark.slow
def test_input_that_is_being_handed_over_can_not_be_taken_back_halfway() -> None:
    """SES-21, SES-10a: its sender cancels it at any moment around the end of the run; the worker lives, and the ledger is even."""

    def once(checkpoints: int, number: int) -> bool:
        store = WorkerStore()
        taken: list[str] = []

        async def main() -> None:
            async with trio.open_nursery() as nursery:

                async def hook(commit: int, changes: Any) -> None:
                    if commit == number:
                        nursery.start_soon(take_back)
                        await trio.sleep(0.01)

                async def take_back() -> None:
                    for _ in range(checkpoints):
                        await trio.lowlevel.checkpoint()
                    with suppress(WrongState, LookupError):
                        await talk.runtime.sessions.cancel_input(S, "i1")
                        taken.append("i1")

                async with talking(FieldModel(fails(400, after=2), then=says("so")), store=store) as talk:
                    store.on_commit = hook
                    await talk.chat("go")
                    await trio.sleep(1)
                    await talk.say("one", id="i1")
                    await trio.sleep(5)
                    await talk.quiet()
                    assert talk.state("i1") is (InputState.CANCELLED if taken else InputState.DELIVERED)

        play(main)
        return store.commits >= number

    for checkpoints in (0, 1, 2, 3, 5, 8):
        number = 1
        while once(checkpoints, number):
            number += 1


@pytest.mark.parametrize("on_interrupt", ["run_queue", "hold_queue"])
def test_inputs_that_wait_at_an_interrupt_become_a_run_each(on_interrupt: str) -> None:
    """SES-12, SES-21: with a worker nothing is held for a person; they run in their order, one after another."""

    async def main() -> None:
        async with talking(FieldModel(then=says("so", after=5)), on_interrupt=on_interrupt) as talk:
            await talk.chat("go")
            await trio.sleep(1)
            said = [await talk.say(f"input {number}") for number in range(10)]
            assert await talk.runtime.sessions.interrupt(S)
            await talk.quiet()
            assert [run.text for run in await talk.runs()] == [None, *["so"] * 10]
            assert [each.id for message in await talk.messages() for each in message.inputs][1:] == said

    play(main)

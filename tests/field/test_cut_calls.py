"""F-18, F-09: a call whose arguments were cut off anywhere is never run, and nothing half of it stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from concorde_trio._sansio.model_events import CallDelta, CallStarted, Purpose, ReplyEnd, StopReason, TextDelta
from concorde_trio.errors import ModelError
from concorde_trio.messages import CallOutcome, Role
from tests.field.stage import FieldModel, FieldTool, S, play, says, stage

ARGUMENTS = '{"path":"a","content":"xyz"}'


def cut_at(size: int, end: ReplyEnd | ModelError) -> list[Any]:
    """The call's arguments byte by byte, up to one of them, and then the end."""
    pieces = [(0.1, CallDelta(0, each)) for each in ARGUMENTS[:size]]
    return [(0.0, CallStarted(0, "c1", "write")), *pieces, (0.1, end)]


@pytest.mark.parametrize("size", range(len(ARGUMENTS) + 1))
@pytest.mark.parametrize("end", ["connection", "length", "calls"])
def test_a_call_runs_only_when_all_of_it_came(size: int, end: str) -> None:
    """F-18, SES-13, SES-9: cut at every byte, by a broken connection, by the length limit, or by a provider that says that

    it is whole. Ours: after LENGTH the last call is taken for cut off even if its JSON happens to be whole; a call without
    any byte of arguments that the provider calls complete is a call without arguments.
    """
    ends = {
        "connection": ModelError("it broke off", connection=True),
        "length": ReplyEnd(StopReason.LENGTH),
        "calls": ReplyEnd(StopReason.CALLS),
    }

    async def main() -> None:
        write = FieldTool("write")
        async with stage(FieldModel(cut_at(size, ends[end]), says("so")), write) as scene:
            assert (await scene.harness.turn(S, "hi")).outcome == "ok"
            whole = end == "calls" and size in (0, len(ARGUMENTS))
            assert len(write.ran) == whole
            messages = await scene.messages()
            if end == "connection":
                assert [each.text for each in messages] == ["hi", "so"]
                return
            call = messages[1].calls[0]
            assert call.arguments == (ARGUMENTS if whole and size else "{}") and json.loads(call.arguments) is not None
            assert messages[2].outcome is (CallOutcome.OK if whole else CallOutcome.ERROR)
            assert whole or ("not run" in messages[2].text and call.refused)

    play(main)


@pytest.mark.parametrize("size", [0, 1, 14, len(ARGUMENTS) - 1, len(ARGUMENTS)])
def test_a_stream_that_stalls_in_the_arguments_runs_nothing(size: int) -> None:
    """F-18, SES-5: the call that was begun is dropped with the stream."""

    async def main() -> None:
        write = FieldTool("write")
        stalls = cut_at(size, ReplyEnd())[:-1]
        async with stage(FieldModel(stalls, says("so")), write) as scene:
            assert (await scene.harness.turn(S, "hi")).outcome == "failed"
            assert (await scene.harness.turn(S, "again")).outcome == "ok"
            assert not write.ran and await scene.texts() == ["hi", "again", "so"]

    play(main)


@pytest.mark.parametrize(
    "text", ["[1]", '"x"', "3", "null", "NaN", '{"a": NaN}', "{'a': 1}", '{"a": 1} {"b": 2}', "[" * 9999]
)
def test_arguments_that_are_no_object_are_answered_and_not_run(text: str) -> None:
    """F-18, SES-9, SES-13: the call stays with ``{}`` in its place, and its result says what was wrong."""

    async def main() -> None:
        write = FieldTool("write")
        script = [(0.0, CallStarted(0, "c1", "write", text)), (0.0, ReplyEnd(StopReason.CALLS))]
        async with stage(FieldModel(script, says("so")), write) as scene:
            assert (await scene.harness.turn(S, "hi")).outcome == "ok"
            _, reply, result, _ = await scene.messages()
            assert not write.ran and reply.calls[0].arguments == "{}" and "arguments are" in result.text

    play(main)


@pytest.mark.parametrize("late", [0.0, 0.01])
def test_a_call_that_is_readable_when_a_person_interrupts_is_not_read(late: float) -> None:
    """F-09, SES-12: interrupted at 2 s, with the end of a call on the stream at that instant or 10 ms later."""

    async def main() -> None:
        write = FieldTool("write")
        script: list[Any] = [(1.0, TextDelta("let me")), (1.0 + late, CallStarted(0, "c1", "write", "{}"))]
        model = FieldModel([*script, (0.0, ReplyEnd(StopReason.CALLS))])
        async with stage(model, write) as scene:
            await scene.say("hi")
            await trio.sleep_until(2)
            assert await scene.harness.interrupt(S)
            await trio.sleep_until(100)
            assert not write.ran and model.times() == [0] and [at for at, _ in model.closed] in ([2.0], [])
            said = (await scene.messages())[-1]
            assert said.role is Role.ASSISTANT and said.interrupted and not said.calls and said.text == "let me"
            assert len(model.sent(purpose=Purpose.TURN)) == 1

    for _ in range(1 if late else 20):
        play(main)

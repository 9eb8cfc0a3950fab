"""SES-7, SES-18: what a user's code raises, whatever it is, is about its own call; Ctrl-C alone is about the program."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
import trio

from concorde_trio.events import TurnEnded
from concorde_trio.messages import CallOutcome, Role
from tests.field.stage import FieldModel, FieldTool, S, calls, play, says, stage

EXITS = [SystemExit(2), asyncio.CancelledError("odd"), BaseExceptionGroup("g", [SystemExit(2), ValueError("x")])]


def raising(error: BaseException) -> Any:
    """A tool, a policy or a function of instructions, that raises this."""

    def plain(*arguments: Any) -> Any:
        raise error

    return plain


@pytest.mark.parametrize("error", EXITS, ids=["exit", "another library's", "exit in a group"])
def test_an_exit_in_an_async_tool_fails_its_call_and_the_turn_goes_on(error: BaseException) -> None:
    """SES-7: as of argparse in it; the other session's turn does not notice."""

    async def exits(arguments: Any, context: Any) -> str:
        await trio.sleep(1)
        raise error

    async def main() -> None:
        model = FieldModel(calls(("a", "exits")), says("so", after=2), then=says("so"))
        async with stage(model, FieldTool("exits", exits)) as scene:
            await scene.say("go")
            await trio.sleep(0.5)
            await scene.say("hello", "bob")
            await scene.idle("bob")
            await scene.idle(S)
            (result,) = [each for each in await scene.messages() if each.role is Role.TOOL]
            assert (
                result.outcome is CallOutcome.ERROR
                and type(error).__name__.replace("BaseExceptionGroup", "Exit") in result.text
            )
            assert [each.outcome for each in scene.told(TurnEnded)] == ["ok", "ok"]

    play(main)


def test_an_exit_in_a_model_client_fails_its_turn() -> None:
    """SES-11: any other error fails the turn at once."""

    async def exits(request: Any, on_event: Any) -> None:
        raise SystemExit(3)

    async def main() -> None:
        async with stage(FieldModel(exits, says("so"))) as scene:
            result = await scene.harness.turn(S, "go")
            assert result.outcome == "failed" and "SystemExit: 3" in (result.error or "")
            assert (await scene.harness.turn(S, "again")).outcome == "ok"

    play(main)


def test_an_exit_in_what_a_tool_left_running_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """SES-8: and ends nothing else."""

    async def leaves(arguments: Any, context: Any) -> str:
        async def kept() -> None:
            raise SystemExit(4)

        context.keep(kept)
        return "left"

    async def main() -> None:
        async with stage(FieldModel(calls(("a", "leaves")), says("so")), FieldTool("leaves", leaves)) as scene:
            assert (await scene.harness.turn(S, "go")).outcome == "ok"

    play(main)
    assert "left running failed" in caplog.text


@pytest.mark.parametrize("where", ["a tool", "a model client"])
def test_ctrl_c_in_a_users_code_stops_the_program_and_the_log_says_where_it_came(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    """SES-7: Python raises it in whatever code runs at that moment."""

    async def interrupted(*arguments: Any) -> str:
        raise KeyboardInterrupt

    async def main() -> None:
        model = FieldModel(interrupted if where == "a model client" else calls(("a", "work")))
        async with stage(model, FieldTool("work", interrupted)) as scene:
            await scene.say("go")
            await trio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        play(main)
    assert "raised KeyboardInterrupt, which stops the program" in caplog.text


@pytest.mark.parametrize("error", [*EXITS, RuntimeError("broken")], ids=str)
@pytest.mark.parametrize("which", ["policy", "classify"])
def test_a_policy_that_raises_anything_means_no(which: str, error: BaseException) -> None:
    """SES-18: failing open would run what nobody allowed, and failing loud would end everybody's turns."""

    async def main() -> None:
        tool = FieldTool("work")
        async with stage(FieldModel(calls(("a", "work")), says("so")), tool, **{which: raising(error)}) as scene:
            assert (await scene.harness.turn(S, "go")).outcome == "ok"
            assert (await scene.messages())[2].outcome is CallOutcome.DENIED and not tool.ran

    play(main)


@pytest.mark.parametrize("error", [*EXITS, RuntimeError("broken")], ids=str)
def test_instructions_that_can_not_be_made_fail_the_turn_before_anything_is_sent(error: BaseException) -> None:
    """SES-1: ``system`` is the user's; a model must not work without it, and no other session ends with it."""
    failing = [True]

    def system(name: str) -> str:
        if failing[0]:
            raise error
        return f"You talk to {name}."

    async def main() -> None:
        async with stage(FieldModel(says("so")), system=system) as scene:
            failed = await scene.harness.turn(S, "go")
            assert failed.outcome == "failed" and "instructions (system) failed" in (failed.error or "")
            assert not scene.model.asked
            failing[0] = False
            assert (await scene.harness.turn(S, "again")).outcome == "ok"
            assert scene.model.asked[0][1].system == f"You talk to {S}."

    play(main)


def test_a_source_of_tools_that_fails_has_none_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """SES-1: its failure is no session's."""

    class Source:
        name = "broken"

        async def run(self, *, task_status: Any, **more: Any) -> None:
            task_status.started()
            await trio.sleep_forever()

        def tools(self) -> Sequence[Any]:
            raise LookupError("no list")

    async def main() -> None:
        async with stage(FieldModel(says("so")), Source(), FieldTool("work")) as scene:
            assert (await scene.harness.turn(S, "go")).outcome == "ok"
            assert [each.name for each in scene.model.asked[0][1].tools] == ["work"]

    play(main)
    assert "a source of tools cannot say what it has" in caplog.text

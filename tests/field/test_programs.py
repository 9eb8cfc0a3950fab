"""F-29 to F-31: sessions that run real programs and threads: their ends, what they leave, and what comes of that."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from concorde_trio import ShellTool, limit_tool_threads, tool
from concorde_trio.events import AbandonedEnded, ReplyDropped
from concorde_trio.messages import CallOutcome, Message, Role
from tests.field.stage import FieldModel, S, Scene, calls, says, stage
from tests.processes.census import Census

pytestmark = pytest.mark.slow


def shell(census: Census, folder: Path, timeout: float) -> ShellTool:
    return ShellTool(folder / "{session}", env=census.env, inherit=(), stop=[(15, 0.5)], timeout=timeout)


async def until(condition: Callable[[], object]) -> None:
    """Poll; the bound of the test turns a hang into a failure."""
    while not condition():  # noqa: ASYNC110
        await trio.sleep(0.01)


async def results(scene: Scene) -> list[Message]:
    return [each for each in await scene.messages() if each.role is Role.TOOL]


TREES = {
    "a loop under a shell": "python3 -c 'import time\nwhile True: time.sleep(0.01)' $LABEL; true",
    "deaf to SIGTERM": "trap '' TERM; sleep $LABEL & wait; sleep $LABEL; true",
    "a session of its own": "setsid sleep $LABEL & sleep $LABEL",
}


@pytest.mark.parametrize("kind", TREES)
async def test_the_end_of_a_commands_time_ends_its_whole_tree(kind: str, census: Census, tmp_path: Path) -> None:
    """F-29, SES-7, SES-8: after a second and the grace nothing of it runs, the call has its result, the turn goes on."""
    arguments = json.dumps({"command": TREES[kind]})
    async with stage(FieldModel(calls(("a", "shell", arguments)), says("so")), shell(census, tmp_path, 1.0)) as scene:
        assert (await scene.harness.turn(S, "go")).outcome == "ok"
        assert census.alive() == []
        (result,) = await results(scene)
        assert "1 s" in result.text and not [
            each for each in scene.loop().machine.calls.abandoned.records if not each.ended
        ]


async def test_an_interrupt_ends_a_commands_whole_tree(census: Census, tmp_path: Path) -> None:
    """F-29, SES-8, SES-12: and the transcript says what became of the call."""
    arguments = '{"command": "setsid sleep $LABEL & sleep $LABEL; true"}'
    async with stage(FieldModel(calls(("a", "shell", arguments)), says("so")), shell(census, tmp_path, 100.0)) as scene:
        await scene.say("go")
        await until(lambda: len(census.alive()) >= 2)
        assert await scene.harness.interrupt(S)
        await scene.idle()
        assert census.alive() == []
        (result,) = await results(scene)
        assert result.outcome is CallOutcome.INTERRUPTED


LEFT = {
    "background": "sleep $LABEL & echo done",
    "setsid": "setsid sleep $LABEL & echo done",
    "double fork": "(setsid sh -c 'sleep $LABEL &' &) ; sleep 0.2; echo done",
    "nohup": "nohup sleep $LABEL >/dev/null 2>&1 & echo done",
    "only stderr held": "sleep $LABEL >/dev/null </dev/null & echo done",
}


@pytest.mark.parametrize("kind", LEFT)
async def test_a_command_returns_though_its_child_lives_and_the_child_is_listed(
    kind: str, census: Census, tmp_path: Path
) -> None:
    """F-30, SES-8: with what it printed; the child is listed with its PID, and ended at the end of the turn, by policy."""
    arguments = json.dumps({"command": LEFT[kind]})
    alive: list[list[str]] = []

    async def next_request(request: object, on_event: Callable[[object], None]) -> None:
        alive.append(census.alive())
        for _, event in says("so"):
            on_event(event)

    async with stage(
        FieldModel(calls(("a", "shell", arguments)), next_request), shell(census, tmp_path, 50.0)
    ) as scene:
        assert (await scene.harness.turn(S, "go")).outcome == "ok"
        (result,) = await results(scene)
        assert result.outcome is CallOutcome.OK and result.text.startswith("done\n")
        (record,) = scene.loop().machine.calls.abandoned.records
        assert record.what == "process" and record.expected and str(record.number) in result.text
        assert any(line.startswith(f"{record.number} ") for line in alive[0]), "it lived while the turn went on"
        await until(lambda: scene.told(AbandonedEnded))
        assert census.alive() == []


async def test_a_thread_that_cannot_be_stopped_is_given_up_and_its_late_result_dropped() -> None:
    """F-31, SES-7, SES-8: the call returns at its second though its thread sleeps on; listed; the late result is on the record."""
    gate, begun = threading.Event(), threading.Event()

    @tool(timeout=0.3)
    def sleeper() -> str:
        """Sleep."""
        begun.set()
        gate.wait(50)
        return "late"

    with contextlib.ExitStack() as stack:
        stack.callback(gate.set)
        async with stage(FieldModel(calls(("a", "sleeper")), says("so")), sleeper) as scene:
            assert (await scene.harness.turn(S, "go")).outcome == "ok"
            assert begun.is_set() and not gate.is_set()
            (result,) = await results(scene)
            assert result.outcome is CallOutcome.TIMEOUT
            (record,) = scene.loop().machine.calls.abandoned.records
            assert record.what == "thread" and record.number is not None and record.ended is None
            assert f"thread {record.number}" in result.text
            gate.set()
            await until(lambda: scene.told(AbandonedEnded))
            (record,) = scene.loop().machine.calls.abandoned.records
            assert record.late == "late" and len(await results(scene)) == 1
            assert [each.what for each in scene.told(ReplyDropped)] == ["result"]


async def test_threads_that_were_given_up_are_bounded_and_the_next_call_is_refused() -> None:
    """F-31, SES-8: with a bound of 3 (40 unless set) the fourth call is answered with an error, and works once they ended."""
    gate = threading.Event()

    @tool(timeout=0.2)
    def sleeper() -> str:
        """Sleep."""
        gate.wait(50)
        return "in time"

    rounds = [reply for number in range(4) for reply in (calls((f"c{number}", "sleeper")), says("so"))]
    with contextlib.ExitStack() as stack:
        stack.callback(limit_tool_threads, 40)
        stack.callback(gate.set)
        limit_tool_threads(3)
        async with stage(FieldModel(*rounds, calls(("last", "sleeper")), says("so")), sleeper) as scene:
            for _ in range(4):
                assert (await scene.harness.turn(S, "go")).outcome == "ok"
            outcomes = [each.outcome for each in await results(scene)]
            assert outcomes == [CallOutcome.TIMEOUT] * 3 + [CallOutcome.ERROR]
            assert "was not run" in (await results(scene))[-1].text
            gate.set()
            await until(lambda: len(scene.told(AbandonedEnded)) == 3)
            await scene.harness.turn(S, "go")
            assert (await results(scene))[-1].text == "in time"

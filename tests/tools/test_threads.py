"""Plain tools whose calls are given up (F-28, F-31)."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator

import pytest
import trio

from concorde_trio import (
    CallStarted,
    MemoryStore,
    ReplyEnd,
    ScriptedModel,
    SessionHarness,
    StopReason,
    TextDelta,
    limit_tool_threads,
    tool,
)
from concorde_trio.errors import UsageError
from concorde_trio.testing.tool_context import FakeToolContext, tool_context
from concorde_trio.tools import threads


class Held:
    """A tool that blocks its thread until the gate is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun = 0
        self.tool = tool(self.hold)

    def hold(self, number: int = 0) -> str:
        """Hold a thread."""
        self.begun += 1
        self.gate.wait(50)
        return f"late {number}"

    async def give_up(self, context: FakeToolContext, number: int = 0) -> None:
        """A call that is cancelled once its thread is at work."""
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                before = self.begun
                nursery.start_soon(self.tool.call, {"number": number}, context)
                await until(lambda: self.begun > before)
                scope.cancel()


async def until(condition: Callable[[], object]) -> None:
    """Poll for what another thread does; the bound of the test turns a hang into a failure."""
    while not condition():  # noqa: ASYNC110
        await trio.sleep(0.001)


@pytest.fixture
def held() -> Iterator[Held]:
    held = Held()
    with contextlib.ExitStack() as stack:
        stack.callback(limit_tool_threads, 40)
        stack.callback(held.gate.set)
        yield held


async def test_an_abandoned_thread_is_listed_until_it_ends_and_its_late_result_is_kept_there(held: Held) -> None:
    """SES-7, SES-8, F-31: the call returns at once, the thread is listed with its number."""
    async with tool_context() as context:
        await held.give_up(context, 7)
        (work,) = context.leftovers
        assert work.leftover.what == "thread"
        assert work.leftover.number in {thread.native_id for thread in threading.enumerate()}
        assert "hold" in work.leftover.about
        assert not work.is_over
        held.gate.set()
        await work.over.wait()
        assert work.result == "late 7"


@pytest.mark.parametrize("exits", [SystemExit(2), KeyboardInterrupt()])
async def test_an_exit_in_a_thread_ends_its_call_and_not_the_worker(exits: BaseException) -> None:
    """SES-13: ``sys.exit``, as argparse calls it, is a failure of the tool; the turn and the other sessions go on."""

    def leave() -> str:
        raise exits

    replies = [
        [(0.0, CallStarted(0, "call_1", "leave", "{}")), (0.0, ReplyEnd(StopReason.CALLS))],
        [(0.0, TextDelta("I stay.")), (0.0, ReplyEnd())],
    ]
    async with SessionHarness(store=MemoryStore(), model=ScriptedModel(replies), tools=[tool(leave)]).open() as harness:
        assert (await harness.turn("ann", "Leave.")).text == "I stay."
        result = (await harness.store.messages("ann"))[2]
        assert (result.outcome, type(exits).__name__ in result.text) == ("error", True)


async def test_an_error_that_comes_too_late_is_on_the_record(held: Held) -> None:
    """SES-7: in words."""

    def fail() -> None:
        held.begun += 1
        held.gate.wait(50)
        raise LookupError("too late")

    held.tool = tool(name="fail")(fail)  # type: ignore[assignment]
    async with tool_context() as context:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(held.tool.call, {}, context)
                await until(lambda: held.begun)
                scope.cancel()
        held.gate.set()
        (work,) = context.leftovers
        await work.over.wait()
        assert work.result == "LookupError: too late"


async def test_the_forty_first_call_is_refused_while_forty_threads_are_abandoned(held: Held) -> None:
    """F-31: an error result that says so; when one has ended there is room again."""
    async with tool_context() as context:
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as calls:
                    for number in range(40):
                        calls.start_soon(held.tool.call, {"number": number}, context)
                    await until(lambda: held.begun == 40)
                    results = []

                    async def wait_for_room() -> None:
                        results.append(await held.tool.call({}, context))

                    nursery.start_soon(wait_for_room)
                    await trio.testing.wait_all_tasks_blocked()
                    assert results == []  # they are busy, not abandoned
                    scope.cancel()
        assert len(context.leftovers) == 40
        results.append(await held.tool.call({}, context))
        for result in results:
            assert result.is_error
            assert "40 earlier calls" in result.text
        assert held.begun == 40
        held.gate.set()
        for work in context.leftovers:
            await work.over.wait()
        assert (await held.tool.call({"number": 1}, context)).text == "late 1"


async def test_calls_beyond_the_bound_wait_and_run_when_a_thread_is_free(held: Held) -> None:
    """SES-8: bounded in number."""
    limit_tool_threads(2)
    async with tool_context() as context, trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(held.tool.call, {"number": number}, context)
        await until(lambda: held.begun == 2)
        await trio.testing.wait_all_tasks_blocked()
        assert held.begun == 2
        held.gate.set()
    assert held.begun == 5


async def test_a_call_that_is_cancelled_while_it_waits_for_room_leaves_nothing(held: Held) -> None:
    """Nothing was begun, so nothing is listed."""
    limit_tool_threads(1)
    async with tool_context() as context, trio.open_nursery() as nursery:
        nursery.start_soon(held.tool.call, {}, context)
        await until(lambda: held.begun == 1)
        with trio.CancelScope() as scope:
            scope.cancel()
            await held.tool.call({}, context)
        with trio.move_on_after(0.01):
            await held.tool.call({}, context)
        assert context.leftovers == []
        held.gate.set()
    assert held.begun == 1


async def test_a_thread_can_ask_whether_it_was_cancelled() -> None:
    """SES-3: trio.from_thread.check_cancelled; the thread ends, and is no longer listed."""
    begun = threading.Event()

    @tool
    def ask() -> None:
        """Ask until told."""
        begun.set()
        while True:
            trio.from_thread.check_cancelled()
            threading.Event().wait(0.001)

    async with tool_context() as context:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask.call, {}, context)
                await until(begun.is_set)
                scope.cancel()
        for work in context.leftovers:
            await work.over.wait()
            assert work.result is None


def test_a_thread_that_outlives_trio_harms_nobody_and_is_no_longer_counted() -> None:
    """F-31: its end is noticed though there is no run to tell."""
    held = Held()

    async def main() -> None:
        async with tool_context() as context:
            await held.give_up(context)

    trio.run(main)
    assert threads._Process.abandoned == 1
    held.gate.set()
    while threads._Process.abandoned:
        threading.Event().wait(0.001)


async def test_a_blocking_tool_does_not_hold_up_other_tasks(held: Held) -> None:
    """F-28: their ticks go on while it blocks."""
    async with tool_context() as context, trio.open_nursery() as nursery:
        nursery.start_soon(functools.partial(held.tool.call, {}, context))
        await until(lambda: held.begun)
        for _ in range(20):
            with trio.fail_after(1):
                await trio.sleep(0.001)
        held.gate.set()


@pytest.mark.parametrize("count", [0, -1, 2.5, True, "40"])
def test_a_number_of_threads_that_is_none_is_refused(count: object) -> None:
    """An integer of at least 1."""
    with pytest.raises(UsageError, match="at least 1"):
        limit_tool_threads(count)  # type: ignore[arg-type]

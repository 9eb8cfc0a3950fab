"""A member's executor, while a take is under way: what it brings is this member's, though nobody here knows it yet."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

import attrs
import trio
import trio.testing

from concorde_trio import FunctionRuntime, RunPrompt
from concorde_trio.records import Run, RunOutcome, RunState
from concorde_trio.signals.executor import Executor
from concorde_trio.signals.fleet import Execution, Finished, Membership, StopAsked
from concorde_trio.signals.options import WorkerOptions


@attrs.define(eq=False)
class SlowToTake:
    """A membership whose next take is answered when it is told to be."""

    answer: trio.Event = attrs.field(factory=trio.Event)
    asked: trio.Event = attrs.field(factory=trio.Event)
    offered: list[Execution] = attrs.field(factory=list)
    stop: list[StopAsked] = attrs.field(factory=list)
    finished: dict[str, RunOutcome] = attrs.field(factory=dict)

    async def take(self, limit: int, now: float) -> list[Execution]:
        self.asked.set()
        await self.answer.wait()
        taken, self.offered = self.offered[:limit], self.offered[limit:]
        return taken

    async def finish(self, ends: Sequence[Finished]) -> set[str]:
        await trio.lowlevel.checkpoint()
        self.finished |= {end.run_id: end.outcome for end in ends}
        return {end.run_id for end in ends}

    async def stops(self) -> list[StopAsked]:
        await trio.lowlevel.checkpoint()
        return self.stop


def offered(name: str) -> Execution:
    """A run that may start."""
    run = Run(
        id=name,
        signal_id=f"signal of {name}",
        signal_seq=1,
        position=1,
        index=0,
        session=name,
        prompt=name,
        state=RunState.RUNNING,
        queued_at=0.0,
    )
    return Execution(run, "errand", 1)


@asynccontextmanager
async def executing(member: SlowToTake, *, hours: float = 0) -> AsyncIterator[Executor]:
    """An executor of runs that take so long."""

    async def work(prompt: RunPrompt) -> RunOutcome:
        await trio.sleep(hours * 3600)
        return RunOutcome.ok("done")

    executor = Executor(cast("Membership", member), FunctionRuntime(work), WorkerOptions(), None, lambda: True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(executor.run)
        executor.heard("offer")
        await member.asked.wait()
        yield executor
        nursery.cancel_scope.cancel()


async def test_who_leaves_waits_for_what_is_being_taken(autojump_clock: trio.testing.MockClock) -> None:
    """STP-1, REC-3: else a run that never started would be one of a member that is gone, and fail."""
    member = SlowToTake(offered=[offered("a")])
    idle = trio.Event()
    async with executing(member) as executor, trio.open_nursery() as nursery:

        async def leave() -> None:
            await executor.wait_idle()
            idle.set()

        nursery.start_soon(leave)
        await trio.testing.wait_all_tasks_blocked()
        assert not idle.is_set()
        member.answer.set()
        with trio.fail_after(5):
            await idle.wait()
        assert member.finished["a"].state is RunState.DONE


async def test_who_leaves_while_more_is_taken_is_told_when_all_is_over(autojump_clock: trio.testing.MockClock) -> None:
    """STP-1: whoever waits for the first run hears of the end of the last."""
    member = SlowToTake(offered=[offered("a")])
    async with executing(member, hours=1) as executor, trio.open_nursery() as nursery:
        member.answer.set()
        await trio.testing.wait_all_tasks_blocked()
        member.offered, member.answer = [offered("b")], trio.Event()
        executor.heard("offer")

        async def leave() -> None:
            with trio.fail_after(3 * 3600):
                await executor.wait_idle()

        nursery.start_soon(leave)
        await trio.testing.wait_all_tasks_blocked()
        member.answer.set()
    assert member.finished.keys() == {"a", "b"}


async def test_what_is_taken_after_a_cancelling_stop_is_ended_at_once(autojump_clock: trio.testing.MockClock) -> None:
    """STP-3: it was on its way when the stop came."""
    member = SlowToTake(offered=[offered("a")])
    async with executing(member, hours=9) as executor:
        executor.stop_all("the worker was stopped")
        member.answer.set()
        with trio.fail_after(5):
            await executor.wait_idle()
    assert member.finished["a"].state is RunState.CANCELLED


async def test_a_stop_that_is_heard_before_the_take_is_known_is_heeded(autojump_clock: trio.testing.MockClock) -> None:
    """RUN-6: and not by the sweep only."""
    member = SlowToTake(offered=[offered("a")])
    async with executing(member, hours=9) as executor:
        member.stop = [StopAsked("a", "enough", RunState.CANCELLED)]
        executor.heard("stop")
        await trio.testing.wait_all_tasks_blocked()
        member.answer.set()
        with trio.fail_after(5):
            await executor.wait_idle()
    assert member.finished["a"].error == "enough"

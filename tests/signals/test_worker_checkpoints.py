"""A run's whole life, ended at each of its checkpoints in turn: by a cancellation, an exception, and each of the stops.

The law: the number of checkpoints is asserted, so that none is forgotten when the worker changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import attrs
import pytest
import trio
import trio.testing

from concorde_trio.records import RunState
from concorde_trio.signals.views import rebuilt_locks
from tests.signals.stage import Stage, ended, play, run, settled

TAG = "t-0123456789abcdef"
CHECKPOINTS = 87
"""Steps of all tasks from the start of the program to its end, with scheduler seed 0."""


class Mine(Exception):
    """Raised in the block of the worker."""


@attrs.define(eq=False)
class AtCheckpoint(trio.abc.Instrument):
    """Counts the steps of all tasks, and calls ``act`` before step ``at``."""

    at: int
    act: Callable[[], None]
    steps: int = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps += 1
        if self.steps == self.at:
            self.act()


async def life(stage: Stage, boom: trio.Event) -> None:
    """A handle that takes time, two runs that share a session, one of another signal behind them, tags, posts."""
    async with stage.recover(settle=trio.lowlevel.checkpoint), trio.open_nursery() as nursery:

        async def explode() -> None:
            await boom.wait()
            raise Mine

        nursery.start_soon(explode)
        runs = [run("R1", 2, session="s", tag=TAG), run("R2", 2, session="s", resources=["w"])]
        await stage.emit("held", *runs, handle=1, post=1)
        await stage.emit("again", run("R3", 1, resources=["w"]), post=1)
        await stage.all_settled()
        nursery.cancel_scope.cancel()


def live(how: str, at: int, seed: int = 0) -> tuple[Stage, int]:
    """The life, ended in this way before step ``at`` (0: not at all); the stage, and the steps that it took."""
    stage, boom, outer = Stage(), trio.Event(), trio.CancelScope()

    def act() -> None:
        if how == "cancel":
            outer.cancel()
        elif how == "raise":
            boom.set()
        elif stage.worker is not None:
            stage.worker.stop(how.removeprefix("stop "))

    async def main() -> None:
        with outer:
            await life(stage, boom)

    instrument = AtCheckpoint(at, act)
    try:
        play(main, seed=seed, instruments=(instrument,))
    except BaseExceptionGroup as group:
        # A stop makes the wait for what it parks fail; nothing else may come out of it.
        allowed = {"raise": Mine, "cancel": ()}.get(how, Exception)
        assert group.split(allowed)[1] is None or how.startswith("stop"), group  # type: ignore[arg-type]
    return stage, instrument.steps


def judge(stage: Stage, how: str) -> None:
    """What must be true after it was ended, and after the next worker."""

    async def main() -> None:
        async with stage.opened() as store:
            left, before = await store.unfinished(), await stage.runs()
            # Nothing holds or wants a lock but what is stored as doing so.
            assert stage.worker is not None
            assert rebuilt_locks(left).locks() == stage.worker.locks()
            assert not [each for each in before.values() if each.state is RunState.RUNNING]
            assert all(entry.signal.phase == "running" for entry in left)
        async with stage.recover() as worker:
            await stage.all_settled()
            assert worker.locks() == [] and worker._core is not None and not worker._core.runs
        records, runs = await stage.signals(), await stage.runs()
        assert all(settled(each) for each in records.values()) and all(ended(each) for each in runs.values())
        starts, posts = stage.noted("start"), stage.noted("post")
        assert len(starts) == len(set(starts)) and sorted(posts) == sorted(records)
        for each in records.values():
            if each.kind == "held":
                never = how in ("raise", "cancel", "stop cancel") and "before handle was called" in (each.error or "")
                assert len(stage.when("handle", each.id)) == (0 if never else 1)
        assert [name for name in starts if name != "R3"] == [name for name in ("R1", "R2") if name in starts]
        assert all(name in runs for name in starts)
        # A stop writes down what it did: nothing was cut, and what never ran was parked and is done.
        assert not [each for each in runs.values() if "worker stopped while it ran" in (each.error or "")]
        assert not [each for each in records.values() if "cut off" in (each.error or "")]
        if how in ("stop drain", "stop park"):
            assert {each.state for each in runs.values()} <= {RunState.DONE}
            assert not any(outcome.interrupted for outcome in stage.outcomes.values())
        async with stage.opened() as store:
            assert await store.tags() == [] and await store.unfinished() == []

    play(main)


def test_the_life_has_as_many_checkpoints_as_it_had() -> None:
    """RUN-1: when this number changes, so does what the tests below go through; set it anew."""
    stage, steps = live("cancel", 0)
    assert sorted(stage.noted("start")) == ["R1", "R2", "R3"]
    assert steps == CHECKPOINTS


WAYS = ["cancel", "raise", "stop drain", "stop park", "stop cancel"]


@pytest.mark.parametrize(
    "how", [each if each == "cancel" else pytest.param(each, marks=pytest.mark.slow) for each in WAYS]
)
def test_whatever_checkpoint_it_is_ended_at_the_books_are_right(how: str) -> None:
    """STP-1 to STP-4, RUN-6, LCK-2, CLM-6, REC-3: no lock is left, nothing is lost, nothing happens twice."""
    for at in range(1, CHECKPOINTS + 1):
        stage, _ = live(how, at)
        judge(stage, how)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9 if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else 3))
@pytest.mark.parametrize("how", WAYS)
def test_and_in_whatever_order_trio_wakes_the_tasks(how: str, seed: int) -> None:
    """LCK-5: the same with more seeds of Trio's scheduler, each with its own number of checkpoints."""
    at, steps = 1, CHECKPOINTS
    while at <= steps + 1:
        stage, steps = live(how, at, seed)
        judge(stage, how)
        at += 1

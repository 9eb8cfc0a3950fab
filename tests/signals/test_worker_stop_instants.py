"""STP: a stop in the very instant of something else, before the start, and while it starts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio.events import WorkerRecovered
from concorde_trio.records import SignalState
from concorde_trio.signals.options import WorkerOptions
from concorde_trio.signals.worker import SignalWorker
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock


async def parked(stage: Stage) -> list[str]:
    """The names of the runs that are stored and were not started."""
    return [name for name, state in (await stage.states()).items() if state == "pending"]


@pytest.mark.parametrize("mode", ["drain", "park", "cancel"])
@pytest.mark.parametrize("kind", ["held", "again"])
async def test_a_stop_in_the_instant_of_everything_else(
    autojump_clock: Clock, some_seed: int, mode: str, kind: str
) -> None:
    """STP-1, STP-2, STP-3, LCK-5: ends, posts, a handle and claims are due in the instant of the stop; a new worker
    then finds nothing that would be run, handled or posted twice."""
    stage = Stage()
    async with stage.serve(settle=trio.lowlevel.checkpoint) as worker:
        for number in range(3):
            await stage.emit(kind, run(f"R{number}", 2, session="s"), run(f"S{number}", 3), handle=1, post=1)
        await trio.sleep(3)
        worker.stop(mode)
        await worker.stopped.wait()
    async with stage.serve():
        await stage.all_settled()
    starts = stage.noted("start")
    assert len(starts) == len(set(starts)) and len(set(stage.noted("post"))) == len(stage.noted("post"))
    assert [name for name in starts if name[0] == "R"] == sorted(name for name in starts if name[0] == "R")
    handles = stage.noted("handle")
    assert kind == "again" or len(handles) == len(set(handles))


@pytest.mark.parametrize(("mode", "second"), [("park", "done"), ("cancel", "cancelled")])
async def test_what_may_start_in_the_instant_of_a_stop_starts(
    autojump_clock: Clock, some_seed: int, mode: str, second: str
) -> None:
    """LCK-5: ends, then starts, then the stop; what was to be claimed in that instant is not."""
    stage = Stage()
    async with stage.serve() as worker:
        await stage.emit("free", run("R1", 3, session="s"), run("R2", 3, session="s"), run("R3", 3, session="s"))
        await trio.sleep(3)
        worker.stop(mode)
        await stage.emit("free", run("R4", 3))
        await worker.stopped.wait()
    assert await stage.states() == {"R1": "done", "R2": second, "R3": "pending"}
    assert stage.when("start", "R2") == [3]


@pytest.mark.parametrize("mode", ["drain", "park", "cancel"])
async def test_a_stop_before_the_start_is_a_stop(autojump_clock: Clock, mode: str) -> None:
    """STP-1 to STP-4, REC-3: recovery is done; a park or cancel starts nothing of what it found."""
    stage = Stage()
    async with stage.serve() as worker:
        first = await stage.emit("held", run("R1", 5, session="s"), run("R2", 5, session="s"))
        await trio.sleep(1)
        worker.stop("park")
    handlers: Any = stage.handlers()
    second = SignalWorker(stage.store, stage, handlers, WorkerOptions(wall_clock=trio.current_time))
    second.bus.call(stage.events.append)
    second.stop(mode)
    async with stage.opened() as store, store.own(), trio.open_nursery() as nursery:
        await nursery.start(second.run)
    assert len(stage.told(WorkerRecovered)) == 1 and second.status == "stopped"
    assert await parked(stage) == ([] if mode == "drain" else ["R2"])
    async with stage.serve():
        await stage.all_settled()
    assert stage.noted("start") == ["R1", "R2"] and stage.noted("post") == [first]
    assert set((await stage.states()).values()) == {"done"}


@pytest.mark.parametrize("mode", ["drain", "park", "cancel"])
async def test_a_stop_while_it_opens_is_a_stop(autojump_clock: Clock, mode: str) -> None:
    """STP-4: whoever asks, and at whatever moment of the start."""

    class Slow(Stage):
        @asynccontextmanager
        async def open(self, context: object) -> AsyncIterator[None]:
            await trio.sleep(5)
            yield

    stage = Slow()
    worker = SignalWorker(stage.store, stage, stage.handlers(), WorkerOptions(wall_clock=trio.current_time))
    async with stage.opened() as store, store.own(), trio.open_nursery() as nursery:
        await worker.emit("free", {"runs": [run("R1")], "handle": 0, "post": 0})
        nursery.start_soon(worker.run)
        await trio.sleep(1)
        assert worker.status == "starting"
        worker.stop(mode)
    assert trio.current_time() == 5 and worker.status == "stopped"
    assert [record.state for record in (await stage.signals()).values()] == ["pending"]


async def test_an_end_in_the_instant_in_which_the_grace_is_over_is_written(
    autojump_clock: Clock, some_seed: int
) -> None:
    """STP-3, LCK-5: a post that finishes just in time has finished."""
    stage = Stage()
    async with stage.serve(stop_grace=3) as worker:
        first = await stage.emit("held", run("R1", 1), post=3)
        await trio.sleep(1)
        worker.stop("cancel")
        record = await worker.wait_settled(first)
    assert record.state is SignalState.DONE

"""STP-5 at the worker's door: what is old is removed, and nothing that is not settled."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from concorde_trio.events import Pruned
from concorde_trio.signals.store import Pruned as Removed
from tests.signals.crashing_stores import crashing
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock


@pytest.fixture(params=["memory", "sqlite"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    return Stage(crashing(request.param, tmp_path))


async def test_prune_removes_what_settled_long_enough_ago(autojump_clock: Clock, stage: Stage) -> None:
    """STP-5: signals with their runs; by the time at which they settled, not at which they were emitted."""
    async with stage.serve() as worker:
        first = await stage.emit("held", run("R1", 1), run("R2", 1))
        long = await stage.emit("free", run("R3", 50))
        failed = await stage.emit("nobody")
        await trio.sleep(60)
        last = await stage.emit("free", run("R4", 1))
        await worker.wait_settled(last)
        assert await worker.prune(20) == Removed(signals=2, runs=2)
        assert list(await stage.signals()) == [long, last]
        assert [(each.signals, each.runs) for each in stage.told(Pruned)] == [(2, 2)]  # type: ignore[attr-defined]
        assert await worker.store.signal(first) is await worker.store.signal(failed) is None
        assert await worker.prune(1_000) == Removed(signals=0, runs=0)
        assert len(stage.told(Pruned)) == 1


async def test_what_is_not_settled_is_never_removed_however_old(autojump_clock: Clock, stage: Stage) -> None:
    """STP-5: pending, in its handle, running, waiting, held, posting, parked; each goes on to its end."""
    async with stage.serve() as worker:
        ids = [
            await stage.emit("held", run("ended", 1, session="s"), run("runs", 50, session="t"), post=1),
            await stage.emit("held", run("waits", 1, session="s"), post=1),
            await stage.emit("held", post=50),
            await stage.emit("held", run("late", 1), handle=50),
            await stage.emit("held", run("pending", 1)),
        ]
        await trio.sleep(40)
        assert await worker.prune(0) == Removed(signals=0, runs=0)
        assert list(await stage.signals()) == ids
        await stage.all_settled()
        await trio.sleep(1)
        assert await worker.prune(0) == Removed(signals=5, runs=5)
        assert await stage.signals() == {}
    assert sorted(stage.noted("start")) == ["ended", "late", "pending", "runs", "waits"]


async def test_a_worker_prunes_on_a_schedule(autojump_clock: Clock, stage: Stage) -> None:
    """STP-5: when it starts, and then every ``prune_every``."""
    async with stage.serve() as worker:
        old = await stage.emit("free", run("R1", 1))
        await worker.wait_settled(old)
    await trio.sleep(100)
    async with stage.serve(prune_after=50, prune_every=10):
        await trio.sleep(1)
        assert old not in await stage.signals()
        new = await stage.emit("free", run("R2", 1))
        await trio.sleep(45)
        assert new in await stage.signals()
        await trio.sleep(20)
        assert await stage.signals() == {}
    assert trio.current_time() < 200


async def test_a_seq_and_a_position_are_never_used_again(autojump_clock: Clock, stage: Stage) -> None:
    """SIG-3, LCK-2: what was pruned counts, over restarts."""
    async with stage.serve() as worker:
        await stage.emit("free", run("R1", 1), run("R2", 1))
        await stage.all_settled()
        await trio.sleep(1)
        await worker.prune(0)
    async with stage.serve():
        await stage.emit("free", run("R3", 1))
        await stage.all_settled()
        (record,), (row,) = (await stage.signals()).values(), (await stage.runs()).values()
    assert (record.seq, row.position) == (2, 3)


async def test_a_pruned_key_may_be_emitted_again(autojump_clock: Clock, stage: Stage) -> None:
    """SIG-7, STP-5: a key is remembered as long as its signal."""
    payload = {"runs": [], "handle": 0, "post": 0}
    async with stage.serve() as worker:
        first = await worker.emit("free", payload, key="k")
        await worker.wait_settled(first)
        await trio.sleep(1)
        await worker.prune(0)
        second = await worker.emit("free", payload, key="k")
        await worker.wait_settled(second)
    assert first != second

"""STP-5 at the worker's door: sessions that nobody used go with what was settled."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from concorde_trio.events import Pruned
from concorde_trio.signals.store import Pruned as Removed
from concorde_trio.testing.session_store_checks.samples import given, save
from tests.signals.crashing_stores import crashing
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock


@pytest.fixture(params=["memory", "sqlite"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    return Stage(crashing(request.param, tmp_path))


async def test_prune_removes_sessions_that_nobody_used(autojump_clock: Clock, stage: Stage) -> None:
    """STP-5: not those with a queued input, nor those of a run that has not ended; the event says how many."""
    async with stage.serve() as worker:
        now = trio.current_time()
        await stage.store.apply([save(name, at=now) for name in ("old", "runs", "waits")])
        await stage.store.apply([given("i", "waits", at=now)])
        await stage.emit("free", run("R1", 100, session="runs"))
        await trio.sleep(50)
        await stage.store.apply([save("young", at=trio.current_time())])
        assert await worker.prune(20) == Removed(signals=0, runs=0, sessions=1)
        assert await stage.store.session("old") is None
        for name in ("runs", "waits", "young"):
            assert await stage.store.session(name) is not None
        assert [each.sessions for each in stage.told(Pruned)] == [1]  # type: ignore[attr-defined]

"""REC-1: a queue has one worker at a time; and a run that cannot even be called is one run that failed."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio.errors import QueueTaken, UsageError
from concorde_trio.records import RunPrompt
from concorde_trio.signals.worker import open_worker
from concorde_trio.stores.memory import MemoryStore
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock


async def test_q13a_a_second_worker_is_refused(autojump_clock: Clock) -> None:
    """REC-1 (Q-13a): at once; the first is not disturbed."""
    stage = Stage()
    async with stage.serve() as worker:
        await stage.emit("free", run("R1", 5))
        await trio.sleep(1)
        other = MemoryStore.__new__(MemoryStore)
        other.__dict__ = {**stage.store.__dict__, "_token": None}
        with pytest.raises(QueueTaken, match="has a worker already"):
            async with open_worker(other, stage, stage.handlers()):
                pass  # pragma: no cover
        await stage.all_settled()
        assert worker.status == "running"
    assert stage.noted("start") == ["R1"]


async def test_q13a_a_second_worker_waits_and_each_run_starts_once(autojump_clock: Clock) -> None:
    """REC-1 (Q-13a): the old one drains for three seconds while the new one waits its turn."""
    stage = Stage()
    other = MemoryStore.__new__(MemoryStore)

    async def second() -> None:
        other.__dict__ = {**stage.store.__dict__, "_token": None, "_wakes": []}
        async with open_worker(
            other, stage, stage.handlers(), wait_for_queue=True, wall_clock=trio.current_time
        ) as worker:
            stage.note("open", "second")
            for signal_id in await stage.signals():
                await worker.wait_settled(signal_id)

    async with trio.open_nursery() as nursery, stage.serve():
        for number in range(5):
            await stage.emit("held", run(f"R{number}", 3), run(f"S{number}", 3, session="s"))
        await trio.sleep(1)
        nursery.start_soon(second)
        await trio.sleep(1)
        await stage.emit("held", run("new", 3))
    assert stage.when("open", "second") == [15]
    starts = stage.noted("start")
    assert len(starts) == len(set(starts)) == 11
    assert stage.when("start", "new") == [15]


async def test_q13b_a_dispatch_that_raises_stops_no_other(autojump_clock: Clock) -> None:
    """RUN-3 (Q-13b): the third of ten raises as soon as it is called."""
    stage = Stage()
    real = stage.run

    def third(prompt: RunPrompt) -> Any:
        if "R3" in prompt.text:
            raise ValueError("not even a coroutine")
        return real(prompt)

    stage.run = third  # type: ignore[method-assign]
    async with stage.serve():
        await stage.emit("free", *(run(f"R{number}", 1) for number in range(1, 11)))
        await stage.all_settled()
    states = await stage.states()
    assert states.pop("R3") == "failed" and set(states.values()) == {"done"} and len(states) == 9


async def test_a_worker_runs_once(autojump_clock: Clock) -> None:
    """REC-1: neither twice at a time nor again: its waiters, its events and its stop are those of one life."""
    stage = Stage()
    async with stage.serve() as worker:
        with pytest.raises(UsageError, match="a SignalWorker runs once; make another one"):
            await worker.run()
    async with stage.opened() as store, store.own():
        with pytest.raises(UsageError, match="runs once"):
            await worker.run()
    assert worker.status == "stopped" and worker.last_error is None

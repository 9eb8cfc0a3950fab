"""SIG at the worker's door: what an emitted signal becomes, and who is told of it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio.errors import InsideTransaction, InvalidName, InvalidValue, UsageError
from concorde_trio.records import SignalState
from concorde_trio.signals.emit import new_signal
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock


async def test_an_emitted_signal_is_handled_run_and_settled(autojump_clock: Clock) -> None:
    """SIG-1, SIG-4: pending, processing, done; and every part of it happened once, in this order."""
    stage = Stage()
    async with stage.serve() as worker:
        signal_id = await stage.emit("held", run("R1", 5), post=2)
        assert (await stage.signals())[signal_id].state is SignalState.PENDING
        await trio.sleep(1)
        assert (await stage.signals())[signal_id].state is SignalState.PROCESSING
        record = await worker.wait_settled(signal_id)
    assert (record.state, record.error, record.settled_at) == (SignalState.DONE, None, 7)
    assert stage.log == [
        (0, "handle", signal_id),
        (0, "handled", signal_id),
        (0, "start", "R1"),
        (5, "end", "R1"),
        (5, "post", signal_id),
        (7, "posted", signal_id),
    ]
    assert await stage.states() == {"R1": "done"}


async def test_signals_of_one_transaction_keep_the_order_of_the_calls(autojump_clock: Clock) -> None:
    """SIG-2, SIG-3: and nothing of them is seen before it commits."""
    stage = Stage()
    async with stage.serve() as worker:
        async with worker.store.transaction() as tx:
            payload = {"runs": [], "handle": 0, "post": 0}
            ids = [await worker.emit("held", payload, tx=tx) for _ in range(20)]
            await trio.testing.wait_all_tasks_blocked()
            assert stage.log == []
        await stage.all_settled()
    assert stage.noted("handle") == ids
    assert [each.seq for each in (await stage.signals()).values()] == list(range(1, 21))


async def test_a_rolled_back_emit_wakes_nobody(autojump_clock: Clock) -> None:
    """SIG-2: neither rows nor signal."""
    stage = Stage()
    async with stage.serve() as worker:
        with pytest.raises(ZeroDivisionError):
            async with worker.store.transaction() as tx:
                await worker.emit("held", {}, tx=tx)
                raise ZeroDivisionError
        await trio.sleep(10)
    assert stage.log == [] and await stage.signals() == {}


async def test_what_would_wait_for_its_own_transaction_raises_at_once(autojump_clock: Clock) -> None:
    """SIG-2: an emit without tx, a wait, a cancel and a retry inside a transaction."""
    stage = Stage()
    async with stage.serve() as worker:
        signal_id = await stage.emit("free")
        await worker.wait_settled(signal_id)
        began = trio.current_time()
        async with worker.store.transaction():
            for call in (worker.emit, worker.wait_settled, worker.retry):
                with pytest.raises(InsideTransaction):
                    await call(signal_id)
        assert trio.current_time() == began


@pytest.mark.parametrize("payload", [float("nan"), "a\0b", "\ud800", {1: 2}, object(), (1, 2), "x" * 1_000_001])
async def test_what_no_store_can_hold_is_refused_and_nothing_is_stored(autojump_clock: Clock, payload: Any) -> None:
    """SIG-5: the place is named."""
    stage = Stage()
    async with stage.serve() as worker:
        with pytest.raises(InvalidValue, match=r"payload\.deep\[0\]|payload is") as caught:
            await worker.emit("free", {"deep": [payload]})
        assert caught.value.place.startswith("payload")
    assert await stage.signals() == {}


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "\x00", None, 7])
async def test_a_kind_or_key_that_is_no_name_is_refused(autojump_clock: Clock, name: Any) -> None:
    """CLM-7 for kinds and keys."""
    stage = Stage()
    async with stage.serve() as worker:
        with pytest.raises(InvalidName):
            await worker.emit(name)
        if name is not None:
            with pytest.raises(InvalidName):
                await worker.emit("free", key=name)


async def test_a_second_emit_of_a_key_gives_the_first_id_and_runs_nothing(autojump_clock: Clock) -> None:
    """SIG-7: also after the first has settled; another kind's key is another."""
    stage = Stage()
    async with stage.serve() as worker:
        payload = {"runs": [run("R1")], "handle": 0, "post": 0}
        first = await worker.emit("free", payload, key="k")
        await worker.wait_settled(first)
        assert await worker.emit("free", payload, key="k") == first
        assert await worker.emit("held", payload, key="k") != first
        await stage.all_settled()
    assert stage.noted("start") == ["R1", "R1"]


async def test_a_producer_without_trio_emits_from_its_own_thread() -> None:
    """SIG-8: and the worker is woken at once, not by its sweep."""
    stage = Stage()
    async with stage.serve(settle=trio.lowlevel.checkpoint) as worker:
        signal = new_signal("free", {"runs": [run("R1", 0)], "handle": 0, "post": 0}, emitted_at=0.0)
        thread = threading.Thread(target=stage.store.emit_sync, args=([signal],))
        thread.start()
        while not await worker.store.signal(signal.id):
            await trio.sleep(0.001)
        assert (await worker.wait_settled(signal.id)).state is SignalState.DONE
        thread.join()


async def test_an_age_that_is_none_is_refused(autojump_clock: Clock) -> None:
    """STP-5: prune says what it wants."""
    async with Stage().serve() as worker:
        for age in (-1, float("nan"), float("inf"), "1", None, True):
            with pytest.raises(UsageError, match="older_than must be seconds"):
                await worker.prune(age)  # type: ignore[arg-type]

"""A worker on PostgreSQL: the server is killed under it, cut off from it, and its process killed."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator

import pytest
import trio

from concorde_trio import FunctionRuntime, Prompt, RunPrompt, Signal, open_worker
from concorde_trio._sansio.changes import ClaimSignal, QueueRuns
from concorde_trio.errors import QueueTaken, StoreError
from concorde_trio.records import SignalState
from concorde_trio.signals.store import RunFilter, SignalFilter
from concorde_trio.testing.store_checks.samples import emitted, new_run, new_signal
from tests.stores.postgres_server import PostgresServer, postgres, running_server, start_python
from tests.stores.test_postgres_store import SOON, schema_of, store_of, url

pytestmark = pytest.mark.slow

__all__ = ["postgres", "url"]


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that the test may kill."""
    with running_server() as server:
        yield server


def prompts(arrived: Signal) -> list[Prompt]:
    """One run, in a session of its own."""
    return [Prompt(session=str(arrived.payload), text="do it")]


async def test_a_killed_server_is_survived_by_the_worker(own_server: PostgresServer) -> None:
    """REC-5, REC-1: what ran goes on, what was asked for is stored once, each run runs once, and the queue stays its own."""
    ran: Counter[str] = Counter()
    go_on = trio.Event()

    async def work(prompt: RunPrompt) -> str:
        ran[prompt.session] += 1
        if prompt.session == "long":
            await go_on.wait()
        else:
            await trio.sleep(0.01)
        return "done"

    store = store_of(own_server.place())
    ids: list[str] = []
    async with open_worker(store, FunctionRuntime(work), {"errand": prompts}, sweep=0.5) as worker:
        ids.append(await worker.emit("errand", "long"))
        while not ran["long"]:
            await trio.sleep(0.01)
        for kill in range(3):
            async with trio.open_nursery() as nursery:

                async def emit(name: str) -> None:
                    ids.append(await worker.emit("errand", name))

                for number in range(10):
                    nursery.start_soon(emit, f"{kill}-{number}")
                await trio.sleep(0.02 * kill)
                await trio.to_thread.run_sync(own_server.kill)
                await trio.to_thread.run_sync(own_server.start)
        go_on.set()
        with trio.fail_after(4 * SOON):
            for signal_id in ids:
                assert (await worker.wait_settled(signal_id)).state is SignalState.DONE
        assert worker.status == "running"
    assert len(set(ids)) == 31
    assert set(ran.values()) == {1}
    assert len(ran) == 31


@pytest.mark.parametrize("how", ["killed", "frozen"])
async def test_a_worker_cut_off_from_the_database_stops_its_runs(own_server: PostgresServer, how: str) -> None:
    """REC-1, Q-20: within its lease less the margin; it joins again, and fails what had started (REC-2)."""
    started, ended = trio.Event(), trio.Event()
    times: Counter[str] = Counter()

    async def work(prompt: RunPrompt) -> str:
        times[prompt.session] += 1
        if prompt.session != "x":
            return "done"
        started.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()
        return "never"

    store = store_of(own_server.place(), lease=1)
    with trio.fail_after(4 * SOON):
        async with open_worker(store, FunctionRuntime(work), {"errand": prompts}, stop_grace=1) as worker:
            signal_id = await worker.emit("errand", "x")
            await started.wait()
            await trio.to_thread.run_sync(own_server.kill if how == "killed" else own_server.freeze)
            with trio.fail_after(SOON):
                await ended.wait()
            await trio.to_thread.run_sync(own_server.start if how == "killed" else lambda: own_server.freeze(False))
            record = await worker.wait_settled(signal_id)
            assert record.state is SignalState.FAILED
            assert (await worker.wait_settled(await worker.emit("errand", "y"))).state is SignalState.DONE
    assert times == {"x": 1, "y": 1}


WORKER = """
import sys, trio
from concorde_trio import FunctionRuntime, Prompt, open_worker
from concorde_trio.stores.postgres.store import PostgresStore

async def work(prompt):
    print("started", flush=True)
    await trio.sleep_forever()

async def main():
    store = PostgresStore(sys.argv[1])
    async with open_worker(store, FunctionRuntime(work), {"errand": lambda s: [Prompt(session="a", text="x")]}):
        await trio.sleep_forever()

trio.run(main)
"""


async def test_the_queue_of_a_killed_worker_is_free_at_once(url: str) -> None:
    """REC-1: no lease is waited for when its process is known to be dead; REC-2: what it had started has failed."""
    store = store_of(url, lease=3600)
    async with store.open():
        new = new_signal(kind="errand")
        await store.emit([new])
        process = start_python(WORKER, url)
        try:
            assert await trio.to_thread.run_sync(process.stdout.readline) == b"started\n"
            with pytest.raises(QueueTaken, match=f"process {process.pid}"):
                async with store.own():
                    raise AssertionError("two workers")
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
            process.stdin.close()
    with trio.fail_after(SOON):
        async with open_worker(store, FunctionRuntime(never), {"errand": prompts}) as worker:
            assert (await worker.wait_settled(new.id)).state is SignalState.FAILED


async def never(prompt: RunPrompt) -> str:
    """What must not be called."""
    raise AssertionError("a run that had started was run again")


async def test_a_worker_that_may_live_elsewhere_is_waited_for(
    postgres: PostgresServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-1, REC-6: its lock is free, but it did not say that it left: its runs have to be stopped first."""
    monkeypatch.setattr("concorde_trio.stores.postgres.owner.GRACE", 0.3)
    store = store_of(url)
    async with store.open():
        async with store.own():
            owner = postgres.execute(f"select owner from {schema_of(url)}.concorde_meta")[0][0]
        elsewhere = str(owner).replace('"machine": "', '"machine": "another ').replace('"lease": 10.0', '"lease": 0.5')
        postgres.execute(f"update {schema_of(url)}.concorde_meta set owner = %s", (elsewhere,))
        told: list[str] = []
        with trio.fail_after(SOON):
            async with store.own(waiting=told.append):
                assert len(told) == 1
                assert "did not say that it stopped" in told[0]
        told.clear()
        async with store.own(waiting=told.append):
            assert told == []


async def test_a_lost_lock_is_held_again_and_the_worker_goes_on(postgres: PostgresServer, url: str) -> None:
    """REC-1: as long as nobody else had it."""
    store = store_of(url)
    holds = "select pid from pg_locks where locktype = 'advisory' and granted and objsubid = 1"
    async with store.open(), store.own():
        for _ in range(3):
            held = postgres.execute(holds)
            assert len(held) == 1
            postgres.execute(f"select pg_terminate_backend({held[0][0]})")
            with trio.fail_after(SOON):
                while postgres.execute(holds) in ([], held):
                    await trio.sleep(0.01)
            await emitted(store, f"after {held}")
            with pytest.raises(QueueTaken):
                async with store.own():
                    raise AssertionError("two workers")


async def test_what_a_worker_writes_after_it_lost_the_queue_changes_no_row(postgres: PostgresServer, url: str) -> None:
    """REC-1, Q-19: its row is gone, whatever its own connections say; and it is told so."""
    first, second = store_of(url), store_of(url)
    async with first.open(), second.open():
        await emitted(second, "s")
        with pytest.raises(StoreError, match="taken by another worker"):
            async with first.own():
                await first.apply([ClaimSignal("s", 1.0)])
                # What a new worker does first (Owner._enter), while this one has noticed nothing.
                postgres.execute(f"delete from {schema_of(url)}.concorde_writers where owns")
                with pytest.raises(StoreError, match="taken by another worker"):
                    await first.apply([QueueRuns("s", (new_run("s", 1),))])
                await first.emit([new_signal()])
        assert await second.runs(RunFilter()) == []
        assert len(await second.signals(SignalFilter())) == 1


async def test_a_worker_that_finds_another_in_its_place_stops(postgres: PostgresServer, url: str) -> None:
    """REC-1: at once, without waiting for its lease."""
    store = store_of(url, lease=3600)
    with trio.fail_after(SOON):
        async with store.open():
            with pytest.raises(StoreError, match="another worker has taken it"):
                async with store.own():
                    postgres.execute(f"update {schema_of(url)}.concorde_meta set epoch = epoch + 1")
                    postgres.execute(
                        "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objsubid = 1"
                    )
                    await trio.sleep_forever()


async def test_two_workers_over_a_restart_are_never_one_too_many(own_server: PostgresServer) -> None:
    """REC-1, REC-6: one that stands by does not take the queue from a worker that comes back within its lease."""
    place = own_server.place()
    first, second = store_of(place), store_of(place)
    running = 0
    async with first.open(), second.open():
        inside = trio.Event()

        async def stand_by() -> None:
            nonlocal running
            async with second.own(wait=True):
                assert running == 0
                inside.set()

        async with trio.open_nursery() as nursery:
            async with first.own():
                running += 1
                nursery.start_soon(stand_by)
                for _ in range(2):
                    await trio.to_thread.run_sync(own_server.kill)
                    await trio.to_thread.run_sync(own_server.start)
                    await emitted(first, str(trio.current_time()))
                    assert not inside.is_set()
                running -= 1
            with trio.fail_after(SOON):
                await inside.wait()

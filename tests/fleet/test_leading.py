"""Who leads a fleet: it is left, dies or is cut off, and another one goes on where it was, with what runs elsewhere still running."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2
import pytest
import trio

from concorde_trio import Gateway, open_worker
from concorde_trio._sansio.changes import Change, FinishRequest, StopExecution
from concorde_trio.records import SignalState
from concorde_trio.signals.store import SignalFilter
from concorde_trio.stores.postgres.leading import PostgresLeadership
from concorde_trio.stores.postgres.store import PostgresStore
from tests.fleet.members import SOON, Fleet, errand, settled, until
from tests.stores.postgres_server import PostgresServer, postgres, start_python

pytestmark = pytest.mark.slow

__all__ = ["postgres"]


@pytest.fixture
def fleet(postgres: PostgresServer) -> Fleet:
    """A queue of its own."""
    return Fleet(postgres, postgres.place())


@asynccontextmanager
async def leaving(fleet: Fleet, name: str, leave: trio.Event) -> AsyncIterator[trio.Event]:
    """A member that leaves when it is told to; the event given is set once it has."""
    entered, left = trio.Event(), trio.Event()

    async def life() -> None:
        async with fleet.member(name):
            entered.set()
            await leave.wait()
        left.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(life)
        await entered.wait()
        yield left


async def test_a_rolling_restart_leaves_no_gap_and_starts_nothing_twice(fleet: Fleet) -> None:
    """REC-1, STP-1: a leader that is told to stop hands the lead over at once; its run goes on, and others take what comes."""
    hold = fleet.held("long")
    leave = trio.Event()
    async with leaving(fleet, "old", leave) as left:
        old = fleet.workers["old"]
        long = await old.emit("errand", "long")
        await until(lambda: ("old", "long") in fleet.started)
        waiting = await old.emit("errand", "long")
        async with fleet.member("new") as new:
            assert not new.leads
            leave.set()
            await until(lambda: new.leads)
            assert not left.is_set()
            assert (await settled(new, await new.emit("errand", "next"))).state is SignalState.DONE
            hold.set()
            assert (await settled(new, long)).state is SignalState.DONE
            assert (await settled(new, waiting)).state is SignalState.DONE
            with trio.fail_after(SOON):
                await left.wait()
            view = await new.store.fleet()  # type: ignore[attr-defined]
    assert fleet.started == [("old", "long"), ("new", "next"), ("new", "long")]
    assert view.epoch == 2
    assert [(member.state, member.leads) for member in view.members] == [("left", False), ("live", True)]


async def test_a_leader_that_is_fenced_goes_on_as_a_member(fleet: Fleet) -> None:
    """REC-1: its next step changes no row, so it leads no more; its process and what it runs go on, adopted by the next one."""
    hold = fleet.held("long")
    async with fleet.member("first") as first, fleet.member("second") as second:
        long = await first.emit("errand", "long")
        await until(lambda: bool(fleet.started))
        before = first if first.leads else second
        fleet.sql("update {}.concorde_leader set member = null")
        fleet.sql("update {}.concorde_meta set epoch = epoch + 1, owner = null")
        fleet.sql("delete from {}.concorde_writers where owns")
        fleet.sql("select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objsubid = 1")
        other = await before.emit("errand", "other")
        assert (await settled(first, other)).state is SignalState.DONE
        hold.set()
        assert (await settled(second, long)).state is SignalState.DONE
        assert first.status == second.status == "running"
        assert (await first.store.fleet()).epoch >= 3  # type: ignore[attr-defined]
    assert set(fleet.counted().values()) == {1}


LEADER = """
import sys, trio
from concorde_trio import FunctionRuntime, Prompt, open_worker
from concorde_trio.stores.postgres.leading import PostgresLeadership
from concorde_trio.stores.postgres.store import PostgresStore

async def work(prompt):
    print("started", prompt.session, flush=True)
    await trio.sleep_forever()

async def main():
    store = PostgresStore(sys.argv[1], lease=float(sys.argv[2]))
    handlers = {"errand": lambda s: [Prompt(session=s.payload, text="x")]}
    async with open_worker(store, FunctionRuntime(work), handlers, capacity=1) as worker:
        print("leads", worker.leads, flush=True)
        await trio.sleep_forever()

trio.run(main)
"""


@pytest.mark.parametrize("how", ["killed here", "stopped", "killed elsewhere"])
async def test_a_leader_that_dies_is_followed_by_another(fleet: Fleet, how: str) -> None:
    """REC-2, REC-3: at once where it is known dead, else once its lease is over; what it ran fails, what had not started is run."""
    process = start_python(LEADER, fleet.url, "3600" if how == "killed here" else "1.5")
    try:
        assert await trio.to_thread.run_sync(process.stdout.readline) == b"leads True\n"
        async with fleet.member("second", capacity=1) as second:
            ids = [await second.emit("errand", name) for name in ("a", "b")]
            fleet.held("a"), fleet.held("b")
            assert (await trio.to_thread.run_sync(process.stdout.readline)).startswith(b"started")
            waiting = [await second.emit("errand", name) for name in ("a", "b", "c")]
            await until(lambda: fleet.sql("select count(*) from {}.runs") == [(5,)])
            if how == "killed elsewhere":
                fleet.sql(
                    'update {}.concorde_members set holder = replace(holder, \'"machine": "\', \'"machine": "x\')'
                )
            process.send_signal(signal.SIGSTOP if how == "stopped" else signal.SIGKILL)
            await until(lambda: second.leads)
            for each in fleet.go_on.values():
                each.set()
            states = [(await settled(second, each)).state for each in (*ids, *waiting)]
            assert sorted(states[:2]) == [SignalState.DONE, SignalState.FAILED]
            assert states[2:] == [SignalState.DONE] * 3
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stdin.close()


async def test_every_connection_that_is_cut_is_made_again(fleet: Fleet) -> None:
    """REC-5: the server ends them all, in the middle of work, and nothing is lost and nothing run twice."""
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(fleet.member(f"m{number}", capacity=4)) for number in range(3)]
        ids = []
        for number in range(30):
            ids.append(await workers[number % 3].emit("errand", f"s{number}"))
            if number % 10 == 5:
                await trio.to_thread.run_sync(
                    fleet.sql,
                    "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'concorde-%'",
                )
        for signal_id in ids:
            assert (await settled(workers[0], signal_id)).state is SignalState.DONE
        assert await workers[0].store.signals(SignalFilter(state=SignalState.FAILED)) == []
    assert set(fleet.counted().values()) == {1}
    assert len(fleet.counted()) == 30


async def test_who_asks_a_member_for_locks_is_sent_to_the_leader(fleet: Fleet) -> None:
    """SRV-2, LCK-7: with 307 and the same path, but not to the loopback of another machine; signals and runs are told by everybody."""
    token = "t" * 32
    gateways = []
    async with trio.open_nursery() as nursery:
        urls = []
        for name in ("first", "second"):
            gateway = Gateway(
                store=PostgresStore(fleet.url, lease=60), runtime=fleet.runtime(name), operator_token=token
            )
            gateway.add_handler("errand", errand)
            gateways.append(gateway)
            urls.append(await nursery.start(gateway.run))
        hold = fleet.held("a")
        await gateways[1].emit("errand", "a")
        await until(lambda: bool(fleet.started))
        second = await gateways[1].emit("errand", "a")
        await until(lambda: fleet.sql("select count(*) from {}.runs") == [(2,)])
        async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}) as client:
            assert (await client.get(f"{urls[0]}/locks?limit=1")).status_code == 200
            sent = await client.get(f"{urls[1]}/locks?limit=1")
            assert (sent.status_code, sent.headers["location"]) == (307, f"{urls[0]}/locks?limit=1")
            fleet.sql("update {}.concorde_members set host = 'another machine'")
            nowhere = await client.get(f"{urls[1]}/locks")
            assert (nowhere.status_code, "from this machine" in nowhere.text) == (503, True)
            assert len((await client.get(f"{urls[1]}/signals")).json()["signals"]) == 2
            (waits,) = (await client.get(f"{urls[0]}/runs?signal={second}")).json()["runs"]
            assert waits["waits_for"]
        hold.set()
        assert (await settled(gateways[1].worker, second)).state is SignalState.DONE
        for gateway in gateways:
            gateway.stop()


async def test_a_database_that_is_away_for_less_than_a_lease_ends_nothing(fleet: Fleet) -> None:
    """REC-5: also for longer than others wait for it (busy_timeout): the leader, its run and its table go on."""
    hold = fleet.held("long")
    store = PostgresStore(fleet.url, lease=3600, busy_timeout=0.2)
    async with open_worker(store, fleet.runtime("one"), {"errand": errand}) as worker:
        long = await worker.emit("errand", "long")
        await until(lambda: bool(fleet.started))
        await trio.to_thread.run_sync(fleet.server.stop, signal.SIGINT)
        try:
            await trio.sleep(1)
        finally:
            fleet.server.start()
        hold.set()
        assert (await settled(worker, long)).state is SignalState.DONE
        assert (await worker.store.fleet()).epoch == 1  # type: ignore[attr-defined]
    assert fleet.started == [("one", "long")]


async def test_what_an_operator_asked_for_outlives_the_leader(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """RUN-6: the commit that finishes the request tells the member, so no leader can die between the two."""
    commits: list[Sequence[Change]] = []
    apply = PostgresLeadership.apply

    async def noted(self: PostgresLeadership, changes: Sequence[Change]) -> None:
        await apply(self, changes)
        commits.append(list(changes))

    monkeypatch.setattr(PostgresLeadership, "apply", noted)
    fleet.held("long")
    async with fleet.member("one") as one:
        long = await one.emit("errand", "long")
        await until(lambda: bool(fleet.started))
        await one.cancel_signal(long)
        assert (await settled(one, long)).state is SignalState.FAILED
    (commit,) = [commit for commit in commits if any(isinstance(each, FinishRequest) for each in commit)]
    assert any(isinstance(each, StopExecution) for each in commit)

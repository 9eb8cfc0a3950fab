"""A member whose lease is over: others go on with what it held, and what it still writes changes no row."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator

import psycopg
import pytest
import trio

from concorde_trio._sansio.session_changes import AddMessage
from concorde_trio.errors import LeaseLost
from concorde_trio.messages import Message, Role
from concorde_trio.records import RunOutcome, RunState, SignalState, Usage
from concorde_trio.signals.store import RunFilter
from concorde_trio.testing.store_checks.samples import new_signal
from tests.fleet.members import Fleet, settled, until
from tests.stores.postgres_server import PostgresServer, postgres, start_python

pytestmark = pytest.mark.slow

__all__ = ["postgres"]


@pytest.fixture
def fleet(postgres: PostgresServer) -> Iterator[Fleet]:
    """A queue of its own."""
    return Fleet(postgres, postgres.place())  # type: ignore[return-value]


LATE = {
    "a success": RunOutcome.ok("late"),
    "a failure": RunOutcome.failed("late"),
    "usage": RunOutcome.ok("late", usage=Usage(input_tokens=7)),
}


@pytest.mark.parametrize("what", LATE)
async def test_a_late_result_of_a_member_taken_for_dead_changes_no_row(
    fleet: Fleet, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Q-08, Q-19, REC-2: R2 starts once R1's member is dead by the database; R1's own end frees nothing then, so R3 waits for R2."""
    first, second = fleet.held("first"), fleet.held("second")
    fleet.outcomes["first"] = LATE[what]
    busy = fleet.held("busy")
    async with fleet.member("leader", capacity=1) as leader:
        await leader.emit("errand", "busy")
        await until(lambda: ("leader", "busy") in fleet.started)
        async with fleet.member("other", capacity=1) as other:
            ids = [
                await leader.emit("errand", {"session": name, "resource": "ws"})
                for name in ("first", "second", "third")
            ]
            await until(lambda: ("other", "first") in fleet.started)
            await fleet.end_lease(await fleet.executing("first"))
            assert (await settled(leader, ids[0])).state is SignalState.FAILED
            busy.set()
            await until(lambda: ("leader", "second") in fleet.started)
            with caplog.at_level(logging.WARNING):
                first.set()
                await until(lambda: "late result of epoch 1 refused" in caplog.text)
            (row,) = await leader.store.runs(RunFilter(session="first"))
            assert (row.state, row.text, row.usage) == (RunState.FAILED, None, None)
            assert "dead" in (row.error or "")
            assert fleet.counted()["third"] == 0
            second.set()
            for signal_id in ids[1:]:
                assert (await settled(other, signal_id)).state is SignalState.DONE
    assert set(fleet.counted().values()) == {1}


async def test_a_line_of_a_transcript_of_a_dead_member_is_not_written(fleet: Fleet) -> None:
    """Q-19: what its sessions write is under the same lease."""
    async with fleet.member("leader") as leader, fleet.member("other") as other:
        member = other._life._member.id  # type: ignore[union-attr]
        await fleet.end_lease(member)
        await until(lambda: fleet.sql(f"select state from {{}}.concorde_members where id = '{member}'") == [("dead",)])
        line = AddMessage("ann", Message(seq=1, role=Role.USER, text="late", at=1.0))
        with pytest.raises(LeaseLost):
            await other.store.apply([line])  # type: ignore[list-item]
        assert await leader.store.session("ann") is None  # type: ignore[attr-defined]


BLOCKED = """
import sys, time, trio
from concorde_trio import FunctionRuntime, Prompt, RunOutcome, open_worker
from concorde_trio.stores.postgres.store import PostgresStore

async def work(prompt):
    print("started", flush=True)
    time.sleep(2.5)
    return RunOutcome.ok("late")

async def main():
    async with open_worker(PostgresStore(sys.argv[1], lease=1), FunctionRuntime(work), {}, watchdog=0):
        await trio.sleep_forever()

import logging
logging.basicConfig(stream=sys.stdout, format="%(message)s")
trio.run(main)
"""


async def test_a_blocked_loop_is_fenced_and_told_that_its_result_is_late(fleet: Fleet) -> None:
    """Q-18: the next run starts while the first one's process is blocked beyond its lease, and its result changes no row."""
    fleet.held("busy")
    async with fleet.member("leader", capacity=1) as leader:
        await leader.emit("errand", "busy")
        await until(lambda: ("leader", "busy") in fleet.started)
        process = start_python(BLOCKED, fleet.url)
        try:
            first = await leader.emit("errand", "first")
            assert await trio.to_thread.run_sync(process.stdout.readline) == b"started\n"
            second = await leader.emit("errand", "first")
            assert (await settled(leader, first)).state is SignalState.FAILED
            fleet.go_on["busy"].set()
            assert (await settled(leader, second)).state is SignalState.DONE
            said = b""
            with trio.fail_after(20):
                while b"late result of epoch 1 refused" not in said:
                    said = await trio.to_thread.run_sync(process.stdout.readline)
                    assert said
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
            process.stdin.close()
    (late, _) = runs_of_first(fleet)
    assert late == ("failed", None)


def runs_of_first(fleet: Fleet) -> list[tuple[object, ...]]:
    """State and text of the runs of session first, in order."""
    return fleet.sql("select state, text from {}.runs where session = 'first' order by position")


async def test_what_commits_late_takes_its_place_among_the_unclaimed(fleet: Fleet) -> None:
    """Q-04, SIG-3: S1 has the lower seq and commits after S2 was started; it waits for S2's session, and they never overlap."""
    hold = fleet.held("ws")
    async with fleet.member("one") as one, fleet.member("two"):
        with psycopg.connect(fleet.url.partition("&schema=")[0]) as connection:
            late = new_signal(kind="errand", payload="ws")
            one.store.join(connection).emit_sync([late])  # type: ignore[attr-defined]
            early = await one.emit("errand", "ws")
            await until(lambda: len(fleet.started) == 1)
            connection.commit()
        first, second = await one.store.signal(late.id), await one.store.signal(early)
        assert first is not None and second is not None and first.seq < second.seq
        await until(lambda: fleet.sql("select count(*) from {}.runs") == [(2,)])
        assert len(fleet.started) == 1
        hold.set()
        assert (await settled(one, late.id)).state is SignalState.DONE
    running = run_times(fleet)
    assert [signal_id for signal_id, *_ in running] == [early, late.id]
    assert running[0][2] <= running[1][1]


def run_times(fleet: Fleet) -> list[tuple[object, ...]]:
    """Signal, start and end of each run, in run order."""
    return fleet.sql("select signal_id, started_at, ended_at from {}.runs order by position")

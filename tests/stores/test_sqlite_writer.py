"""The writer's thread: many callers in one commit, cancellation before or after it, an end in every case."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
import trio
import trio.testing

from concorde_trio._sansio.changes import ClaimSignal, QueueRuns, StartRun
from concorde_trio.errors import StoreError
from concorde_trio.records import RequestKind, RunState
from concorde_trio.stores import SqliteStore, sqlite_works, sqlite_write_session
from concorde_trio.stores.works import Emit
from concorde_trio.testing.store_checks.samples import emitted, new_run, new_signal


class Gate:
    """Stands before each commit: counts what it carries, and holds it back while closed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.texts: list[str] = []
        self.reached = threading.Event()
        self.open = threading.Event()
        self.open.set()
        real = sqlite_works.commit_works

        def commit(connection: sqlite3.Connection, place: object, works: list[object]) -> object:
            self.sizes.append(len(works))
            self.reached.set()
            self.open.wait(20)
            connection.set_trace_callback(self.texts.append)
            return real(connection, place, works)  # type: ignore[arg-type]

        monkeypatch.setattr(sqlite_write_session, "commit_works", commit)

    async def wait_reached(self) -> None:
        await trio.to_thread.run_sync(self.reached.wait, 20)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """A gate before the commits of this test."""
    return Gate(monkeypatch)


async def test_all_that_wait_are_written_in_one_commit(tmp_path: Path, gate: Gate) -> None:
    """CLM-6: emits, an apply and a request that come while one commit runs are the next one."""
    store = SqliteStore(tmp_path / "q.db")
    async with store.open():
        await emitted(store, "s")
        gate.open.clear()
        gate.reached.clear()
        gate.sizes.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.emit, [new_signal("first")])
            await gate.wait_reached()
            for number in range(40):
                nursery.start_soon(store.emit, [new_signal(f"{number}")])
            nursery.start_soon(store.apply, [ClaimSignal("s", 1.0)])
            nursery.start_soon(store.request, RequestKind.CANCEL_RUN, "r")
            await trio.testing.wait_all_tasks_blocked()
            gate.open.set()
        assert gate.sizes == [1, 42]
        assert len(await store.pending(100)) == 41


async def test_a_commit_has_one_statement_for_each_kind_of_change(tmp_path: Path, gate: Gate) -> None:
    """RUN-1: ten signals claimed, their runs queued and started, in a handful of statements."""
    store = SqliteStore(tmp_path / "q.db")
    async with store.open():
        ids = [f"{number}" for number in range(10)]
        await emitted(store, *ids)
        gate.texts.clear()
        changes = [
            change
            for position, each in enumerate(ids, 1)
            for change in (
                ClaimSignal(each, 1.0),
                QueueRuns(each, (new_run(each, position),)),
                StartRun(f"run-{each}-0", 2.0),
            )
        ]
        await store.apply(changes)
        verbs = [text.split()[0].lower() for text in gate.texts if not text.startswith("--")]
        assert verbs == ["begin", "update", "update", "insert", "commit"]
        assert {run.state for each in await store.unfinished() for run in each.runs} == {RunState.RUNNING}


async def test_a_work_that_is_nonsense_fails_alone(tmp_path: Path, gate: Gate) -> None:
    """REC-5: whatever goes wrong with one, its task hears of it, and the others are written."""
    store = SqliteStore(tmp_path / "q.db")

    async def nonsense() -> None:
        with pytest.raises(AttributeError):
            await store.emit([object()])  # type: ignore[list-item]

    async with store.open():
        gate.open.clear()
        gate.reached.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.emit, [new_signal("first")])
            await gate.wait_reached()
            nursery.start_soon(store.emit, [new_signal("good")])
            nursery.start_soon(nonsense)
            await trio.testing.wait_all_tasks_blocked()
            gate.open.set()
        assert gate.sizes == [1, 2]
        assert {signal.id for signal in await store.pending(10)} == {"first", "good"}


async def test_a_failure_of_the_writer_itself_is_heard_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-5: by who waits, by who comes later, and by who closes; nobody waits for ever."""
    store = SqliteStore(tmp_path / "q.db")

    def fail(*_: object) -> None:
        raise RuntimeError("planned")

    with trio.fail_after(20), pytest.raises(StoreError, match="planned"):
        async with store.open():
            monkeypatch.setattr(sqlite_write_session.WriteSession, "commit_works", fail)
            with pytest.raises(RuntimeError, match="planned"):
                await store.emit([new_signal()])
            monkeypatch.setattr(sqlite_write_session.WriteSession, "try_begin", fail)
            for _ in range(2):
                with pytest.raises(StoreError, match="planned"):
                    await store.emit([new_signal()])


async def test_another_connections_commit_wakes_a_writer_that_is_never_idle(tmp_path: Path) -> None:
    """SIG-6: it looks between its own commits too."""
    store = SqliteStore(tmp_path / "q.db")
    woken = trio.Event()

    async def keep_busy() -> None:
        while True:
            await store.apply([])

    async with store.open(), store.on_change(woken.set), trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(keep_busy)
        await trio.to_thread.run_sync(SqliteStore(store.path).emit_sync, [new_signal()])
        with trio.fail_after(20):
            await woken.wait()
        nursery.cancel_scope.cancel()


async def test_another_connections_commit_wakes_before_a_transaction_is_over(tmp_path: Path) -> None:
    """SIG-6, SIG-2: a long transaction of the user's keeps nobody from hearing of what came before it."""
    store = SqliteStore(tmp_path / "q.db")
    woken = trio.Event()
    async with store.open(), store.on_change(woken.set):
        store._writer._looked = float("inf")  # type: ignore[union-attr]  # it would not look by itself
        await trio.to_thread.run_sync(SqliteStore(store.path).emit_sync, [new_signal()])
        async with store.transaction(time_limit=60):
            with trio.fail_after(20):
                await woken.wait()


async def test_an_emit_cancelled_while_it_is_committed_gives_its_id(tmp_path: Path, gate: Gate) -> None:
    """SIG-1: a commit is never abandoned: the caller gets the id, and the cancellation comes at its next checkpoint."""
    store = SqliteStore(tmp_path / "q.db")
    async with store.open():
        gate.open.clear()
        gate.reached.clear()
        ids: list[str] = []
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:

                async def emit() -> None:
                    ids.extend(await store.emit([new_signal("one")]))
                    await trio.lowlevel.checkpoint()
                    raise AssertionError("it was not cancelled")

                nursery.start_soon(emit)
                with trio.CancelScope(shield=True):
                    await gate.wait_reached()
                    scope.cancel()
                    await trio.testing.wait_all_tasks_blocked()
                    assert ids == []
                    gate.open.set()
        assert scope.cancelled_caught
        assert ids == ["one"]
        assert [signal.id for signal in await store.pending(10)] == ["one"]


async def test_an_emit_cancelled_before_its_turn_writes_nothing(tmp_path: Path, gate: Gate) -> None:
    """SIG-1: it is withdrawn at once, though the writer is busy."""
    store = SqliteStore(tmp_path / "q.db")
    async with store.open():
        gate.open.clear()
        gate.reached.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.emit, [new_signal("first")])
            await gate.wait_reached()
            with trio.move_on_after(0) as scope:
                await store.emit([new_signal("cancelled at once")])
            assert scope.cancelled_caught
            with trio.CancelScope() as scope:
                nursery.start_soon(_cancel_when_blocked, scope)
                await store.emit([new_signal("cancelled while it waits")])
            assert scope.cancelled_caught
            gate.open.set()
        await emitted(store, "last")
        assert [signal.id for signal in await store.pending(10)] == ["first", "last"]


async def _cancel_when_blocked(scope: trio.CancelScope) -> None:
    await trio.testing.wait_all_tasks_blocked()
    scope.cancel()


async def test_what_is_queued_when_the_store_closes_is_written(tmp_path: Path, gate: Gate) -> None:
    """SIG-1: closing waits for it, and the thread ends."""
    store = SqliteStore(tmp_path / "q.db")
    told: list[str] = []

    async def emit(id_: str) -> None:
        told.extend(await store.emit([new_signal(id_)]))

    async with trio.open_nursery() as nursery, store.open():
        gate.open.clear()
        gate.reached.clear()
        nursery.start_soon(emit, "one")
        await gate.wait_reached()
        nursery.start_soon(emit, "two")
        await trio.testing.wait_all_tasks_blocked()
        threading.Timer(0.05, gate.open.set).start()
    assert sorted(told) == ["one", "two"]
    assert not [each for each in threading.enumerate() if "writer" in each.name]


async def test_who_comes_when_the_store_is_closed_is_refused(tmp_path: Path) -> None:
    """REC-5: nobody waits for a thread that has ended."""
    store = SqliteStore(tmp_path / "q.db")
    async with store.open():
        writer = store._writer
        assert writer is not None
    with pytest.raises(StoreError, match="closed"):
        await writer.write(Emit([new_signal()]), 1.0)


async def test_a_long_read_ends_when_its_task_is_cancelled(tmp_path: Path) -> None:
    """SRV-5: the thread that reads is free again, and so is the loop meanwhile."""
    store = SqliteStore(tmp_path / "q.db")
    async with store.open():
        reader = store._reader
        assert reader is not None

        def forever(connection: sqlite3.Connection) -> list[tuple[int]]:
            return connection.execute(
                "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
            ).fetchall()

        with trio.fail_after(20), trio.move_on_after(0.02) as scope:
            await reader.long(forever)
        assert scope.cancelled_caught
        assert (await store.counts())["signals"]["pending"] == 0


@pytest.mark.parametrize("inline", [False, True])
async def test_a_reader_cannot_write(tmp_path: Path, inline: bool) -> None:
    """REC-5: one writer, and nothing goes past it."""
    store = SqliteStore(tmp_path / "q.db", inline=inline)
    async with store.open():
        reader = store._reader
        assert reader is not None
        for read in (reader.short, reader.long):
            with pytest.raises(StoreError, match="readonly"):
                await read(lambda connection: connection.execute("delete from signals"))


def test_an_inline_store_works_under_a_clock_that_jumps(tmp_path: Path) -> None:
    """SIG-1, SIG-6: no thread is waited for, and an idle queue lets the clock jump as far as it likes."""
    store = SqliteStore(tmp_path / "q.db", inline=True)

    async def main() -> None:
        woken = trio.Event()
        async with store.open(), store.own(), store.on_change(woken.set):
            await trio.sleep(86_000)
            await emitted(store, "one")
            assert woken.is_set()
            await trio.sleep(86_000)
            assert len(await store.pending(10)) == 1
            async with store.transaction(time_limit=60) as tx:
                await trio.sleep(59)
                await store.emit([new_signal("two")], tx=tx)
        assert trio.current_time() == 172_059

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))

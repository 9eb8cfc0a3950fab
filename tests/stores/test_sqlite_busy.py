"""What the database refuses: what passes is waited for in place, what does not is told at once, and one by one."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from concorde_trio._sansio.changes import ClaimSignal
from concorde_trio.errors import StoreBusy, StoreError
from concorde_trio.records import RequestKind
from concorde_trio.stores import SqliteStore, sql_store, sqlite_works, sqlite_write_session
from concorde_trio.testing.store_checks.samples import claimed, emitted, new_signal

pytestmark = pytest.mark.slow


@pytest.fixture(params=[False, True], ids=["thread", "inline"])
def inline(request: pytest.FixtureRequest) -> bool:
    """Both writers."""
    return bool(request.param)


@contextmanager
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    """The database, held by somebody who asks at no turnstile."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("begin immediate")
    try:
        yield connection
    finally:
        if connection.in_transaction:
            connection.execute("rollback")
        connection.close()


@asynccontextmanager
async def opened(path: Path, inline: bool, busy_timeout: float = 30.0) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path, inline=inline, busy_timeout=busy_timeout)
    async with store.open():
        yield store


async def test_writes_wait_until_a_locked_database_is_free(tmp_path: Path, inline: bool) -> None:
    """Q-13c, REC-5: 50 of 50 are written once the lock is gone, an apply and a request among them; reads go on."""
    async with opened(tmp_path / "q.db", inline) as store:
        await emitted(store, "claimed")
        with locked(store.path) as holder:
            async with trio.open_nursery() as nursery:
                for number in range(50):
                    nursery.start_soon(store.emit, [new_signal(f"{number}")])
                nursery.start_soon(store.apply, [ClaimSignal("claimed", 1.0)])
                nursery.start_soon(store.request, RequestKind.CANCEL_RUN, "r")
                await trio.sleep(0.05)  # the verdict does not hang on it: nothing can be written before the rollback
                assert [signal.id for signal in await store.pending(10)] == ["claimed"]
                assert await store.requests() == []
                holder.execute("rollback")
        assert len(await store.pending(300)) == 50
        assert len(await store.requests()) == 1


@pytest.mark.slow
async def test_a_database_locked_for_two_seconds_costs_two_seconds(tmp_path: Path, inline: bool) -> None:
    """Q-13c: 250 signals are claimed after it."""
    async with opened(tmp_path / "q.db", inline) as store:
        ids = [f"{number}" for number in range(250)]
        await emitted(store, *ids)
        with locked(store.path) as holder:
            release = threading.Timer(2.0, holder.execute, ["rollback"])
            release.start()
            with trio.fail_after(20):
                for each in ids:
                    await store.apply([ClaimSignal(each, 1.0)])
            release.join()
        assert len(await store.unfinished()) == 250


async def test_patience_has_an_end_that_is_told(tmp_path: Path, inline: bool) -> None:
    """REC-5: StoreBusy names the file and how long; nothing was written, and later it can be."""
    async with opened(tmp_path / "q.db", inline, busy_timeout=0.05) as store:
        with locked(store.path):
            with pytest.raises(StoreBusy, match=r"q\.db.*0\.05 s"):
                await store.emit([new_signal("one")])
            with pytest.raises(StoreBusy):
                await store.request(RequestKind.CANCEL_RUN, "r")
            with pytest.raises(StoreBusy):
                async with store.transaction():
                    raise AssertionError("it began")
            with pytest.raises(StoreBusy):
                store.emit_sync([new_signal("two")])
        await store.emit([new_signal("three")])
        assert [signal.id for signal in await store.pending(10)] == ["three"]


async def test_a_worker_waits_longer_than_others(tmp_path: Path, inline: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-5: its changes are still tried when an emit has given up."""
    monkeypatch.setattr(sql_store, "WORKER_PATIENCE", 1000)
    async with opened(tmp_path / "q.db", inline, busy_timeout=0.05) as store:
        await emitted(store, "s")
        async with trio.open_nursery() as nursery:
            with locked(store.path):
                if not inline:  # an inline writer takes one at a time, and the emit would wait for the apply
                    nursery.start_soon(store.apply, [ClaimSignal("s", 1.0)])
                with pytest.raises(StoreBusy):
                    await store.emit([new_signal("one")])
                if inline:
                    nursery.start_soon(store.apply, [ClaimSignal("s", 1.0)])
                    await trio.testing.wait_all_tasks_blocked()
        assert len(await store.unfinished()) == 1


async def test_a_write_that_waits_for_a_lock_can_be_cancelled(tmp_path: Path, inline: bool) -> None:
    """SIG-1, STP-3: at once, and it writes nothing later."""
    async with opened(tmp_path / "q.db", inline) as store:
        with locked(store.path):
            with trio.fail_after(10), trio.move_on_after(0.01) as scope:
                await store.emit([new_signal("one")])
            assert scope.cancelled_caught
            with trio.move_on_after(0.01) as scope:
                async with store.transaction():
                    raise AssertionError("it began")
            assert scope.cancelled_caught
        await store.emit([new_signal("two")])
        assert [signal.id for signal in await store.pending(10)] == ["two"]


async def test_closing_beside_a_locked_database_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-5: the writer's thread ends, whatever holds the file, and who waited is told."""
    monkeypatch.setattr("concorde_trio.stores.thread_writer.STOP_PATIENCE", 0.05)
    store = SqliteStore(tmp_path / "q.db")

    async def emit() -> None:
        with pytest.raises(StoreBusy):
            await store.emit([new_signal("one")])

    with trio.fail_after(10):
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(store.open())
            with locked(store.path):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(emit)
                    await trio.testing.wait_all_tasks_blocked()
                    await stack.aclose()
    assert not [each for each in threading.enumerate() if "writer" in each.name]


async def test_a_full_database_is_told_at_once(tmp_path: Path, inline: bool) -> None:
    """REC-5: a StoreError with what to do; what was there stays, and room makes it work again."""
    async with opened(tmp_path / "q.db", inline) as store:
        await emitted(store, "one")
        connection = store._writer.session.connection if inline else store._writer._session.connection  # type: ignore[union-attr]
        pages = connection.execute("pragma page_count").fetchone()[0]
        connection.execute(f"pragma max_page_count = {pages + 2}")
        with trio.fail_after(5), pytest.raises(StoreError, match=r"q\.db.*full.*make room") as caught:
            await store.emit([new_signal("big", "x" * 500_000)])
        assert not isinstance(caught.value, StoreBusy)
        assert [signal.id for signal in await store.pending(10)] == ["one"]
        connection.execute("pragma max_page_count = 100000")
        await store.emit([new_signal("big", "x" * 500_000)])


async def test_a_damaged_database_is_told_at_once(tmp_path: Path, inline: bool) -> None:
    """REC-5."""
    async with opened(tmp_path / "q.db", inline) as store:
        await store.emit([new_signal(f"{number}", "x" * 3000) for number in range(50)])
    data = bytearray(store.path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    store.path.write_bytes(data)
    with pytest.raises(StoreError, match=r"q\.db.*damaged"):
        async with store.open():
            await store.pending(100)
            await claimed(store, "s")


async def test_an_interruption_of_the_disk_is_tried_again(
    tmp_path: Path, inline: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-5: a commit that the disk cut off leaves nothing, and is made again with all that waited for it."""
    real = sqlite_works.commit_works
    failed: list[int] = []

    def failing(connection: sqlite3.Connection, *rest: object) -> object:
        if len(failed) < 3:
            failed.append(1)
            connection.execute("insert into concorde_requests (kind, target) values ('cancel_run', 'half')")
            connection.execute("rollback")
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            raise error
        return real(connection, *rest)  # type: ignore[arg-type]

    async with opened(tmp_path / "q.db", inline) as store:
        monkeypatch.setattr(sqlite_write_session, "commit_works", failing)
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(store.emit, [new_signal(f"{number}")])
        assert len(failed) == 3
        assert len(await store.pending(10)) == 5
        assert await store.requests() == []


async def test_text_that_sqlite_cannot_hold_is_told(tmp_path: Path, inline: bool) -> None:
    """SIG-5, REC-5: and fails alone."""
    async with opened(tmp_path / "q.db", inline) as store:
        with pytest.raises(StoreError, match="cannot hold this text"):
            await store.emit([new_signal("bad \ud800")])
        await store.emit([new_signal("good")])
        assert [signal.id for signal in await store.pending(10)] == ["good"]

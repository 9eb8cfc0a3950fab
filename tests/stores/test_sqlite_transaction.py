"""Users' own tables and signals in one transaction: together or not at all, and never for longer than its time."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest
import trio
import trio.testing

from concorde_trio.errors import StoreError, TransactionOver, UsageError
from concorde_trio.stores import MemoryStore, SqliteStore
from concorde_trio.testing.store_checks.samples import emitted, new_signal

pytestmark = pytest.mark.slow

FOREVER = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"


@pytest.fixture(params=[False, True], ids=["thread", "inline"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SqliteStore:
    """A store of either writer, not open."""
    path = tmp_path / "q.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table orders (id integer primary key, what text not null)")
    connection.close()
    return SqliteStore(path, inline=request.param)


def orders(store: SqliteStore) -> list[str]:
    connection = sqlite3.connect(store.path)
    found = [what for (what,) in connection.execute("select what from orders order by id")]
    connection.close()
    return found


async def test_own_rows_and_signals_commit_together(store: SqliteStore) -> None:
    """SIG-2: rows come back, parameters are bound, and nobody sees half of it."""
    async with store.open():
        async with store.transaction() as tx:
            assert await tx.execute("insert into orders (what) values (?), (?)", ("a", "b")) == []
            assert await tx.execute("insert into orders (what) values ('c') returning id, what") == [(3, "c")]
            await store.emit([new_signal("one")], tx=tx)
            assert await tx.execute("select count(*) from orders, signals") == [(3,)]
            assert orders(store) == []
            assert await store.pending(10) == []
        assert orders(store) == ["a", "b", "c"]
        assert [signal.id for signal in await store.pending(10)] == ["one"]


async def test_own_rows_and_signals_roll_back_together(store: SqliteStore) -> None:
    """SIG-2."""
    async with store.open():
        with pytest.raises(KeyError):
            async with store.transaction() as tx:
                await tx.execute("insert into orders (what) values ('a')")
                await store.emit([new_signal("one")], tx=tx)
                raise KeyError
        assert orders(store) == []
        assert await store.pending(10) == []
        await emitted(store, "two")


async def test_an_error_of_a_statement_is_sqlites_own_and_leaves_the_rest(store: SqliteStore) -> None:
    """SIG-2: the caller may go on after a broken constraint."""
    async with store.open():
        async with store.transaction() as tx:
            await tx.execute("insert into orders (id, what) values (1, 'a')")
            with pytest.raises(sqlite3.IntegrityError):
                await tx.execute("insert into orders (id, what) values (1, 'again')")
            with pytest.raises(sqlite3.OperationalError, match="no such table"):
                await tx.execute("select * from nowhere")
            await store.emit([new_signal("one")], tx=tx)
            with pytest.raises(StoreError):
                await store.emit([new_signal("two"), new_signal("one")], tx=tx)
        assert orders(store) == ["a"]
        assert [signal.id for signal in await store.pending(10)] == ["one"]


@pytest.mark.parametrize(
    "statement",
    [
        "commit",
        "COMMIT TRANSACTION",
        "  end",
        "-- a comment\n rollback",
        "/* begin */ rollback to x",
        "; commit",
        "begin immediate",
        "savepoint x",
        "release x",
        "pragma journal_mode = delete",
        "attach 'other.db' as other",
        "detach main",
        "vacuum",
        "/**/--\n/* */;\n\tcommit",
    ],
)
async def test_what_would_end_the_transaction_is_refused(store: SqliteStore, statement: str) -> None:
    """SIG-2: with what to do instead; the transaction goes on."""
    async with store.open():
        async with store.transaction() as tx:
            await tx.execute("insert into orders (what) values ('a')")
            with pytest.raises(UsageError, match="async with"):
                await tx.execute(statement)
            await tx.execute("insert into orders (what) values ('-- commit')")
        assert orders(store) == ["a", "-- commit"]


async def test_two_statements_in_one_are_refused(store: SqliteStore) -> None:
    """SIG-2: nothing is smuggled in behind the first."""
    async with store.open():
        async with store.transaction() as tx:
            for pair in ("select 1; commit", "insert into orders (what) values ('a'); rollback"):
                with pytest.raises((sqlite3.Warning, sqlite3.ProgrammingError)):
                    await tx.execute(pair)
        assert orders(store) == []


async def test_a_transaction_the_database_ended_is_over(store: SqliteStore) -> None:
    """SIG-2: nothing of it is stored, and its block says so, even if the body hides it."""
    async with store.open():
        with pytest.raises((TransactionOver, StoreError)):
            async with store.transaction() as tx:
                await store.emit([new_signal("one")], tx=tx)
                with pytest.raises((sqlite3.Error, TransactionOver)):
                    await tx.execute("insert or rollback into orders (id, what) values (1, 'a'), (1, 'b')")
                with pytest.raises(TransactionOver):
                    await tx.execute("select 1")
        assert orders(store) == []
        assert await store.pending(10) == []
        await emitted(store, "two")


async def test_a_statement_that_runs_on_is_interrupted_at_the_limit(tmp_path: Path) -> None:
    """SIG-2: the writer is free again for others."""
    store = SqliteStore(tmp_path / "q.db")
    async with store.open():
        with trio.fail_after(20), pytest.raises(TransactionOver, match=r"0\.1 s"):
            async with store.transaction(time_limit=0.1) as tx:
                await store.emit([new_signal("one")], tx=tx)
                await tx.execute(FOREVER)
        await emitted(store, "two")
        assert [signal.id for signal in await store.pending(10)] == ["two"]


async def test_a_statement_that_runs_on_ends_though_the_loop_is_blocked(tmp_path: Path) -> None:
    """SIG-2: the writer's thread looks at the time itself."""
    store = SqliteStore(tmp_path / "q.db")
    async with store.open():
        with pytest.raises(TransactionOver):
            async with store.transaction(time_limit=0.05) as tx, trio.open_nursery() as nursery:
                nursery.start_soon(tx.execute, FOREVER)
                await trio.testing.wait_all_tasks_blocked()
                other = threading.Thread(target=_emit_other, args=(store.path,))
                other.start()
                other.join(20)
        assert [signal.id for signal in await store.pending(10)] == ["other"]


def _emit_other(path: Path) -> None:
    SqliteStore(path).emit_sync([new_signal("other")])


async def test_a_body_that_blocks_the_loop_keeps_nobody_out(tmp_path: Path) -> None:
    """SIG-2: the limit is kept by the writer's thread, whatever the Trio thread does."""
    store = SqliteStore(tmp_path / "q.db")
    async with store.open():
        with pytest.raises(TransactionOver):
            async with store.transaction(time_limit=0.05) as tx:
                await store.emit([new_signal("one")], tx=tx)
                other = await trio.to_thread.run_sync(SqliteStore, store.path)
                # From here on the loop is blocked; another writer still comes through.
                assert other.emit_sync([new_signal("other")]) == ["other"]
        assert [signal.id for signal in await store.pending(10)] == ["other"]


async def test_a_shielded_body_that_sleeps_through_its_limit_is_rolled_back(tmp_path: Path) -> None:
    """SIG-2: others get in after the limit, and the body is told at its next use."""
    store = SqliteStore(tmp_path / "q.db")
    async with store.open():
        free = trio.Event()

        async def other() -> None:
            await emitted(store, "other")
            free.set()

        async with trio.open_nursery() as nursery:
            started = trio.Event()

            async def wait_then_emit() -> None:
                await started.wait()
                await other()

            nursery.start_soon(wait_then_emit)
            with pytest.raises(TransactionOver):
                async with store.transaction(time_limit=0.05) as tx:
                    await store.emit([new_signal("one")], tx=tx)
                    started.set()
                    with trio.fail_after(20, shield=True):
                        await free.wait()
                    assert not store.in_transaction()
                    await tx.execute("select 1")
        assert [signal.id for signal in await store.pending(10)] == ["other"]


async def test_a_body_that_comes_late_to_its_end_is_rolled_back(store: SqliteStore) -> None:
    """SIG-2: also if it never met a checkpoint."""
    async with store.open():
        with pytest.raises(TransactionOver):
            async with store.transaction(time_limit=0.01) as tx:
                await store.emit([new_signal("one")], tx=tx)
                time.sleep(0.02)  # noqa: ASYNC251
        assert await store.pending(10) == []
        await emitted(store, "two")


async def test_every_point_of_a_cancelled_transaction_leaves_all_or_nothing(store: SqliteStore) -> None:
    """SIG-2: and the next transaction begins."""
    async with store.open():
        for turns in range(12):
            with trio.CancelScope() as scope:

                async def cancel(scope: trio.CancelScope = scope, turns: int = turns) -> None:
                    for _ in range(turns):
                        await trio.lowlevel.checkpoint()
                    scope.cancel()

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(cancel)
                    async with store.transaction() as tx:
                        await tx.execute("insert into orders (what) values (?)", (f"{turns}",))
                        await store.emit([new_signal(f"{turns}")], tx=tx)
            assert not store.in_transaction()
        assert orders(store) == [signal.id for signal in await store.pending(20)]
        async with store.transaction() as tx:
            await tx.execute("insert into orders (what) values ('last')")
        assert orders(store)[-1] == "last"


async def test_memory_says_that_it_has_no_sql() -> None:
    """SIG-2: with the store that has."""
    store = MemoryStore()
    async with store.open(), store.transaction() as tx:
        with pytest.raises(UsageError, match="SqliteStore"):
            await tx.execute("select 1")

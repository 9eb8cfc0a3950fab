"""What a PostgreSQL queue does beyond the suite: its schema, its transactions, its lost connections."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from concorde_trio._sansio.changes import ClaimSignal
from concorde_trio.errors import SchemaTooNew, StoreError, TransactionOver, UsageError
from concorde_trio.records import SignalState
from concorde_trio.signals.emit import emit_sync
from concorde_trio.testing.session_store_checks.samples import save
from concorde_trio.testing.store_checks.samples import new_signal
from tests.stores.postgres_server import PostgresServer, postgres, psycopg, start_python

pytestmark = pytest.mark.slow

__all__ = ["postgres"]

SOON = 20.0


def store_of(url: str, **options: Any) -> Any:
    from concorde_trio.stores.postgres.store import PostgresStore

    return PostgresStore(url, **options)


def schema_of(url: str) -> str:
    return url.rpartition("=")[2]


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    """A URL with a fresh schema."""
    return postgres.place()


# --- the schema -------------------------------------------------------------------------------------------------


async def test_a_newer_schema_is_refused_untouched(postgres: PostgresServer, url: str) -> None:
    """The protocol: SchemaTooNew names the version, and nothing of it is changed."""
    async with store_of(url).open():
        pass
    postgres.execute(f"update {schema_of(url)}.concorde_meta set schema_version = 99")
    with pytest.raises(SchemaTooNew, match="99"):
        async with store_of(url).open():
            raise AssertionError("opened")
    assert postgres.execute(f"select schema_version from {schema_of(url)}.concorde_meta") == [(99,)]


async def test_somebody_elses_table_is_left_alone(postgres: PostgresServer, url: str) -> None:
    """The protocol: a schema with a table of one of our names is refused by that name."""
    postgres.execute(f"create schema {schema_of(url)}; create table {schema_of(url)}.runs (mine int)")
    with pytest.raises(StoreError, match="'runs'"):
        async with store_of(url).open():
            raise AssertionError("opened")
    assert postgres.execute(f"select count(*) from {schema_of(url)}.runs") == [(0,)]


async def test_many_that_open_a_fresh_schema_at_once_all_succeed(url: str) -> None:
    """The protocol: one of them makes it, under an advisory lock, and all have the same queue."""
    names: list[str] = []

    async def opens() -> None:
        store = store_of(url)
        async with store.open():
            names.append(store.queue)

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(opens)
    assert len(names) == 6
    assert len(set(names)) == 1


async def test_two_schemas_are_two_queues(postgres: PostgresServer, url: str) -> None:
    """REC-1: each with its own signals, worker and name, also when one is named by schema=."""
    other = store_of(postgres.url, schema=f"{schema_of(url)}_b")
    one = store_of(url)
    async with one.open(), other.open(), one.own(), other.own():
        await one.emit([new_signal("a")])
        assert await other.pending(9) == []
        assert one.queue != other.queue


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        ("mysql://x/y", {}, "postgresql://"),
        ("queue.db", {}, "postgresql://"),
        ("postgresql://u:secret@h/d?nonsense=1", {}, "cannot be read"),
        ("postgresql:///d?schema=Upper", {}, "lower-case"),
        ("postgresql:///d", {"schema": "pg_mine"}, "pg_"),
        ("postgresql:///d?schema=a", {"schema": "b"}, "one of them"),
        ("postgresql:///d", {"lease": 0.0}, "lease"),
    ],
)
def test_what_names_no_queue_is_refused_at_once(given: str, options: dict[str, Any], words: str) -> None:
    """The protocol: by what was expected, and no password is repeated."""
    with pytest.raises(UsageError, match=words) as caught:
        store_of(given, **options)
    assert "secret" not in str(caught.value)


async def test_a_database_that_is_not_there_is_an_error_at_once(postgres: PostgresServer) -> None:
    """REC-5: what no waiting helps; the words name the database, and no password."""
    with trio.fail_after(SOON), pytest.raises(StoreError, match="nowhere") as caught:
        async with store_of(f"postgresql://tests:secret@/nowhere?host={postgres.folder}").open():
            raise AssertionError("opened")
    assert "secret" not in str(caught.value)


async def test_a_server_that_is_not_there_is_waited_for_and_named(tmp_path: Path) -> None:
    """REC-5: StoreBusy after the patience, with what was in the way."""
    with trio.fail_after(SOON), pytest.raises(StoreError, match=r"could not be used for 0\.2 s"):
        async with store_of(f"postgresql:///d?host={tmp_path}", busy_timeout=0.2).open():
            raise AssertionError("opened")


# --- transactions -----------------------------------------------------------------------------------------------


async def test_own_tables_and_signals_are_stored_together(postgres: PostgresServer, url: str) -> None:
    """SIG-2: the user's names are found as in a session of their own, and both are there or neither."""
    table = f"orders_{schema_of(url)}"
    postgres.execute(f"create table {table} (number int primary key)")
    store = store_of(url)
    async with store.open():
        async with store.transaction() as tx:
            await tx.execute(f"insert into {table} values (%s)", (1,))
            await store.emit([new_signal("one")], tx=tx)
        with pytest.raises(psycopg.errors.UniqueViolation):
            async with store.transaction() as tx:
                await store.emit([new_signal("two")], tx=tx)
                await tx.execute(f"insert into {table} values (1)")
        async with store.transaction() as tx:
            assert await tx.run(lambda connection: connection.execute("select 7").fetchone()) == (7,)
            assert await tx.execute(f"select * from {table}") == [(1,)]
        assert [each.id for each in await store.pending(9)] == ["one"]


async def test_a_statement_that_failed_takes_the_transaction_with_it_and_says_so(url: str) -> None:
    """SIG-2: also where its error was caught; a commit never pretends."""
    store = store_of(url)
    async with store.open():
        with pytest.raises(TransactionOver, match="rolled back"):
            async with store.transaction() as tx:
                await store.emit([new_signal("one")], tx=tx)
                with pytest.raises(psycopg.errors.DivisionByZero):
                    await tx.execute("select 1 / 0")
        async with store.transaction() as tx:
            await store.emit([new_signal("two")], tx=tx)
            await tx.execute("savepoint s")
            with pytest.raises(psycopg.errors.DivisionByZero):
                await tx.execute("select 1 / 0")
            await tx.execute("rollback to s")
        assert [each.id for each in await store.pending(9)] == ["two"]


@pytest.mark.parametrize("sql", ["commit", " /* x */ BEGIN", "set search_path to public", "reset all", "listen x"])
async def test_what_would_end_or_outlast_a_transaction_is_refused(url: str, sql: str) -> None:
    """SIG-2: the connection is the queue's own."""
    store = store_of(url)
    async with store.open(), store.transaction() as tx:
        with pytest.raises(UsageError):
            await tx.execute(sql)
        await tx.execute("set local work_mem to '1MB'")


async def test_a_statement_ends_when_its_task_is_cancelled(url: str) -> None:
    """SIG-2, SRV-5: on the server too, and the connections are good afterwards."""
    store = store_of(url)
    async with store.open():
        with trio.fail_after(SOON):
            for _ in range(3):
                with trio.move_on_after(0.05):
                    async with store.transaction() as tx:
                        await tx.execute("select pg_sleep(600)")
                with pytest.raises(TransactionOver):
                    async with store.transaction(time_limit=0.05) as tx:
                        await tx.execute("select pg_sleep(600)")
                with trio.move_on_after(0.05):
                    await store._read(lambda connection: connection.execute("select pg_sleep(600)"))
                await store.emit([new_signal()])
        assert len(await store.pending(9)) == 3


async def test_a_statement_that_cannot_be_cancelled_is_cut_off(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIG-2: the server notices within a second or two that nobody waits for it, and lets go what it had locked."""

    def fails(connection: Any, *, timeout: float) -> None:
        raise psycopg.OperationalError("the server takes no request to cancel")

    monkeypatch.setattr(psycopg.Connection, "cancel_safe", fails)
    store = store_of(url)
    async with store.open():
        with trio.fail_after(SOON):
            with trio.move_on_after(0.05):
                async with store.transaction() as tx:
                    await tx.execute("select pg_sleep(600)")
            await store.emit([new_signal()])


async def test_a_transaction_of_the_users_own_connection_is_joined(postgres: PostgresServer, url: str) -> None:
    """SIG-2, SIG-6: their commit stores and wakes, their rollback does neither."""
    store = store_of(url)
    async with store.open():
        woken = trio.Event()
        async with store.on_change(woken.set):
            with psycopg.connect(postgres.url) as mine:
                await store.emit([new_signal("gone")], tx=store.join(mine))
                mine.rollback()
                assert await store.emit([new_signal("one")], tx=store.join(mine)) == ["one"]
                assert emit_sync(store.join(mine), "asked", 1)
                assert await store.join(mine).execute("select 1") == [(1,)]
                assert await store.pending(9) == []
                assert not woken.is_set()
                mine.commit()
            with trio.fail_after(SOON):
                await woken.wait()
        assert [each.kind for each in await store.pending(9)] == ["asked", "asked"]
        with psycopg.connect(postgres.url, autocommit=True) as mine:
            with pytest.raises(UsageError, match="autocommit"):
                emit_sync(store.join(mine), "asked")
            with mine.transaction():
                emit_sync(store.join(mine), "asked")
        assert len(await store.pending(9)) == 3
        with pytest.raises(UsageError, match="psycopg"):
            store.join(object())


async def test_a_signal_that_becomes_visible_late_takes_its_place(postgres: PostgresServer, url: str) -> None:
    """SIG-3, Q-04: by its seq, among the unclaimed."""
    store = store_of(url)
    async with store.open():
        with psycopg.connect(postgres.url) as mine:
            await store.emit([new_signal("early")], tx=store.join(mine))
            await store.emit([new_signal("late")])
            assert [each.id for each in await store.pending(9)] == ["late"]
            mine.commit()
        assert [each.id for each in await store.pending(9)] == ["early", "late"]


# --- lost connections -------------------------------------------------------------------------------------------


class Losing(psycopg.Connection[Any]):
    """A connection that is lost while it commits, before or after the server has heard of it."""

    how: Callable[[Losing, str], None] | None = None

    def execute(self, query: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(query, str) and query.endswith("commit") and Losing.how is not None:
            how, Losing.how = Losing.how, None
            how(self, query)
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return super().execute(query, *arguments, **options)


def after_the_commit(connection: Losing, query: str) -> None:
    psycopg.Connection.execute(connection, query)
    connection.close()


def before_the_commit(connection: Losing, query: str) -> None:
    connection.close()


@pytest.mark.parametrize("how", [after_the_commit, before_the_commit])
async def test_a_commit_without_an_answer_is_found_out(
    url: str, how: Callable[[Losing, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-5, SIG-1: written once, whether the server had heard of it or not."""
    monkeypatch.setattr(psycopg, "connect", Losing.connect)
    store = store_of(url)
    async with store.open():
        monkeypatch.setattr(Losing, "how", staticmethod(how))
        assert await store.emit([new_signal("one")]) == ["one"]
        assert Losing.how is None
        monkeypatch.setattr(Losing, "how", staticmethod(how))
        await store.apply([ClaimSignal("one", 1.0), save()])
        monkeypatch.setattr(Losing, "how", staticmethod(how))
        assert await trio.to_thread.run_sync(store.emit_sync, [new_signal("two")]) == ["two"]
        record = await store.signal("one")
        assert record.state is SignalState.PROCESSING
        assert [each.id for each in await store.pending(9)] == ["two"]


async def test_a_lost_commit_of_a_transaction_says_what_became_of_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIG-2: what was not written is told of, since a body cannot be run again."""
    monkeypatch.setattr(psycopg, "connect", Losing.connect)
    store = store_of(url)
    async with store.open():
        monkeypatch.setattr(Losing, "how", staticmethod(after_the_commit))
        async with store.transaction() as tx:
            await store.emit([new_signal("one")], tx=tx)
        monkeypatch.setattr(Losing, "how", staticmethod(before_the_commit))
        with pytest.raises(StoreError, match="nothing was stored"):
            async with store.transaction() as tx:
                await store.emit([new_signal("two")], tx=tx)
        assert [each.id for each in await store.pending(9)] == ["one"]


async def test_what_cannot_be_found_out_is_said(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-5: an outcome that is not known is never told as one that is."""
    monkeypatch.setattr(psycopg, "connect", Losing.connect)
    store = store_of(url, busy_timeout=0.02)
    async with store.open():

        def never_again(connection: Losing, query: str) -> None:
            def refused(*_: Any, **__: Any) -> Any:
                raise psycopg.OperationalError("connection refused")

            monkeypatch.setattr(psycopg, "connect", refused)
            connection.close()

        monkeypatch.setattr(Losing, "how", staticmethod(never_again))
        with pytest.raises(StoreError, match="not known"):
            await store.emit([new_signal("one")])


async def test_terminated_connections_are_made_again(postgres: PostgresServer, url: str) -> None:
    """REC-5, SIG-6: reads, writes and the listener, each time."""
    store = store_of(url)
    ours = "from pg_stat_activity where application_name like 'concorde-trio%' and pid <> pg_backend_pid()"
    async with store.open():
        woken = trio.Event()
        async with store.on_change(lambda: woken.set()):
            for number in range(4):
                postgres.execute(f"select pg_terminate_backend(pid) {ours}")
                with trio.fail_after(SOON):
                    await store.emit([new_signal()])
                    assert len(await store.pending(99)) == number + 1
                    while postgres.execute(f"select 1 {ours} and query like 'listen%'") == []:
                        await trio.sleep(0.01)
                    woken = trio.Event()
                    await trio.to_thread.run_sync(store_of(url).emit_sync, [])
                    await woken.wait()
                await store.apply([ClaimSignal(each.id, 1.0) for each in await store.pending(0)])


async def test_a_gap_in_listening_wakes(postgres: PostgresServer, url: str) -> None:
    """SIG-6: what was sent while nobody listened is looked for, without waiting for a sweep."""
    store = store_of(url)
    async with store.open():
        woken = trio.Event()
        async with store.on_change(woken.set):
            postgres.execute("select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%'")
            with trio.fail_after(SOON):
                await woken.wait()


async def test_a_bad_text_fails_alone(url: str) -> None:
    """REC-5: what the database cannot hold is a StoreError of its own caller."""
    store = store_of(url)
    async with store.open():
        failed = []

        async def emit(id_: str) -> None:
            try:
                await store.emit([new_signal(id_)])
            except StoreError:
                failed.append(id_)

        async with trio.open_nursery() as nursery:
            for id_ in ("a", "b\0", "c", "d\ud800", "e"):
                nursery.start_soon(emit, id_)
        assert sorted(failed) == ["b\0", "d\ud800"]
        assert sorted(each.id for each in await store.pending(9)) == ["a", "c", "e"]


# --- several processes ------------------------------------------------------------------------------------------

EMITTER = """
import sys, trio
from concorde_trio.records import NewSignal
from concorde_trio.stores.postgres.store import PostgresStore

url, name = sys.argv[1:]
store = PostgresStore(url)

def new(number):
    return NewSignal(id=f"{name}-{number:03}", kind="k", payload="1", emitted_at=1.0)

async def main():
    async with store.open():
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(0, 120, 3):
            await store.emit([new(number)])
            await store.emit([new(number + 1), new(number + 2)])
        store.emit_sync([new(120)])

trio.run(main)
"""


async def test_two_processes_emitting_at_once_keep_their_order(url: str) -> None:
    """SIG-3, SIG-6, SIG-8: each one's signals stand in the order of its calls, no seq twice; and they are heard of."""
    store = store_of(url)
    async with store.open():
        woken = trio.Event()
        async with store.on_change(woken.set):
            processes = [start_python(EMITTER, url, name) for name in ("a", "b")]
            for process in processes:
                assert await trio.to_thread.run_sync(process.stdout.readline) == b"ready\n"
            for process in processes:
                process.stdin.write(b"go\n")
                process.stdin.close()
            with trio.fail_after(SOON):
                await woken.wait()
            for process in processes:
                assert await trio.to_thread.run_sync(process.wait) == 0
                process.stdout.close()
        found = await store.pending(1000)
    assert len({each.seq for each in found}) == len(found) == 242
    for name in ("a", "b"):
        assert [each.id for each in found if each.id[0] == name] == [f"{name}-{number:03}" for number in range(121)]

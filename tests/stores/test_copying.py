"""Copies of a SQLite queue: all of it or nothing, and never of one that is served."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from concorde_trio import SqliteStore
from concorde_trio.errors import QueueTaken, SchemaTooNew, StoreError
from concorde_trio.stores.copied_tables import LOCAL, TABLES, CopiedTable, Row
from concorde_trio.stores.copying import copy_queue
from concorde_trio.stores.sqlite_copy import SqliteCopyPlace, SqliteTables
from concorde_trio.stores.sqlite_sql import each_statement, migrations
from concorde_trio.testing.session_store_checks.samples import all_of
from concorde_trio.testing.store_checks.samples import SETTLED, new_run, new_signal, settled
from tests.stores.copied_queue import LATEST, fill, numbers


@pytest.fixture
async def source(tmp_path: Path) -> Path:
    """A queue in a file."""
    store = SqliteStore(tmp_path / "source.db", inline=True)
    async with store.open():
        await fill(store)
    return store.path


def test_a_copy_takes_every_table_of_the_schema_with_every_column() -> None:
    """SIG-1, SES-17: a table that is added must be copied, or be of the place alone."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for _, script in migrations():
            for each in each_statement(script):
                connection.execute(each)
        there = {
            name: {column for (column,) in connection.execute("select name from pragma_table_info(?)", (name,))}
            for (name,) in connection.execute("select name from sqlite_schema where type = 'table'")
            if not name.startswith("sqlite_")
        }
    assert there.keys() - LOCAL == {table.name for table in TABLES}
    for table in TABLES:
        assert there[table.name] == set(table.columns), table.name


async def test_a_copy_has_all_that_the_queue_had_and_gives_out_no_number_again(source: Path, tmp_path: Path) -> None:
    """SIG-1, SIG-3, SES-10a, SES-17: also the numbers of what was pruned."""
    copied = copy_queue(SqliteCopyPlace(source), SqliteCopyPlace(tmp_path / "copy.db"))
    assert dict(copied.rows) == {
        "signals": LATEST - 1,
        "runs": 2,
        "concorde_requests": 1,
        "concorde_schedules": 2,
        "sessions": 3,
        "messages": 3,
        "inputs": 2,
    }
    old, new = SqliteStore(source, inline=True), SqliteStore(tmp_path / "copy.db", inline=True)
    async with old.open(), new.open():
        assert await all_of(new) == await all_of(old)
        assert old.queue != new.queue  # the marker of its programs, and where it is reached
        assert await numbers(new) == await numbers(old) == (LATEST + 1, 3, 2)


async def test_a_queue_that_is_served_is_neither_copied_nor_copied_into(source: Path, tmp_path: Path) -> None:
    """REC-1: and the sentence says who serves nothing of it."""
    served = SqliteStore(tmp_path / "served.db", inline=True)
    async with served.open(), served.own():
        with pytest.raises(QueueTaken, match=r"served\.db is served by a worker; stop it first"):
            copy_queue(SqliteCopyPlace(served.path), SqliteCopyPlace(tmp_path / "copy.db"))
        with pytest.raises(QueueTaken, match=r"served\.db is served by a worker; stop it first"):
            copy_queue(SqliteCopyPlace(source), SqliteCopyPlace(served.path))
        # Its worker can go on.
        await served.emit([new_signal("s")])
    assert not (tmp_path / "copy.db").exists()


async def test_a_queue_whose_programs_still_run_is_not_copied(source: Path, tmp_path: Path) -> None:
    """REC-6: its runs may still do something."""
    programs = source.with_name("source.db.programs")
    with programs.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        with pytest.raises(QueueTaken, match="still has programs of its last worker running"):
            copy_queue(SqliteCopyPlace(source), SqliteCopyPlace(tmp_path / "copy.db"))
    copy_queue(SqliteCopyPlace(source), SqliteCopyPlace(tmp_path / "copy.db"))


async def test_a_queue_with_rows_is_not_copied_into(source: Path, tmp_path: Path) -> None:
    """Misuse is loud: what is there and how much, and nothing of it changes. One without rows is taken."""
    other = SqliteStore(tmp_path / "other.db", inline=True)
    async with other.open():
        await other.emit([new_signal("mine")])
        before = await all_of(other)
        with pytest.raises(StoreError, match=r"other\.db has a queue with rows already \(1 in signals\)"):
            copy_queue(SqliteCopyPlace(source), SqliteCopyPlace(other.path))
        assert await all_of(other) == before
    empty = SqliteStore(tmp_path / "empty.db", inline=True)
    async with empty.open():
        copy_queue(SqliteCopyPlace(source), SqliteCopyPlace(empty.path))
        assert len(await empty.pending(99)) == LATEST - 2


async def test_a_queue_that_was_emptied_gives_out_none_of_its_own_numbers_again_either(
    source: Path, tmp_path: Path
) -> None:
    """SIG-3, REC-3: it had more signals and runs than the source ever had, and somebody may remember them."""
    older = SqliteStore(tmp_path / "older.db", inline=True)
    async with older.open():
        for position in range(1, LATEST + 4):
            await settled(older, f"old {position}", runs=(new_run(f"old {position}", position),))
        assert (await older.prune(SETTLED + 1)).signals == LATEST + 3
    copy_queue(SqliteCopyPlace(source), SqliteCopyPlace(older.path))
    async with older.open():
        assert (await numbers(older))[:2] == (LATEST + 4, LATEST + 3)


class Stopped(Exception):
    """Somebody pressed Ctrl-C."""


@pytest.mark.parametrize("at", ["copying sessions", "verifying inputs"])
async def test_a_copy_that_is_broken_off_leaves_nothing(source: Path, tmp_path: Path, at: str) -> None:
    """SIG-2: one transaction. A file of the user's own is as it was, and one that was not there is not there."""

    def stop(what: str, done: int, of: int) -> None:
        if what == at:
            raise Stopped

    folder = tmp_path / "new"
    folder.mkdir()
    mine = tmp_path / "mine.db"
    with closing(sqlite3.connect(mine)) as connection:
        connection.executescript("create table orders (n); insert into orders values (1)")
    for path in (folder / "copy.db", mine):
        with pytest.raises(Stopped):
            copy_queue(SqliteCopyPlace(source), SqliteCopyPlace(path), stop)
    assert list(folder.iterdir()) == []
    with closing(sqlite3.connect(mine)) as connection:
        assert connection.execute("select name from sqlite_schema").fetchall() == [("orders",)]
        assert connection.execute("select n from orders").fetchall() == [(1,)]
    copy_queue(SqliteCopyPlace(source), SqliteCopyPlace(mine))


async def test_a_copy_that_reads_differently_is_undone(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIG-5: what was written is read back before it counts: each row, and that there are no others."""
    write = SqliteTables.write

    def losing(self: SqliteTables, table: CopiedTable, batches: Iterator[list[Row]]) -> None:
        write(self, table, (batch[1:] for batch in batches) if table.name == "inputs" else batches)

    def changing(self: SqliteTables, table: CopiedTable, batches: Iterator[list[Row]]) -> None:
        write(self, table, batches)
        self._connection.execute("update messages set at = at + 1e-6 where seq = 2")

    for broken, words in (
        (losing, "of 2 rows of inputs that were read, 1 read back"),
        (changing, "of 3 rows of messages"),
    ):
        monkeypatch.setattr(SqliteTables, "write", broken)
        with pytest.raises(StoreError, match=words):
            copy_queue(SqliteCopyPlace(source), SqliteCopyPlace(tmp_path / "copy.db"))
        assert not (tmp_path / "copy.db").exists()


async def test_a_queue_of_a_newer_version_is_not_copied(source: Path, tmp_path: Path) -> None:
    """The protocol: SchemaTooNew, and the source is as it was."""
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("update concorde_meta set schema_version = 99")
        connection.commit()
    with pytest.raises(SchemaTooNew, match="99"):
        copy_queue(SqliteCopyPlace(source), SqliteCopyPlace(tmp_path / "copy.db"))
    assert not (tmp_path / "copy.db").exists()

"""Opening: what cannot be a queue's file is refused in a sentence, and nothing is half-created."""

from __future__ import annotations

import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import trio

from concorde_trio.errors import SchemaTooNew, StoreError, UsageError
from concorde_trio.stores import SqliteStore
from concorde_trio.stores.sqlite_sql import migrations
from concorde_trio.testing.store_checks.samples import new_signal


async def refused(store: SqliteStore, *words: str) -> None:
    """Opening it, and emitting into it from outside, is a StoreError with these words."""
    with pytest.raises(StoreError) as opening:
        async with store.open():
            pass
    with pytest.raises(StoreError) as emitting:
        store.emit_sync([new_signal()])
    for word in (str(store.path), *words):
        assert word in str(opening.value)
        assert word in str(emitting.value)


@pytest.mark.parametrize("path", [":memory:", "", "file::memory:", "file:q.db?mode=memory", "sqlite:///q.db", b"q.db"])
def test_what_names_no_file_is_refused_where_it_is_written(path: str) -> None:
    """SIG-1: with the hint to use MemoryStore, or a path."""
    with pytest.raises(UsageError):
        SqliteStore(path)
    if "memory" in str(path) or path == "":
        with pytest.raises(UsageError, match="MemoryStore"):
            SqliteStore(path)


async def test_a_missing_folder_is_named_and_not_made(tmp_path: Path) -> None:
    """REC-5: a sentence that names the folder."""
    await refused(SqliteStore(tmp_path / "no" / "q.db"), "does not exist")
    assert list(tmp_path.iterdir()) == []


async def test_a_path_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    """REC-5."""
    (tmp_path / "q.db").mkdir()
    await refused(SqliteStore(tmp_path / "q.db"), "is a folder")
    assert [each.name for each in tmp_path.iterdir()] == ["q.db"]


async def test_a_path_that_is_a_device_is_refused() -> None:
    """REC-5."""
    await refused(SqliteStore("/dev/null"), "no ordinary file")


async def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    """REC-5."""
    file = tmp_path / "q.db"
    file.write_text("these are my notes, " * 100)
    await refused(SqliteStore(file), "no SQLite database")
    assert file.read_text() == "these are my notes, " * 100
    assert [each.name for each in tmp_path.iterdir()] == ["q.db"]


@pytest.mark.parametrize("folder", ["/proc", "/sys"])
async def test_a_folder_that_takes_no_files_is_refused(folder: str) -> None:
    """REC-5: also for root, whom no permission stops."""
    with pytest.raises(StoreError, match=f"{folder}.*(rights|writable)"):
        async with SqliteStore(f"{folder}/concorde-test.db").open():
            pass


async def test_a_table_of_the_same_name_is_not_touched(tmp_path: Path) -> None:
    """SIG-2: users' tables may stand in the file, but not under our names."""
    file = tmp_path / "q.db"
    with sqlite3.connect(file) as connection:
        connection.execute("create table runs (distance real)")
    connection.close()
    before = file.read_bytes()
    await refused(SqliteStore(file), "'runs'", "another file")
    assert file.read_bytes() == before


async def test_users_tables_and_their_version_stay(tmp_path: Path) -> None:
    """SIG-2: a queue can be added to a database that an application has already, whatever its user_version."""
    file = tmp_path / "q.db"
    with sqlite3.connect(file) as connection:
        connection.execute("create table orders (id integer)")
        connection.execute("insert into orders values (7)")
        connection.execute("pragma user_version = 99")
    connection.close()
    async with SqliteStore(file).open():
        pass
    connection = sqlite3.connect(file)
    assert connection.execute("select id from orders").fetchall() == [(7,)]
    assert connection.execute("pragma user_version").fetchall() == [(99,)]
    connection.close()


async def test_a_newer_schema_is_refused_by_both_numbers(tmp_path: Path) -> None:
    """REC-5: and left as it is."""
    store = SqliteStore(tmp_path / "q.db")
    async with store.open():
        await store.emit([new_signal("one")])
    with sqlite3.connect(store.path) as connection:
        connection.execute("update concorde_meta set schema_version = 41")
    connection.close()
    before = store.path.read_bytes()
    with pytest.raises(SchemaTooNew, match=f"41.*{migrations()[-1][0]}"):
        async with store.open():
            pass
    with pytest.raises(SchemaTooNew):
        store.emit_sync([new_signal()])
    assert store.path.read_bytes() == before


def test_migrations_are_numbered_without_gaps() -> None:
    """REC-5: 0001, 0002, ... in files."""
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))


async def test_two_spellings_of_one_file_are_one_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-1: relative paths and symbolic links."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "other.db").symlink_to("q.db")
    monkeypatch.chdir(tmp_path)
    one = SqliteStore("real/q.db")
    others = [
        SqliteStore("link/q.db"),
        SqliteStore("link/other.db"),
        SqliteStore(tmp_path / "real" / ".." / "real" / "q.db"),
    ]
    monkeypatch.chdir("/")  # a relative path means the folder in which it was written
    async with one.open():
        for number, other in enumerate(others):
            assert other.path == one.path
            assert other.programs_lock == one.programs_lock
            other.emit_sync([new_signal(f"{number}")])
        assert [signal.id for signal in await one.pending(10)] == ["0", "1", "2"]


@pytest.mark.parametrize("attempt", range(5))
def test_a_fresh_file_opened_by_many_at_once_becomes_one_queue(tmp_path: Path, attempt: int) -> None:
    """REC-5, SIG-8: all of them succeed."""
    path, together = tmp_path / "q.db", threading.Barrier(6)

    async def main(number: int) -> None:
        store = SqliteStore(path)
        async with store.open():
            await store.emit([new_signal(f"{number}")])

    def open_it(number: int) -> None:
        together.wait()
        if number % 2:
            trio.run(main, number)
        else:
            SqliteStore(path).emit_sync([new_signal(f"{number}")])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(open_it, range(6)))
    connection = sqlite3.connect(path)
    assert connection.execute("select count(*), count(distinct seq) from signals").fetchone() == (6, 6)
    assert connection.execute("select count(*) from concorde_meta").fetchone() == (1,)
    connection.close()


async def test_no_thread_and_no_descriptor_is_left_after_closing(tmp_path: Path) -> None:
    """REC-5: also when opening failed."""
    async with SqliteStore(tmp_path / "warm.db").open():
        pass
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    (tmp_path / "notes").write_text("no database, " * 100)
    for _ in range(5):
        store = SqliteStore(tmp_path / "q.db")
        async with store.open(), store.own(), store.on_change(lambda: None):
            await store.emit([new_signal()])
        with pytest.raises(StoreError):
            async with SqliteStore(tmp_path / "notes").open():
                pass
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert not [each.name for each in threading.enumerate() if "writer" in each.name]
    assert threading.active_count() <= threads + 1  # a worker thread of Trio's may linger


async def test_a_payload_over_the_stores_bound_is_refused(tmp_path: Path) -> None:
    """SIG-5: naming the sizes; nothing is stored."""
    store = SqliteStore(tmp_path / "q.db", max_payload=10)
    async with store.open():
        await store.emit([new_signal("ok", "12345678")])
        with pytest.raises(ValueError, match="11 bytes .* at most 10"):
            await store.emit([new_signal("a"), new_signal("b", "123456789")])
        with pytest.raises(ValueError):
            store.emit_sync([new_signal("c", "é" * 5)])
        assert [signal.id for signal in await store.pending(10)] == ["ok"]


async def test_a_database_that_lost_its_name_while_it_was_open_is_told(tmp_path: Path) -> None:
    """REC-5: what is emitted into a file without a name would be lost; a worker that sweeps stops with a clear error."""
    path = tmp_path / "q.db"
    store = SqliteStore(path)
    async with store.open():
        await store.requests()
        path.unlink()
        with pytest.raises(StoreError, match=r"q\.db was removed or replaced"):
            await store.requests()
        SqliteStore(path).emit_sync([new_signal()])
        with pytest.raises(StoreError, match=r"q\.db was removed or replaced"):
            await store.requests()

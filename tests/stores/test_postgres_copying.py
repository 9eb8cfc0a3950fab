"""Copies from SQLite to PostgreSQL and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from concorde_trio import SqliteStore
from concorde_trio.errors import QueueTaken, StoreError
from concorde_trio.stores.copied_tables import LOCAL, TABLES
from concorde_trio.stores.copying import copy_queue
from concorde_trio.stores.sqlite_copy import SqliteCopyPlace
from concorde_trio.stores.urls import postgres_copy_place, postgres_store
from concorde_trio.testing.session_store_checks.samples import all_of
from tests.stores.copied_queue import LATEST, fill, numbers
from tests.stores.postgres_server import PostgresServer, postgres

pytestmark = pytest.mark.slow

__all__ = ["postgres"]


def schema_of(url: str) -> str:
    return url.rpartition("=")[2]


@pytest.fixture
async def source(tmp_path: Path) -> Path:
    """A queue in a file."""
    store = SqliteStore(tmp_path / "source.db")
    async with store.open():
        await fill(store)
    return store.path


async def test_a_queue_moves_to_postgresql_and_back(source: Path, tmp_path: Path, postgres: PostgresServer) -> None:
    """SIG-1, SIG-3, SES-10a, SES-17: all of it, order included, and no number is given out again."""
    url = postgres.place()
    there = copy_queue(SqliteCopyPlace(source), postgres_copy_place(url))
    back = copy_queue(postgres_copy_place(url), SqliteCopyPlace(tmp_path / "back.db"))
    again = copy_queue(postgres_copy_place(url), postgres_copy_place(other := postgres.place()))
    assert there == back == again
    stores: list[Any] = [
        *(SqliteStore(source), postgres_store(url)),
        *(SqliteStore(tmp_path / "back.db"), postgres_store(other)),
    ]
    found = []
    for store in stores:
        async with store.open():
            found.append((await all_of(store), await numbers(store)))
    assert all(each == found[0] for each in found)
    assert found[0][1] == (LATEST + 1, 3, 2)


async def test_the_tables_of_postgresql_are_those_that_are_copied(postgres: PostgresServer) -> None:
    """SIG-1: as in SQLite; a column that a fleet alone has says so in LOCAL."""
    url = postgres.place()
    async with postgres_store(url).open():
        pass
    rows = postgres.execute(
        "select table_name, column_name from information_schema.columns where table_schema = %s", [schema_of(url)]
    )
    for table in TABLES:
        assert {column for name, column in rows if name == table.name} == set(table.columns), table.name
    assert {name for name, _ in rows} - LOCAL == {table.name for table in TABLES}


async def test_a_served_or_filled_queue_is_refused_and_a_broken_copy_leaves_no_schema(
    source: Path, tmp_path: Path, postgres: PostgresServer
) -> None:
    """REC-1, SIG-2: the same words as for a file; what failed has made nothing."""
    url, fresh = postgres.place(), postgres.place()
    store = postgres_store(url)
    async with store.open():
        async with store.own():
            with pytest.raises(QueueTaken, match="is served by process .* stop it first, then copy"):
                copy_queue(postgres_copy_place(url), SqliteCopyPlace(tmp_path / "copy.db"))
            with pytest.raises(QueueTaken, match="is served by process"):
                copy_queue(SqliteCopyPlace(source), postgres_copy_place(url))
        await fill(store)
        async with store.enrol():
            with pytest.raises(QueueTaken, match="is served by process .* stop all of them first, then copy"):
                copy_queue(postgres_copy_place(url), SqliteCopyPlace(tmp_path / "copy.db"))
        with pytest.raises(StoreError, match=r"has a queue with rows already \(6 in signals"):
            copy_queue(SqliteCopyPlace(source), postgres_copy_place(url))
    with pytest.raises(StoreError, match="there is no queue in .* to copy"):
        copy_queue(postgres_copy_place(fresh), SqliteCopyPlace(tmp_path / "copy.db"))

    class Stopped(Exception):
        pass

    def stop(what: str, done: int, of: int) -> None:
        if what == "verifying inputs":
            raise Stopped

    with pytest.raises(Stopped):
        copy_queue(SqliteCopyPlace(source), postgres_copy_place(fresh), stop)
    assert postgres.execute("select 1 from pg_namespace where nspname = %s", [schema_of(fresh)]) == []
    assert not (tmp_path / "copy.db").exists()

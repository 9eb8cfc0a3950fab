"""What ``doctor`` finds in a SQLite queue: each planted fault by its rule, and nothing where all is well."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio

from concorde_trio import SqliteStore
from concorde_trio._sansio.diagnosis import diagnose
from concorde_trio.errors import StoreError
from concorde_trio.stores.sqlite_examination import examine_sqlite
from concorde_trio.stores.sqlite_sql import each_statement, migrations
from tests.stores.planted_faults import FAULTS, fill, start


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A queue with which all is well, to be copied."""
    path = tmp_path_factory.mktemp("filled") / "queue.db"

    async def write() -> None:
        store = SqliteStore(path, inline=True)
        async with store.open():
            await fill(store)

    trio.run(write)
    return path


@pytest.fixture
def path(filled: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copy(filled, tmp_path))


def plant(path: Path, statement: str) -> None:
    """Do what no store would: constraints and foreign keys are off."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma ignore_check_constraints = on")
        connection.execute(statement)


def test_nothing_is_found_in_a_good_queue(path: Path) -> None:
    """Q-21: 0 findings, and nothing is written by looking."""
    before = path.read_bytes()
    assert diagnose(examine_sqlite(path)) == []
    assert path.read_bytes() == before


@pytest.mark.parametrize(("statement", "rule", "id_"), FAULTS)
def test_each_planted_fault_is_found(path: Path, statement: str, rule: str, id_: str) -> None:
    """Q-21: by its rule, with the row and what to do."""
    plant(path, statement)
    found = diagnose(examine_sqlite(path))
    [mine] = [each for each in found if each.rule == rule]
    assert mine.ids == (id_,)
    assert len(found) == 1 or rule in ("RUN-2, TAG-4", "CLM-1", "RUN-2"), found


async def test_a_counter_that_fell_behind_its_table_is_found(path: Path) -> None:
    """SIG-3: a seq would be given out again."""
    plant(path, "update sqlite_sequence set seq = 1 where name = 'signals'")
    [found] = diagnose(examine_sqlite(path))
    assert (found.rule, found.ids) == ("SIG-3", ("signals: 3 is there, 1 was the last",))


async def test_a_worker_owns_what_runs_and_nobody_after_its_death(path: Path) -> None:
    """Q-21: the same rows, with a worker and without one; looking takes nothing from it."""
    store = SqliteStore(path, inline=True)
    async with store.open(), store.own():
        await start(store)
        evidence = examine_sqlite(path)
        assert evidence.served and diagnose(evidence) == []
    evidence = examine_sqlite(path)
    assert not evidence.served
    assert [(each.kind, each.ids) for each in diagnose(evidence)] == [("cut", ("run-parked-0",))]


def test_a_queue_of_an_older_version_is_not_changed_by_looking(tmp_path: Path) -> None:
    """The protocol: it says what brings it up to date."""
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in each_statement(migrations()[0][1]):
            connection.execute(statement)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="has schema version 1 and this package reads"):
        examine_sqlite(path)
    assert path.read_bytes() == before

"""The critical path of a workload is what the lock rule allows, and a recording keeps no names."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest
import trio

from benchmarks import queue, workload
from benchmarks.lock_tables import Bare, Rescan, Table
from benchmarks.workload import Work, critical_path, scaled
from concorde_trio._sansio.lock_table import LockTable
from concorde_trio.errors import UsageError
from concorde_trio.stores.sqlite import SqliteStore


@pytest.mark.parametrize(
    ("works", "seconds"),
    [
        ([Work(0, 2, ["a"]), Work(0, 3, ["b"])], 3),
        ([Work(0, 2, ["a"]), Work(0, 3, ["a"])], 5),
        ([Work(0, 2, ["a"]), Work(0, 3, ["b"]), Work(0, 1, ["a", "b"])], 4),
        # The third must not overtake the second, though it could run beside the first (LCK-2).
        ([Work(0, 2, ["a"]), Work(0, 2, ["a", "b"]), Work(0, 2, ["b"])], 6),
        ([Work(5, 1, ["a"])], 6),
    ],
)
def test_the_critical_path_is_what_the_rule_makes_wait(works: list[Work], seconds: float) -> None:
    """Benchmarks: a run starts as soon as no earlier one shares a lock, and not before."""
    assert critical_path(works) == seconds


def test_a_workload_is_the_same_for_the_same_seed_and_can_be_scaled() -> None:
    """Benchmarks: fixed seeds."""
    for make in (workload.users, workload.convoy, workload.strangers):
        works = make(random.Random(1), 50)
        assert works == make(random.Random(1), 50)
        assert critical_path(scaled(works, 2.0)) == pytest.approx(2.0)
    assert all(critical_path(works) > 0 for works in workload.recorded().values())


def test_a_recording_has_times_and_numbers_instead_of_names(tmp_path: Path) -> None:
    """Benchmarks: what is recorded of a queue can be given away."""
    store = SqliteStore(tmp_path / "queue.db", inline=True)
    trio.run(queue.seconds_to_settle, store, queue.Sleeping(), 6, queue.handlers(repeatable=True, locks=3))
    works = workload.record(store.path)
    assert [work.locks for work in works][:2] == [
        ("session-1", "resource-2", "resource-3"),
        ("session-4", "resource-5", "resource-6"),
    ]
    text = workload.to_text(works, "a test")
    assert "calendar" not in text
    assert [work.locks for work in workload.from_text(text)] == [work.locks for work in works]


def test_what_is_no_queue_cannot_be_recorded(tmp_path: Path) -> None:
    """Benchmarks: it says so, and makes no file."""
    with pytest.raises(UsageError, match="is no file"):
        workload.record(tmp_path / "nothing.db")
    sqlite3.connect(tmp_path / "other.db").close()
    with pytest.raises(UsageError, match="not the database of a queue"):
        workload.record(tmp_path / "other.db")


@pytest.mark.parametrize("seed", range(5))
def test_the_tables_it_is_compared_with_start_the_same_runs(seed: int) -> None:
    """Benchmarks: the dict operations and the rescan are slower or barer, and not wrong."""
    chance = random.Random(seed)
    tables: list[Table] = [LockTable[int, int](), Bare(), Rescan()]
    running: set[int] = set()
    for run in range(200):
        locks = chance.sample([f"resource-{number}" for number in range(6)], chance.randint(0, 3))
        session = f"session-{chance.randint(0, 9)}"
        started = [sorted(table.enqueue(run, run, session=session, resources=locks)) for table in tables]
        assert started[0] == started[1] == started[2]
        running.update(started[0])
        if chance.random() < 0.6:
            over = chance.choice(sorted(running))
            ended = [sorted(table.end(over)) for table in tables]
            assert ended[0] == ended[1] == ended[2]
            running.remove(over)
            running.update(ended[0])

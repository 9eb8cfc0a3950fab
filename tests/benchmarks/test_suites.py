"""The suites themselves: each is there, and what they prepare is what they say."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import trio

from benchmarks import machine, queue
from benchmarks.bench import Bench
from benchmarks.catalog import SUITES
from benchmarks.peers import ours
from benchmarks.reference import reference
from benchmarks.suites import recovery
from benchmarks.suites.lock_table import HOT, SPREAD, Load
from benchmarks.threads import spent
from concorde_trio._sansio.lock_table import LockTable
from concorde_trio.signals.worker import open_worker
from concorde_trio.stores.sqlite import SqliteStore


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_of_the_list_can_be_loaded(name: str) -> None:
    """Benchmarks: the list promises nothing that is not there."""
    assert callable(SUITES[name].load())


@pytest.mark.slow
def test_a_suite_is_measured_from_end_to_end() -> None:
    """Benchmarks: the command, a process of its own for the suite, and a result on standard output."""
    words = [sys.executable, "-m", "benchmarks", "session-lock", "--quick", "--json", "-"]
    done = subprocess.run(words, cwd=machine.ROOT, capture_output=True, text=True, timeout=120, check=True)
    found = json.loads(done.stdout)["suites"]["session-lock"]
    assert found["broke"] is None
    assert len(found["figures"]) == 4
    assert all(len(figure["values"]) == 7 for figure in found["figures"])


@pytest.mark.parametrize("sessions", [HOT, SPREAD])
def test_a_load_of_the_lock_table_has_as_many_waiting_as_it_says(sessions: int) -> None:
    """Benchmarks: before and after its pairs."""
    table = LockTable[int, int]()
    load = Load(table, 120, sessions, locks=3)
    assert (table.waiting, len(table)) == (120, 120 + sessions)
    load.pairs_a_second(70)
    assert (table.waiting, len(table)) == (120, 120 + sessions)


def test_the_reference_leaves_the_rows_that_a_worker_leaves(tmp_path: Path) -> None:
    """Benchmarks: as many signals and runs, done, with the same payloads, prompts and locks."""
    store = SqliteStore(tmp_path / "queue.db", inline=True)
    trio.run(queue.seconds_to_settle, store, queue.Sleeping(), 7, queue.handlers(repeatable=True, locks=3))
    with reference(tmp_path, locks=3) as rows:
        assert len(rows.seconds(7, 3)) == 3
        connection = rows._connection
        theirs = _rows(connection)
        ours_ = _rows(opened := sqlite3.connect(store.path))
        opened.close()
    assert len(theirs) == len(ours_) == 7
    assert {tuple(map(type, row)) for row in theirs} == {tuple(map(type, row)) for row in ours_}
    assert {row[:5] for row in theirs} == {row[:5] for row in ours_}
    assert all(json.loads(row[5])[0].startswith("calendar-") for row in theirs + ours_)
    assert {len(row[6]) for row in theirs + ours_} == {queue.PAYLOAD}


def _rows(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return connection.execute(
        "select s.kind, s.state, r.state, r.prompt, s.phase, r.resources, s.payload, r.started_at, r.ended_at "
        "from signals s join runs r on r.signal_id = s.id"
    ).fetchall()


def test_a_queue_to_be_recovered_is_recovered_whole(tmp_path: Path) -> None:
    """Benchmarks: every waiting run is in the lock table again, and the original is as it was (REC-3)."""
    store = SqliteStore(tmp_path / "queue.db", inline=True)
    recovery.write(store, 130)
    assert recovery.recover(Bench(folder=tmp_path), store) > 0
    assert recovery.read(store.path) > 0

    async def main() -> tuple[int, int]:
        async with open_worker(store, ours.Noting(0.0), queue.handlers(repeatable=True)) as worker:
            in_hand = worker.in_hand()
            assert in_hand is not None
            worker.stop("cancel")
            counts = await store.counts()
        return sum(counts["runs"].values()), counts["signals"]["processing"]

    assert trio.run(main) == (130, 130)


def test_processor_time_is_told_apart_by_thread() -> None:
    """Benchmarks: what Trio's thread spends, and what the store's do."""

    def burn() -> None:
        until = time.thread_time() + 0.05
        while time.thread_time() < until:
            pass

    if (before := spent()) is None:
        pytest.skip("this system does not count it by thread")
    burn()
    between = spent()
    thread = threading.Thread(target=burn)
    thread.start()
    thread.join()
    after = spent()
    assert between is not None and after is not None
    assert between.since(before).main > 0.04
    assert after.since(between).others > 0.04 > after.since(between).main

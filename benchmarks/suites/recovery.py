"""How long a worker takes from opening its queue to having its lock table again, by how many runs wait (REC-3, REC-5).

The queue is written as a killed worker leaves it: claimed signals, each with one run that has not started, 50 sessions. Beside it stands
reading those rows with sqlite3 and decoding their payloads, which no recovery can avoid.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import trio

from benchmarks import queue
from benchmarks.bench import Bench
from benchmarks.figures import Beside, Figure, Goal, Point
from concorde_trio.signals.worker import open_worker
from concorde_trio.stores.sqlite import SqliteStore

SIZES = (1_000, 10_000, 100_000)

_SIGNAL = """insert into signals (id, kind, payload, state, phase, emitted_at, claimed_at)
values (?, 'bench', ?, 'processing', 'running', ?, ?)"""
_RUN = """insert into runs (position, id, signal_id, signal_seq, "index", session, prompt, resources, queued_at)
values (?, ?, ?, ?, 0, ?, ?, '[]', ?)"""


def suite(bench: Bench) -> Iterator[Figure]:
    """Seconds by size."""
    for size in SIZES[:2] if bench.quick else SIZES:
        with bench.new_folder() as folder:
            store = SqliteStore(folder / "queue.db")
            write(store, size)
            contenders = {"ours": partial(recover, bench, store), "rows": partial(read, store.path)}
            found = bench.in_turns(f"{size:,} waiting", contenders, bench.times(5 if size > 10_000 else 9, 3))
        seconds = found["ours"]
        yield Figure(
            name=f"recovery of {size:,} waiting runs",
            unit="s",
            better="lower",
            sample=seconds,
            beside=(Beside(what="reading and decoding the same rows", sample=found["rows"], kind="limit"),),
            goal=Goal(says="under 5 s", sample=seconds, bound=5.0, at_least=False, absolute=True)
            if size == SIZES[-1]
            else None,
            point=Point(chart="recovery: seconds by runs waiting", line="recovery", x=size),
        )


def write(store: SqliteStore, count: int) -> None:
    """Make the queue, with so many waiting runs."""
    trio.run(_make, store)
    now = time.time()
    signals, runs = [], []
    for number in range(1, count + 1):
        signal_id = f"waiting-{number:010}"
        signals.append((signal_id, queue.payload_text(number), now, now))
        session = f"session-{number % queue.SESSIONS}"
        runs.append((number, f"{signal_id}-1", signal_id, number, session, queue.TEXT, now))
    connection = sqlite3.connect(store.path)
    try:
        with connection:
            connection.executemany(_SIGNAL, signals)
            connection.executemany(_RUN, runs)
            connection.execute("update concorde_meta set last_position = ?", (count,))
        connection.execute("pragma wal_checkpoint(truncate)")  # so that the file alone is the queue
    finally:
        connection.close()


def recover(bench: Bench, store: SqliteStore) -> float:
    """Seconds from opening a copy of this queue to a worker that has recovered: the original waits for the next round."""
    with bench.new_folder() as folder:
        copy = folder / "queue.db"
        shutil.copyfile(store.path, copy)
        return trio.run(_recover, SqliteStore(copy))


async def _recover(store: SqliteStore) -> float:
    begun = time.perf_counter()
    async with open_worker(store, queue.Sleeping(), queue.handlers(repeatable=True)) as worker:
        took = time.perf_counter() - begun
        worker.stop("park")
    return took


def read(database: Path) -> float:
    """Seconds to read and decode."""
    connection = sqlite3.connect(database)
    try:
        begun = time.perf_counter()
        signals = connection.execute("select * from signals where state = 'processing' order by seq").fetchall()
        runs = connection.execute("select * from runs where state = 'pending' order by position").fetchall()
        payloads = [json.loads(row[3]) for row in signals]
        assert len(payloads) == len(runs)
        return time.perf_counter() - begun
    finally:
        connection.close()


async def _make(store: SqliteStore) -> None:
    async with store.open():
        pass

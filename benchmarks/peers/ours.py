"""The same work done by this project, and by the limits it cannot pass: the same number of jobs over the same keys.

Ours is timed from a worker that has recovered to the last signal settled on the disk; a peer's from the begin of its first job to the
end of its last.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import trio

from benchmarks import queue
from benchmarks.reference import GROUP, reference
from concorde_trio.signals.store import SignalStore
from concorde_trio.stores.sqlite import SqliteStore


def on_sqlite(folder: Path, jobs: int, seconds: float, *, repeatable: bool = True) -> float:
    """Jobs a second."""
    store = SqliteStore(folder / "queue.db")
    return queue.signals_a_second(store, jobs, repeatable=repeatable, run=seconds)


def on_postgres(url: str, jobs: int, seconds: float) -> float:
    """Jobs a second, in an empty database."""
    from concorde_trio.stores.postgres.store import PostgresStore

    store: SignalStore = PostgresStore(url)
    return queue.signals_a_second(store, jobs, run=seconds)


def bare_trio(jobs: int, seconds: float) -> float:
    """Jobs a second: a nursery, a task a job, a fair lock a key, nothing stored."""
    runtime = queue.Sleeping(seconds)

    async def job(lock: trio.Lock, number: int) -> None:
        async with lock:
            await runtime.run(queue.payload(number))

    async def main() -> float:
        locks = [trio.Lock() for _ in range(queue.SESSIONS)]
        begun = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for number in range(jobs):
                nursery.start_soon(job, locks[number % queue.SESSIONS], number)
        return jobs / (time.perf_counter() - begun)

    return trio.run(main)


def rows(group: int) -> Callable[[Path, int], float]:
    """Jobs a second, if only the rows that ours leaves are written, ``group`` a commit."""

    def write(folder: Path, jobs: int) -> float:
        with reference(folder) as found:
            return jobs / sum(found.seconds(jobs, group))

    return write


group_commit, sequential_commits = rows(GROUP), rows(1)

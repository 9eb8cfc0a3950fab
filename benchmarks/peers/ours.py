"""The same work done by this project, and by the limits it cannot pass: the same number of jobs over the same keys.

Ours is timed from a worker that has recovered to the last signal settled on the disk; a peer's from the begin of its first job to the
end of its last.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import trio

from benchmarks import queue
from benchmarks.peers.adapter import Answer
from benchmarks.peers.scripts.order import out_of_order
from benchmarks.reference import GROUP, reference
from concorde_trio.records import Prompt, RunOutcome, RunPrompt, Signal
from concorde_trio.signals.handlers import SignalHandler
from concorde_trio.signals.store import SignalStore
from concorde_trio.stores.sqlite import SqliteStore


class Noting:
    """A Runtime whose runs take ``seconds`` and note when they began and ended, as the jobs of every peer do."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.ran: list[tuple[str, int, float, float]] = []
        self.outcome = RunOutcome.ok()

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        begun = time.perf_counter()
        if self.seconds:
            await trio.sleep(self.seconds)
        self.ran.append((prompt.session, int(prompt.text), begun, time.perf_counter()))
        return self.outcome


def _handle(signal: Signal) -> list[Prompt]:
    return [Prompt(text=str(signal.seq), session=signal.payload["session"])]


def on(store: SignalStore, jobs: int, seconds: float, *, repeatable: bool, fsync: str) -> Answer:
    """The work done on a store that has nothing to do yet."""
    runtime, handlers = Noting(seconds), {"bench": SignalHandler(handle=_handle, repeatable=repeatable)}
    took = trio.run(queue.seconds_to_settle, store, runtime, jobs, handlers)
    return Answer(
        jobs=len({number for _, number, _, _ in runtime.ran}),
        ran=len(runtime.ran),
        seconds=took,
        emit_seconds=0.0,
        out_of_order=out_of_order(runtime.ran),
        version=metadata.version("concorde-trio"),
        how=f"open_worker, a {'repeatable' if repeatable else 'strict'} handler, one prompt a signal, a lock a key",
        fsync=fsync,
    )


def on_sqlite(folder: Path, jobs: int, seconds: float, *, repeatable: bool = True) -> Answer:
    """On SQLite, as it comes."""
    store = SqliteStore(folder / "queue.db")
    return on(store, jobs, seconds, repeatable=repeatable, fsync="WAL, synchronous FULL")


def on_postgres(url: str, jobs: int, seconds: float) -> Answer:
    """In an empty database of PostgreSQL."""
    from concorde_trio.stores.postgres.store import PostgresStore

    fsync = "PostgreSQL: fsync and synchronous_commit on"
    return on(PostgresStore(url), jobs, seconds, repeatable=True, fsync=fsync)


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

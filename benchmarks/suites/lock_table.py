"""The lock table's speed: pairs of an enqueue and an end while others wait, by how many wait and by locks a run.

Pure computing in one thread, so it is the processor's time that is counted, and others on the machine are not.
The run that ends is the one whose turn it is, so each end lets the next run start. Beside the table stand the dict operations
that it cannot avoid, and rescanning what waits from the head (for as many as one has the patience for).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator

from benchmarks import queue
from benchmarks.bench import Bench
from benchmarks.figures import Beside, Figure, Goal, Point
from benchmarks.lock_tables import Bare, Rescan, Table
from benchmarks.samples import Sample
from concorde_trio._sansio.lock_table import LockTable

SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
FEW = 100
RESCANNED = 10_000
"""The most that are rescanned."""
PAIRS = 5_000
"""Pairs in one round."""
HOT, SPREAD = 1, 50
"""Sessions that the waiting runs fall on."""

SESSIONS = {sessions: [f"session-{number}" for number in range(sessions)] for sessions in (HOT, SPREAD)}
TABLES: dict[str, Callable[[], Table]] = {"table": LockTable[int, int], "bare": Bare}


class Load:
    """A table in which ``waiting`` runs wait for as many sessions; in every one of them a run has started."""

    def __init__(self, table: Table, waiting: int, sessions: int, locks: int = 1) -> None:
        self.table = table
        self.names = [(name, queue.resources(name, locks)) for name in SESSIONS[sessions]]
        self.next_run = self.next_end = 0
        for _ in range(waiting + sessions):
            self._enqueue()

    def _enqueue(self) -> None:
        session, resources = self.names[self.next_run % len(self.names)]
        self.table.enqueue(self.next_run, self.next_run, session=session, resources=resources)
        self.next_run += 1

    def pairs_a_second(self, pairs: int = PAIRS) -> float:
        """One run joins and one ends, so many times."""
        table, names, run, ending = self.table, self.names, self.next_run, self.next_end
        width = len(names)
        begun = time.thread_time()
        for _ in range(pairs):
            session, resources = names[run % width]
            table.enqueue(run, run, session=session, resources=resources)
            table.end(ending)
            run += 1
            ending += 1
        seconds = time.thread_time() - begun
        self.next_run, self.next_end = run, ending
        return pairs / seconds


def suite(bench: Bench) -> Iterator[Figure]:
    """The lock table's figures and goals (LCK-6)."""
    yield from _by_waiting(bench)
    yield from _by_locks(bench)


def _by_waiting(bench: Bench) -> Iterator[Figure]:
    sizes = [size for size in SIZES if not bench.quick or size <= 100_000]
    loads: dict[str, Callable[[], float]] = {}
    for sessions in (HOT, SPREAD):
        for size in sizes:
            for name, table in TABLES.items():
                loads[f"{name} {sessions} {size}"] = Load(table(), size, sessions).pairs_a_second
            if size <= RESCANNED:
                loads[f"rescan {sessions} {size}"] = _rescanning(size, sessions)
    # As the command `serve` does: what stays for long is not looked through for garbage again and again.
    gc.collect()
    gc.freeze()
    found = bench.in_turns("by number waiting", loads, bench.times(11, 5))
    gc.unfreeze()
    for sessions, where in ((HOT, "one hot lock"), (SPREAD, "50 sessions")):
        most = sizes[-1]
        goals = _goals(found[f"table {sessions} {FEW}"], found[f"table {sessions} {most}"], most, sessions)
        for size in sizes:
            yield Figure(
                name=f"{size:,} waiting on {where}",
                unit="pairs/s",
                sample=found[f"table {sessions} {size}"],
                beside=tuple(_beside(found, sessions, size)),
                goal=goals.get(size),
                point=Point(chart="lock table: pairs a second by runs waiting", line=where, x=size),
            )


def _rescanning(size: int, sessions: int) -> Callable[[], float]:
    table = Rescan()
    table.filling = True
    load = Load(table, size, sessions)
    table.filled()
    return lambda: load.pairs_a_second(max(5, 100_000 // size))


def _beside(found: dict[str, Sample], sessions: int, size: int) -> Iterator[Beside]:
    yield Beside(what="dict operations", sample=found[f"bare {sessions} {size}"], kind="limit")
    if size <= RESCANNED:
        yield Beside(what="rescan from the head", sample=found[f"rescan {sessions} {size}"], kind="peer")


def _goals(few: Sample, many: Sample, most: int, sessions: int) -> dict[int, Goal]:
    """By number waiting: with few the rate, if the lock is hot; with the most, how much slower that is than few."""
    bound = 1.3 if sessions == HOT else 2.0
    says = f"at most {bound} times as long a pair as with {FEW} waiting"
    goals = {most: Goal(says=says, sample=few.over(many), bound=bound, at_least=False)}
    if sessions == HOT:
        goals[FEW] = Goal(says="400,000 pairs a second", sample=few, bound=400_000, absolute=True)
    return goals


def _by_locks(bench: Bench) -> Iterator[Figure]:
    loads = {
        f"{name} {locks}": Load(table(), 1_000, SPREAD, locks).pairs_a_second
        for name, table in TABLES.items()
        for locks in range(1, 9)
    }
    found = bench.in_turns("by locks a run", loads, bench.times(11, 5))
    for locks in range(1, 9):
        yield Figure(
            name=f"{locks} lock{'s' if locks > 1 else ''} a run, 1,000 waiting on 50 sessions",
            unit="pairs/s",
            sample=found[f"table {locks}"],
            beside=(Beside(what="dict operations", sample=found[f"bare {locks}"], kind="limit"),),
            point=Point(chart="lock table: pairs a second by locks a run", line="lock table", x=locks),
        )

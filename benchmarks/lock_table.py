"""The lock table's speed.

Pairs of enqueue and end with one lock a run, and what one end costs with many and with few runs waiting. Beside each
stands the least that the same bookkeeping could cost: a dict of deques, which keeps no order between locks, holds
nothing for a post and can neither withdraw nor explain. Both are measured in turns, in one run; a figure is the
median of its rounds.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from typing import Protocol

from benchmarks.figures import Figure, Goal
from benchmarks.figures import rounds as each_round
from concorde_trio._sansio.lock_table import LockTable

SESSIONS = [f"session-{number}" for number in range(50)]
ROUNDS = 31
PAIRS = 5_000
"""Pairs in one round."""
ENDS = 500
"""Ends in one round: as few, that 1,000 waiting runs hardly become fewer."""
MANY, FEW = 100_000, 1_000


class Table(Protocol):
    """What is measured."""

    def enqueue(self, run: int, signal: int, *, session: str) -> tuple[int, ...]: ...

    def end(self, run: int) -> tuple[int, ...]: ...


class Bare:
    """The reference: for each session a deque of runs, and for each run its session."""

    def __init__(self) -> None:
        self.session: dict[int, str] = {}
        self.queues: dict[str, deque[int]] = {}

    def enqueue(self, run: int, signal: int, *, session: str) -> tuple[int, ...]:
        self.session[run] = session
        queue = self.queues.get(session)
        if queue is None:
            self.queues[session] = deque((run,))
            return (run,)
        queue.append(run)
        return ()

    def end(self, run: int) -> tuple[int, ...]:
        session = self.session.pop(run)
        queue = self.queues[session]
        queue.popleft()
        if queue:
            return (queue[0],)
        del self.queues[session]
        return ()


class Load:
    """A table in which a number of runs wait in 50 sessions; it can be made to end some and take as many anew."""

    def __init__(self, table: Table, waiting: int) -> None:
        self.table = table
        self.next_run = 0
        self.next_end = 0
        self.enqueue(waiting + len(SESSIONS))

    def enqueue(self, runs: int) -> None:
        table = self.table
        for run in range(self.next_run, self.next_run + runs):
            table.enqueue(run, run, session=SESSIONS[run % len(SESSIONS)])
        self.next_run += runs

    def end(self, runs: int) -> None:
        end = self.table.end
        for run in range(self.next_end, self.next_end + runs):
            end(run)
        self.next_end += runs

    def seconds_an_end(self) -> float:
        begun = time.perf_counter()
        self.end(ENDS)
        seconds = time.perf_counter() - begun
        self.enqueue(ENDS)
        return seconds / ENDS


def pairs_a_second(table: Table, first: int) -> float:
    """One run after the other, each with a session of its own that nobody else wants."""
    names = [f"run_{number}" for number in range(first, first + PAIRS)]
    begun = time.perf_counter()
    for run, name in enumerate(names, first):
        table.enqueue(run, run, session=name)
        table.end(run)
    return PAIRS / (time.perf_counter() - begun)


def queued_pairs_a_second(load: Load) -> float:
    """A run joins and a run ends, with others waiting."""
    begun = time.perf_counter()
    for _ in range(PAIRS):
        load.enqueue(1)
        load.end(1)
    return PAIRS / (time.perf_counter() - begun)


def measure(count: int) -> dict[str, float]:
    """All figures, by name."""
    alone: tuple[Table, Table] = (LockTable[int, int](), Bare())
    queued = (Load(LockTable[int, int](), FEW), Load(Bare(), FEW))
    loads = {
        (name, size): Load(table(), size)
        for name, table in (("table", LockTable[int, int]), ("bare", Bare))
        for size in (MANY, FEW)
    }
    rounds: dict[str, list[float]] = {}

    def note(name: str, figure: float) -> None:
        rounds.setdefault(name, []).append(figure)

    for number in each_round(count, "lock table"):
        for name, table, load in zip(("table", "bare"), alone, queued, strict=True):
            note(f"{name}_pairs_a_second", pairs_a_second(table, number * PAIRS))
            note(f"{name}_queued_pairs_a_second", queued_pairs_a_second(load))
        for (name, size), load in loads.items():
            note(f"{name}_end_us_with_{size}_waiting", load.seconds_an_end() * 1e6)
    figures = {name: statistics.median(values) for name, values in rounds.items()}
    for name in ("table", "bare"):
        figures[f"{name}_end_ratio"] = (
            figures[f"{name}_end_us_with_{MANY}_waiting"] / figures[f"{name}_end_us_with_{FEW}_waiting"]
        )
    return figures


def suite(quick: bool) -> list[Figure]:
    """The lock table's figures and goals (LCK-6)."""
    figures = measure(7 if quick else ROUNDS)

    def figure(name: str, title: str, unit: str, goal: Goal | None = None) -> Figure:
        beside = (("a dict of deques", figures["bare_" + name]),)
        return Figure(name=title, unit=unit, value=figures["table_" + name], beside=beside, goal=goal)

    pairs, ratio = figures["table_pairs_a_second"], figures["table_end_ratio"]
    enough = Goal(says="at least 200,000 pairs a second", value=pairs, bound=200_000, at_least=True)
    flat = Goal(says="at most twice as much with many waiting", value=ratio, bound=2, at_least=False)
    return [
        figure("pairs_a_second", "enqueue-and-end pairs a second, one lock a run", "/s", enough),
        figure("queued_pairs_a_second", f"the same with {FEW:,} waiting in 50 sessions", "/s"),
        figure(f"end_us_with_{FEW}_waiting", f"one end with {FEW:,} waiting in 50 sessions", "us"),
        figure(f"end_us_with_{MANY}_waiting", f"one end with {MANY:,} waiting", "us"),
        figure("end_ratio", "ratio of these two", "", flat),
    ]

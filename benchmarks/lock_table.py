"""The lock table's speed: ``python -m benchmarks.lock_table [--json]``.

Pairs of enqueue and end with one lock a run, and what one end costs with many and with few runs waiting. Beside each
stands the least that the same bookkeeping could cost: a dict of deques, which keeps no order between locks, holds
nothing for a post and can neither withdraw nor explain. Both are measured in turns, in one run; a figure is the
median of its rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import deque
from typing import Protocol

from benchmarks import machine
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


def measure() -> dict[str, float]:
    """All figures, by name."""
    shown = time.monotonic()
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

    for number in range(ROUNDS):
        if time.monotonic() - shown > 1:
            shown = time.monotonic()
            print(f"round {number + 1} of {ROUNDS}", file=sys.stderr, flush=True)
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


def main() -> None:
    """Measure and print: a table for people, or one JSON object with ``--json``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lock_table", description="The lock table's speed.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json
    figures = measure()
    if as_json:
        print(json.dumps({"benchmark": "lock_table", "machine": machine.describe(), "figures": figures}))
        return
    print(machine.sentence())
    print(f"{'median of ' + str(ROUNDS) + ' rounds':52}{'lock table':>12}{'dict, deque':>12}")
    for title, name, form in (
        ("enqueue-and-end pairs a second, fresh sessions", "pairs_a_second", ",.0f"),
        (f"the same with {FEW:,} waiting in 50 sessions", "queued_pairs_a_second", ",.0f"),
        (f"one end with {FEW:,} waiting in 50 sessions, µs", f"end_us_with_{FEW}_waiting", ".2f"),
        (f"one end with {MANY:,} waiting, µs", f"end_us_with_{MANY}_waiting", ".2f"),
        ("ratio of these two", "end_ratio", ".2f"),
    ):
        print(f"{title:52}{figures['table_' + name]:>12{form}}{figures['bare_' + name]:>12{form}}")


if __name__ == "__main__":
    main()

"""Every arrangement of a few runs over three locks, driven through every order of what can happen to them.

What must hold is said in bit masks, apart from any table: run i may start when no earlier unreleased run that shares
a lock with it is left, but for held ones of its own signal (LCK-2, LCK-4).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import attrs
import pytest

from concorde_trio._sansio.lock_table import LockTable

Table = LockTable[int, int]
Move = tuple[str, int]
State = tuple[int, int, int]

SUBSETS = (1, 2, 3, 4, 5, 6, 7)
"""The non-empty subsets of the locks 1 (a session), 2 and 4 (resources), as bit masks."""
RESOURCES = ((), ("b",), ("c",), ("b", "c"))


@attrs.frozen
class Arrangement:
    """Which locks each run has, which signal it is of, and which signals hold."""

    locks: tuple[int, ...]
    signals: tuple[int, ...]
    holds: tuple[bool, ...]

    def table(self) -> Table:
        table = Table()
        for run in range(len(self.locks)):
            self.enqueue(table, run)
        return table

    def enqueue(self, table: Table, run: int) -> tuple[int, ...]:
        locks = self.locks[run]
        return table.enqueue(
            run,
            self.signals[run],
            session="a" if locks & 1 else f"run_{run}",
            resources=RESOURCES[locks >> 1],
        )

    def apply(self, table: Table, move: Move) -> tuple[int, ...]:
        what, which = move
        if what == "end":
            return table.end(which, hold=self.holds[self.signals[which]])
        return table.release(which) if what == "release" else table.withdraw(which)


class Rules:
    """What may happen in an arrangement, and what it leads to.

    A state is three bit masks: which runs are unreleased, held, and permitted (may start, or have started).
    """

    def __init__(self, arrangement: Arrangement, *, withdraw: bool, early_release: bool) -> None:
        self.runs = range(len(arrangement.locks))
        self.signals = arrangement.signals
        self.holds = arrangement.holds
        self.withdraw = withdraw
        self.early_release = early_release
        locks = arrangement.locks
        self.earlier = [sum(1 << other for other in range(run) if locks[other] & locks[run]) for run in self.runs]
        self.of_signal = [
            sum(1 << run for run in self.runs if self.signals[run] == signal) for signal in range(len(self.holds))
        ]
        self.known: dict[State, list[tuple[Move, State, tuple[int, ...]]]] = {}

    def steps(self, state: State) -> list[tuple[Move, State, tuple[int, ...]]]:
        """Each possible move, the state it leads to, and the runs that may start because of it, in order."""
        if state not in self.known:
            self.known[state] = [(move, *self.after(state, move)) for move in self.moves(state)]
        return self.known[state]

    def moves(self, state: State) -> Iterator[Move]:
        left, held, permitted = state
        for run in self.runs:
            if left >> run & 1 and not held >> run & 1:
                if permitted >> run & 1:
                    yield "end", run
                if self.withdraw:
                    yield "withdraw", run
        for signal, runs in enumerate(self.of_signal):
            if held & runs and (self.early_release or not runs & left & ~held):
                yield "release", signal

    def after(self, state: State, move: Move) -> tuple[State, tuple[int, ...]]:
        what, which = move
        left, held, permitted = state
        if what == "release":
            left &= ~(held & self.of_signal[which])
        elif what == "end" and self.holds[self.signals[which]]:
            held |= 1 << which
        else:
            left &= ~(1 << which)
        return self.permit((left, held & left, permitted & left))

    def permit(self, state: State) -> tuple[State, tuple[int, ...]]:
        left, held, permitted = state
        freed = tuple(
            run
            for run in self.runs
            if (left & ~permitted) >> run & 1
            and not self.earlier[run] & left & ~(held & self.of_signal[self.signals[run]])
        )
        return (left, held, permitted | sum(1 << run for run in freed)), freed


def drive(arrangement: Arrangement, *, withdraw: bool = False, early_release: bool = False) -> int:
    """Play every order of moves on a real table; how many orders there were."""
    rules = Rules(arrangement, withdraw=withdraw, early_release=early_release)
    table, start = Table(), (0, 0, 0)
    for run in rules.runs:
        start, freed = rules.permit((start[0] | 1 << run, 0, start[2]))
        assert arrangement.enqueue(table, run) == freed, arrangement
    orders = 0

    def explore(table: Table | None, state: State, path: tuple[Move, ...]) -> None:
        nonlocal orders
        steps = rules.steps(state)
        if not steps:
            orders += 1
            # LCK-2: no deadlock and no starvation.
            assert not state[0], (arrangement, path)
            assert table is not None
            assert len(table) == table.waiting == len(list(table.locks())) == 0
        for move, following, freed in steps:
            if table is None:
                table = arrangement.table()
                for done in path:
                    arrangement.apply(table, done)
            assert arrangement.apply(table, move) == freed, (arrangement, path, move)
            explore(table, following, (*path, move))
            table = None  # it has moved on; the next order begins anew

    explore(table, start, ())
    return orders


def canonical(locks: tuple[int, ...]) -> bool:
    """Whether this is the one to be played of those that differ only in which lock is which."""
    renamings = itertools.permutations((1, 2, 4))
    return locks == min(
        tuple(sum(new for bit, new in zip((1, 2, 4), renaming, strict=True) if one & bit) for one in locks)
        for renaming in renamings
    )


def signals_in_a_row(runs: int, most: int) -> Iterator[tuple[int, ...]]:
    """Runs of at most ``most`` signals, each signal's next to each other: as a worker enqueues them."""
    for breaks in itertools.product((0, 1), repeat=runs - 1):
        signals = tuple(itertools.accumulate((0, *breaks)))
        if signals[-1] < most:
            yield signals


def signals_in_any_order(runs: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every partition of the runs into at most ``most`` signals."""
    for signals in itertools.product(range(most), repeat=runs):
        if all(signal <= max(signals[:at], default=-1) + 1 for at, signal in enumerate(signals)):
            yield signals


def arrangements(runs: int, signals: Iterator[tuple[int, ...]], *, symmetric: bool = False) -> Iterator[Arrangement]:
    sets = [locks for locks in itertools.product(SUBSETS, repeat=runs) if symmetric or canonical(locks)]
    for of in signals:
        for holds in itertools.product((False, True), repeat=max(of) + 1):
            for locks in sets:
                yield Arrangement(locks, of, holds)


@pytest.mark.slow
def test_four_runs_over_three_locks_in_up_to_three_signals() -> None:
    """LCK-2, LCK-4: every arrangement (up to renaming the locks), every order of ends and releases."""
    played = sum(1 for arrangement in arrangements(4, signals_in_a_row(4, 3)) if drive(arrangement))
    assert played == 441 * (1 * 2 + 3 * 4 + 3 * 8)


@pytest.mark.slow
def test_three_runs_that_may_also_be_withdrawn_or_released_early() -> None:
    """LCK-2, RUN-6: signals in any order, a withdrawal or an early release at any moment."""
    played = sum(
        1
        for arrangement in arrangements(3, signals_in_any_order(3, 3))
        if drive(arrangement, withdraw=True, early_release=True)
    )
    assert played == 71 * (1 * 2 + 3 * 4 + 1 * 8)


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("HYPOTHESIS_PROFILE") != "soak", reason="two minutes for what symmetry says: make soak"
)
def test_four_runs_without_leaving_out_symmetric_cases() -> None:
    """LCK-2, LCK-4: sessions and resources play every part, signals come in any order, releases at any moment."""
    played = sum(
        1
        for arrangement in arrangements(4, signals_in_any_order(4, 3), symmetric=True)
        if drive(arrangement, early_release=True)
    )
    assert played == 7**4 * (1 * 2 + 7 * 4 + 6 * 8)

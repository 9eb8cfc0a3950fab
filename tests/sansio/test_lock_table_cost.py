"""What an operation of the lock table costs does not depend on how many runs wait: counted in steps, not in time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from concorde_trio._sansio import lock_table
from concorde_trio._sansio.lock_table import LockTable

pytestmark = pytest.mark.slow


def _steps(call: Callable[[], object]) -> int:
    """How many lines and calls of the lock table ``call`` executes. Others' do not count: a collector may come by."""
    steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        if frame.f_code.co_filename != lock_table.__file__:
            return None
        steps += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return steps


def _waiting(count: int) -> LockTable[int, int]:
    table: LockTable[int, int] = LockTable()
    for number in range(count):
        table.enqueue(number, number, session=f"s{number % 50}", resources=["w"] if number % 10 == 0 else [])
    return table


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(lambda table: table.end(0), id="end"),
        pytest.param(lambda table: table.end(0, hold=True), id="hold"),
        pytest.param(lambda table: table.withdraw(120), id="withdraw"),
        pytest.param(lambda table: table.enqueue(-1, -1, session="s1", resources=["w", "new"]), id="enqueue"),
        pytest.param(lambda table: table.why(50), id="why"),
        pytest.param(lambda table: table.waiting, id="waiting"),
        pytest.param(lambda table: [view.more for view in table.locks(shown=3)], id="locks"),
    ],
)
def test_an_operation_takes_as_many_steps_with_2_000_waiting_as_with_20_000(operation: Callable[[Any], object]) -> None:
    """LCK-6, Q-25: cost grows with the run's own locks, never with what waits."""
    few, many = _waiting(2_000), _waiting(20_000)
    assert _steps(lambda: operation(few)) == _steps(lambda: operation(many))


def test_a_release_takes_as_many_steps_with_2_000_waiting_as_with_20_000() -> None:
    """LCK-6, Q-25: the same for what a post phase lets go."""
    tables = [_waiting(2_000), _waiting(20_000)]
    for table in tables:
        table.end(0, hold=True)
    assert _steps(lambda: tables[0].release(0)) == _steps(lambda: tables[1].release(0))


def test_why_a_page_of_runs_waits_takes_hardly_more_steps_than_why_one_does() -> None:
    """LCK-6, LCK-7: the chain and the lines are walked once for all of them, so that a page stops nobody for long."""
    table = _waiting(5_000)
    last = list(table)[-1::-50][:50]  # all of one session
    assert _steps(lambda: table.why_all(last)) < 5 * _steps(lambda: table.why(last[-1])) + 50 * 100

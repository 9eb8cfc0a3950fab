"""Ticks: whole numbers for the times of a scenario."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from concorde_trio.simulate.ticks import Ticks

TIMES = st.lists(st.integers(0, 10**9).map(lambda micro: micro / 10**6), max_size=8)


@given(TIMES)
def test_decimal_times_and_their_sums_are_whole(times: list[float]) -> None:
    """LCK-5: what is one instant on paper is one number."""
    ticks = Ticks.for_times(times)
    assert all(ticks.of(time).is_integer() for time in times)
    exact = sum((Fraction(repr(time)) for time in times), Fraction(0))
    assert ticks.seconds(sum(ticks.of(time) for time in times)) == float(exact)


def test_there_are_no_more_ticks_than_needed() -> None:
    """So that long plays fit too."""
    assert Ticks.for_times([]).per_second == 1
    assert Ticks.for_times([1, 2.5, 0.25]).per_second == 4
    assert Ticks.for_times([0.1, 0.25]).per_second == 20


def test_where_there_is_no_such_number_time_is_as_floats_have_it() -> None:
    """Too fine, too long, or a limit that the worker would not take."""
    assert Ticks.for_times([1 / 3]) == Ticks(1)
    assert Ticks.for_times([1e9] * 5_000 + [0.000001]) == Ticks(1)
    assert Ticks.for_times([0.001], limits=[1e6]) == Ticks(1)
    assert Ticks(1).of(1 / 3) == 1 / 3 == Ticks(1).seconds(1 / 3)

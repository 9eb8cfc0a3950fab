"""What is made of the rounds: medians, spread, ratios round by round, and who begins a round."""

from __future__ import annotations

import gc
import itertools
from collections import Counter

import pytest

from benchmarks.bench import Bench, turn
from benchmarks.samples import Sample, in_chunks, percentile
from concorde_trio.errors import UsageError


def test_a_value_is_the_median_and_its_spread_the_whole_range() -> None:
    """Benchmarks: no round is thrown away."""
    sample = Sample([3.0, 1.0, 100.0, 2.0])
    assert (sample.median, sample.low, sample.high) == (2.5, 1.0, 100.0)
    assert sample.spread == 99.0 / 2.5


def test_a_ratio_is_taken_round_by_round() -> None:
    """Benchmarks: what slows a whole round down drops out."""
    ours, theirs = Sample([100.0, 50.0, 20.0]), Sample([200.0, 100.0, 40.0])
    assert ours.over(theirs) == Sample([0.5, 0.5, 0.5])
    assert theirs.minus(ours) == Sample([100.0, 50.0, 20.0])
    with pytest.raises(ValueError, match="zip"):
        ours.over(Sample([1.0]))


@pytest.mark.parametrize("values", [[], [float("nan")], [1.0, float("inf")]])
def test_a_sample_of_nothing_or_of_no_numbers_is_refused(values: list[float]) -> None:
    """Benchmarks: a figure is a number."""
    with pytest.raises(UsageError, match="one finite number a round"):
        Sample(values)


def test_a_percentile_is_a_value_that_was_measured() -> None:
    """Benchmarks: nothing is interpolated."""
    values = [float(value) for value in range(1, 101)]
    assert [percentile(values, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1.0, 50.0, 99.0, 100.0]
    assert percentile([7.0], 0.99) == 7.0
    assert in_chunks(values[:7], 3) == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def test_every_contender_begins_a_round_as_often_as_any_other() -> None:
    """Benchmarks: no drift of the machine counts for one of them."""
    names = ["a", "b", "c"]
    orders = [turn(names, number) for number in range(12)]
    assert all(sorted(order) == names for order in orders)
    assert Counter(order[0] for order in orders) == {"a": 4, "b": 4, "c": 4}
    assert Counter(order[-1] for order in orders) == {"a": 4, "b": 4, "c": 4}


def test_rounds_take_turns_and_the_first_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks: A, B, then B, A, and so on; the warm-up is measured and forgotten."""
    monkeypatch.setattr(gc, "collect", lambda: 0)  # of this process's garbage it would take seconds
    calls: list[str] = []
    ticks = itertools.count()

    def contender(name: str) -> float:
        calls.append(name)
        return float(next(ticks))

    told: list[tuple[str, int, int]] = []
    bench = Bench(step=lambda *step: told.append(step))
    found = bench.in_turns("fake", {"a": lambda: contender("a"), "b": lambda: contender("b")}, 3)
    assert "".join(calls) == "abbabaab"
    assert found == {"a": Sample([3.0, 5.0, 6.0]), "b": Sample([2.0, 4.0, 7.0])}
    assert told == [("fake", 0, 4), ("fake", 1, 4), ("fake", 2, 4), ("fake", 3, 4), ("fake", 4, 4)]


def test_random_numbers_are_the_same_in_every_round_and_run() -> None:
    """Benchmarks: fixed seeds."""
    bench = Bench(seed=7)
    assert bench.random().random() == bench.random().random() == Bench(seed=7).random().random()
    assert bench.random().random() != Bench(seed=8).random().random()

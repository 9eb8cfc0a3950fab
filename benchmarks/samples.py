"""What the rounds of a measurement gave: their median, and how far they lie apart.

The law: nothing is thrown away. A value is the median of all rounds but the warm-up, and its spread is their lowest and
highest; two samples differ only where these ranges do not overlap.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence

import attrs

from concorde_trio.errors import UsageError


def _numbers(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(values)


@attrs.frozen
class Sample:
    """One value a round, in the order of the rounds; at least one."""

    values: tuple[float, ...] = attrs.field(converter=_numbers)

    @values.validator
    def _check(self, attribute: attrs.Attribute[tuple[float, ...]], values: tuple[float, ...]) -> None:
        if not values or not all(math.isfinite(value) for value in values):
            raise UsageError(f"a sample is one finite number a round, at least one, not {list(values)!r:.80}")

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    @property
    def spread(self) -> float:
        """From the lowest to the highest, as a share of the median; 0 where that is 0."""
        return (self.high - self.low) / abs(self.median) if self.median else 0.0

    def with_each(self, other: Sample, combine: Callable[[float, float], float]) -> Sample:
        """``combine(mine, theirs)`` of each round; both must have as many."""
        return Sample(combine(mine, theirs) for mine, theirs in zip(self.values, other.values, strict=True))

    def over(self, other: Sample) -> Sample:
        """How many times the other, round by round: what slows a whole round down is in both and drops out."""
        return self.with_each(other, lambda mine, theirs: mine / theirs)

    def minus(self, other: Sample) -> Sample:
        """How much more than the other, round by round."""
        return self.with_each(other, lambda mine, theirs: mine - theirs)

    def each(self, change: Callable[[float], float]) -> Sample:
        """Every value changed, as into another unit."""
        return Sample(change(value) for value in self.values)

    def overlaps(self, other: Sample) -> bool:
        """Whether the two ranges have a value in common."""
        return self.low <= other.high and other.low <= self.high


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` (0 to 1) of all do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def in_chunks(values: Iterable[float], size: int) -> list[list[float]]:
    """The values ``size`` by ``size``; what does not fill a last chunk is left out."""
    listed = list(values)
    return [listed[start : start + size] for start in range(0, len(listed) - size + 1, size)]

"""Virtual time in whole ticks, so that what a scenario calls one instant is one instant.

The law of this module: seconds are decimal numbers, and ticks are whole. As binary floats 0.1 + 0.2 is later than
0.3, and two things meant to be simultaneous would not be; so the virtual clock counts ticks, of which a float holds
every whole number up to 2**53 exactly, and times become seconds again only in the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import lcm

import attrs

_FINEST = 10**6
_LARGEST = 2**52
_LONGEST_LIMIT = 10**8
"""Ticks. The worker takes any limit below 10**9."""


@attrs.frozen
class Ticks:
    """How many ticks a second has."""

    per_second: int

    @classmethod
    def for_times(cls, times: Iterable[float], *, limits: Iterable[float] = ()) -> Ticks:
        """The fewest ticks a second with which all these times, in seconds, and their sums are whole.

        One tick a second, and so the arithmetic of floats, where there is no such number: times finer than a
        microsecond, or so long beside that that floats, or the worker's own ``limits``, cannot hold them.
        """
        limits = tuple(limits)
        exact = [Fraction(repr(time)) for time in (*times, *limits)]
        per_second = 1
        for time in exact:
            per_second = lcm(per_second, time.denominator)
            if per_second > _FINEST:
                return cls(1)
        fits = sum(exact) * per_second < _LARGEST and max(limits, default=0) * per_second < _LONGEST_LIMIT
        return cls(per_second) if fits else cls(1)

    def of(self, seconds: float) -> float:
        """``seconds`` in ticks."""
        return float(Fraction(repr(seconds)) * self.per_second)

    def seconds(self, ticks: float) -> float:
        """``ticks`` in seconds: the float that a person would write for them."""
        return float(Fraction(ticks) / self.per_second)

"""What a benchmark found: a figure, what stands beside it, and the goal it is held to.

The law: a figure is the median of rounds, and its reference was measured in the same rounds, in turns with it, on the
same disk. No figure stands without one.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import attrs


@attrs.frozen(kw_only=True)
class Goal:
    """What a figure is held to. ``bound`` is in the unit of ``value``; ``says`` is the goal in words."""

    says: str
    value: float
    bound: float
    at_least: bool

    @property
    def met(self) -> bool:
        return self.value >= self.bound if self.at_least else self.value <= self.bound


@attrs.frozen(kw_only=True)
class Figure:
    """One measured figure. ``beside``: (what, value) of its references, in the same unit."""

    name: str
    unit: str
    value: float
    beside: tuple[tuple[str, float], ...] = ()
    goal: Goal | None = None

    def as_json(self) -> dict[str, object]:
        """For ``--json``."""
        found: dict[str, object] = {"name": self.name, "unit": self.unit, "value": self.value}
        found["beside"] = dict(self.beside)
        if self.goal is not None:
            found["goal"] = attrs.asdict(self.goal) | {"met": self.goal.met}
        return found


def rounds(count: int, suite: str) -> Iterator[int]:
    """0 to count - 1, telling on stderr how far it is, at most once a second."""
    told = time.monotonic()
    for number in range(count):
        if time.monotonic() - told > 1:
            told = time.monotonic()
            print(f"{suite}: round {number + 1} of {count}", file=sys.stderr, flush=True)
        yield number


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` (0 to 1) of all do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def lines(figures: Sequence[Figure]) -> Iterator[str]:
    """The figures for people, a line each, with what stands beside them below."""
    for figure in figures:
        yield f"{figure.name:60}{_number(figure.value):>12} {figure.unit}"
        for what, value in figure.beside:
            yield f"    beside it: {what:45}{_number(value):>12} {figure.unit}"
        if (goal := figure.goal) is not None:
            verdict = "met" if goal.met else "NOT MET"
            yield f"    goal: {goal.says}: {_number(goal.value)} of {_number(goal.bound)}: {verdict}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.3g}"


Suite = Callable[[bool], list[Figure]]
"""``suite(quick)``: measures, and tells of its progress on stderr."""

"""What a benchmark found: a figure, what stands beside it, and the goal it is held to.

The law: a figure is the median of rounds, and what stands beside it was measured in the same rounds, in turns with it, on the
same disk. No figure stands alone. A goal that holds a figure to something beside it decides; one that is a bare number of
this project's own (``absolute``) is told, and decides nothing, for it says as much of the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from benchmarks.samples import Sample


@attrs.frozen(kw_only=True)
class Goal:
    """What a figure is held to: the median of ``sample`` against ``bound``. ``says`` is the goal in words."""

    says: str
    sample: Sample
    bound: float
    at_least: bool = True
    absolute: bool = False

    @property
    def met(self) -> bool:
        value = self.sample.median
        return value >= self.bound if self.at_least else value <= self.bound


@attrs.frozen(kw_only=True)
class Beside:
    """What a figure is compared with, in its unit.

    ``kind``: a ``limit`` is the least that the same must cost, a ``peer`` what people would use instead, ``reference`` any
    other.
    """

    what: str
    sample: Sample
    kind: Literal["limit", "peer", "reference"] = "reference"


@attrs.frozen(kw_only=True)
class Point:
    """Where a figure stands in a chart: a line of numbers by size, or a bar of a name (``x`` is text then)."""

    chart: str
    line: str
    x: float | str


@attrs.frozen(kw_only=True)
class Figure:
    """One measured figure. ``better``: which way is good. ``facts``: what else is to be known of it, by name."""

    name: str
    unit: str
    sample: Sample
    better: Literal["higher", "lower"] = "higher"
    beside: tuple[Beside, ...] = ()
    goal: Goal | None = None
    point: Point | None = None
    facts: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def value(self) -> float:
        return self.sample.median


def as_json(figure: Figure) -> dict[str, Any]:
    """A figure as a JSON object, without what it does not have."""
    found: dict[str, Any] = {
        "name": figure.name,
        "unit": figure.unit,
        "better": figure.better,
        "median": figure.value,
        "values": list(figure.sample.values),
    }
    if figure.beside:
        found["beside"] = [
            {"what": each.what, "kind": each.kind, "median": each.sample.median, "values": list(each.sample.values)}
            for each in figure.beside
        ]
    if (goal := figure.goal) is not None:
        found["goal"] = {
            "says": goal.says,
            "median": goal.sample.median,
            "values": list(goal.sample.values),
            "bound": goal.bound,
            "at_least": goal.at_least,
            "absolute": goal.absolute,
            "met": goal.met,
        }
    if figure.point is not None:
        found["point"] = attrs.asdict(figure.point)
    if figure.facts:
        found["facts"] = dict(figure.facts)
    return found


def from_json(found: Mapping[str, Any]) -> Figure:
    """The figure that ``as_json`` wrote; KeyError, TypeError, ValueError or UsageError for what it did not."""
    goal, point = found.get("goal"), found.get("point")
    return Figure(
        name=found["name"],
        unit=found["unit"],
        better=found["better"],
        sample=Sample(found["values"]),
        beside=tuple(
            Beside(what=each["what"], kind=each["kind"], sample=Sample(each["values"]))
            for each in found.get("beside", ())
        ),
        goal=None
        if goal is None
        else Goal(
            says=goal["says"],
            sample=Sample(goal["values"]),
            bound=goal["bound"],
            at_least=goal["at_least"],
            absolute=goal["absolute"],
        ),
        point=None if point is None else Point(**point),
        facts=found.get("facts", {}),
    )


def at_least_share(ours: Sample, theirs: Sample, share: float, says: str) -> Goal:
    """A goal on the ratio of two rates, round by round."""
    return Goal(says=says, sample=ours.over(theirs), bound=share)


def number(value: float) -> str:
    """A number for people: three digits that mean something."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"

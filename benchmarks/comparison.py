"""This result beside an earlier one: how many times, and whether the rounds of the two lie apart.

The law: where a figure has something beside it that both results measured, it is compared as a share of that, because machines and
hours differ and what stood beside it differed with them. "Faster" and "slower" are said only where no round of the one lies within the
rounds of the other.
"""

from __future__ import annotations

from typing import Literal

import attrs

from benchmarks.figures import Figure
from benchmarks.results import Result
from benchmarks.samples import Sample


@attrs.frozen(kw_only=True)
class Change:
    """``ratio``: now over then, of the figure itself. ``relative``: of its share of what stands beside it, None if nothing does."""

    ratio: float
    relative: float | None
    beside: str | None
    verdict: Literal["better", "worse", "within the spread"]


def compare(figure: Figure, earlier: Figure) -> Change | None:
    """None where the two cannot be compared (another unit, or a median of zero)."""
    if figure.unit != earlier.unit or not figure.value or not earlier.value:
        return None
    now, then, beside, relative = figure.sample, earlier.sample, None, None
    for mine, theirs in ((mine, theirs) for mine in figure.beside for theirs in earlier.beside):
        if mine.what == theirs.what and _usable(figure.sample, mine.sample) and _usable(earlier.sample, theirs.sample):
            beside = mine.what
            now, then = figure.sample.over(mine.sample), earlier.sample.over(theirs.sample)
            relative = now.median / then.median
            break
    if now.overlaps(then):
        verdict: Literal["better", "worse", "within the spread"] = "within the spread"
    else:
        grew = now.median > then.median
        verdict = "better" if grew == (figure.better == "higher") else "worse"
    return Change(ratio=figure.value / earlier.value, relative=relative, beside=beside, verdict=verdict)


def changes(result: Result, earlier: Result) -> dict[tuple[str, str], Change]:
    """Of every figure that both have, by suite and name."""
    found: dict[tuple[str, str], Change] = {}
    before = earlier.figures()
    for key, figure in result.figures().items():
        if key in before and (change := compare(figure, before[key])) is not None:
            found[key] = change
    return found


def caution(result: Result, earlier: Result) -> list[str]:
    """What makes the comparison doubtful, in sentences."""
    found = []
    differ = sorted(
        name
        for name in ("processor", "cores", "python", "sqlite", "file system")
        if result.machine.get(name) != earlier.machine.get(name)
    )
    if differ:
        found.append(f"Measured on something else: {', '.join(differ)} differ.")
    if result.quick != earlier.quick:
        found.append("One of the two is --quick, with fewer rounds.")
    if result.seed != earlier.seed:
        found.append(f"Other seeds: {result.seed} and {earlier.seed}.")
    return found


def _usable(figure: Sample, beside: Sample) -> bool:
    return len(figure.values) == len(beside.values) and all(beside.values)

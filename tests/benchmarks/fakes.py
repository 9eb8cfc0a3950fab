"""Figures and results that nobody measured."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.figures import Beside, Figure, Goal, Point
from benchmarks.results import Result
from benchmarks.running import Measured
from benchmarks.samples import Sample

MACHINE: dict[str, str | int | float] = {
    "processor": "a processor",
    "cores": 2,
    "memory GB": 8.0,
    "system": "a system",
    "python": "CPython 3",
    "trio": "0",
    "sqlite": "3",
    "concorde-trio": "0",
    "one write and fsync, ms": 0.5,
    "file system": "ext4",
}


def figure(
    values: Sequence[float] = (10.0, 11.0, 12.0),
    *,
    name: str = "fake",
    beside: Sequence[float] | None = (20.0, 22.0, 24.0),
    bound: float | None = None,
    absolute: bool = False,
    better: str = "higher",
    point: Point | None = None,
) -> Figure:
    """A figure of so many a second, held to a share of what stands beside it."""
    sample = Sample(values)
    return Figure(
        name=name,
        unit="/s",
        sample=sample,
        better=better,  # type: ignore[arg-type]
        beside=() if beside is None else (Beside(what="a limit", sample=Sample(beside), kind="limit"),),
        goal=None if bound is None else Goal(says="a share", sample=sample, bound=bound, absolute=absolute),
        point=point,
        facts={"version": "1"},
    )


def result(*figures: Figure, quick: bool = False, machine: dict[str, str | int | float] | None = None) -> Result:
    """A result with one suite, ``fake``."""
    return Result(
        at="2026-01-02T03:04:05+00:00",
        commit="abc",
        seed=1,
        quick=quick,
        machine=machine or MACHINE,
        suites={"fake": Measured(figures=figures, seconds=1.5, load=(0.1, 0.2), skipped=("a part: not here",))},
    )

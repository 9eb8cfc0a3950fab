"""Which charts a result has, and their SVG: every ``Point`` of its figures, by chart, beside the limits and peers of the same figure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from benchmarks import svg
from benchmarks.figures import Figure
from benchmarks.results import Result
from benchmarks.samples import Sample
from benchmarks.svg import Dot


def charts(result: Result) -> dict[str, str]:
    """SVG texts by file name."""
    by_chart: dict[str, list[Figure]] = {}
    for figure in result.figures().values():
        if figure.point is not None:
            by_chart.setdefault(figure.point.chart, []).append(figure)
    return {f"{file_name(title)}.svg": _draw(title, figures) for title, figures in by_chart.items()}


def file_name(title: str) -> str:
    """A chart's file, of its title."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _draw(title: str, figures: list[Figure]) -> str:
    if any(isinstance(figure.point.x, str) for figure in figures if figure.point is not None):
        return _bars(title, figures)
    drawn: dict[str, list[Dot]] = {}
    more = len({figure.point.line for figure in figures if figure.point is not None}) > 1
    for figure in figures:
        assert figure.point is not None
        x = float(figure.point.x)
        drawn.setdefault(figure.point.line, []).append(_dot(x, figure.sample))
        for beside in figure.beside:
            words = beside.what.partition(":")[0]
            line = f"{words}, {figure.point.line}" if more and not _shared(beside.what, figures) else words
            drawn.setdefault(line, []).append(_dot(x, beside.sample))
    unique = {name: list({dot.x: dot for dot in dots}.values()) for name, dots in drawn.items()}
    _, _, x_name = title.partition(" by ")
    return svg.lines(title, x_name, figures[0].unit, unique)


def _shared(what: str, figures: Iterable[Figure]) -> bool:
    """Whether the same measurement stands beside every line of a chart."""
    samples = {beside.sample for figure in figures for beside in figure.beside if beside.what == what}
    return len(samples) == 1


def _bars(title: str, figures: list[Figure]) -> str:
    drawn: dict[str, Dot] = {}
    kinds: dict[str, str] = {}
    for figure in figures:
        assert figure.point is not None
        name = str(figure.point.x)
        kinds[name] = figure.point.line
        drawn[name] = _dot(1.0, figure.sample)
    highest = dict(sorted(drawn.items(), key=lambda each: -each[1].y))
    return svg.bars(title, figures[0].unit, highest, kinds)


def _dot(x: float, sample: Sample) -> Dot:
    return Dot(x, sample.median, sample.low, sample.high)

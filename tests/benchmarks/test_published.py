"""docs/performance.md shows the result that is kept, and nothing else."""

from __future__ import annotations

import pytest

from benchmarks import charts, page, results
from benchmarks.catalog import SUITES
from benchmarks.results import Result

SINCE = {"fleet"}
"""Suites that are younger than the result that is kept; the next ``make bench`` empties this."""


@pytest.fixture(scope="module")
def kept() -> Result:
    return results.read(results.KEPT)


def test_the_page_has_the_figures_of_the_result_that_is_kept(kept: Result) -> None:
    """Benchmarks: nobody writes a figure by hand; make bench writes them."""
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.with_figures(text, kept) == text


def test_the_charts_are_those_of_the_result_that_is_kept(kept: Result) -> None:
    """Benchmarks: the same for the pictures, of which none is left over."""
    drawn = {path.name: path.read_text(encoding="utf-8") for path in page.CHARTS.glob("*.svg")}
    assert drawn == charts.charts(kept)


def test_the_result_that_is_kept_is_whole(kept: Result) -> None:
    """Benchmarks: every suite, with machine, versions, commit and seed; no figure alone."""
    assert list(kept.suites) == [name for name in SUITES if name not in SINCE]
    assert not kept.quick
    assert kept.commit != "unknown"
    assert {"processor", "cores", "python", "sqlite", "trio"} <= set(kept.machine)
    alone = [key for key, figure in kept.figures().items() if not figure.beside]
    assert alone == []

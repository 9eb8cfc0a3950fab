"""docs/performance.md's figures: the table and the charts of the result that is kept, written between two marks of the page.

The law: nobody writes a figure by hand. A test compares the page with the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks import charts, machine
from benchmarks.catalog import SUITES
from benchmarks.figures import Figure, number
from benchmarks.results import Result
from benchmarks.table import between, goal

PAGE = machine.ROOT / "docs" / "performance.md"
CHARTS = machine.ROOT / "docs" / "performance"
BEGIN, END = "<!-- figures: written by make bench -->", "<!-- end of figures -->"


def publish(result: Result) -> None:
    """Write the page's figures and its charts."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_figures(text, result), encoding="utf-8")
    draw(result, CHARTS)
    for old in CHARTS.glob("*.svg"):
        if old.name not in charts.charts(result):
            old.unlink()


def draw(result: Result, folder: Path) -> None:
    """Write the charts into a folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in charts.charts(result).items():
        (folder / name).write_text(text, encoding="utf-8")


def with_figures(text: str, result: Result) -> str:
    """The page's text with these figures in place of those it has."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} needs the two lines {BEGIN} and {END}")
    return f"{before}{begin}\n\n{figures(result)}\n\n{end}{after}"


def figures(result: Result) -> str:
    """The section, in Markdown."""
    return "\n".join(_section(result)).strip()


def _section(result: Result) -> Iterator[str]:
    about = result.machine
    yield (
        f"Measured {result.at.replace('T', ' ').replace('+00:00', ' UTC')} at commit `{result.commit}` with seed {result.seed}: "
        f"{about['processor']}, {about['cores']} cores, {about['memory GB']} GB, {about['system']}; {about['python']}, "
        f"trio {about['trio']}, SQLite {about['sqlite']}. A write of 4 KB and its fsync took "
        f"{about['one write and fsync, ms']} ms on {about['file system']}."
    )
    if (busy := result.busy()) is not None:
        yield from ("", busy)
    drawn = list(charts.charts(result))
    titles = {charts.file_name(title): title for title in _charted(result.figures().values())}
    for suite, measured in result.suites.items():
        yield from ("", f"### {suite}", "", f"{_capital(SUITES[suite].about)}." if suite in SUITES else "")
        for why in measured.skipped:
            yield from ("", f"Left out: {why}.")
        yield from (
            "",
            "| figure | median | lowest to highest | beside it | goal |",
            "| --- | ---: | ---: | --- | --- |",
        )
        for figure in measured.figures:
            yield _row(figure)
        if suite == "peers":
            yield from ("", *_peers(measured.figures))
        here = {charts.file_name(title) for title in _charted(measured.figures)}
        for name in drawn:
            if (stem := name.removesuffix(".svg")) in here:
                yield from ("", f"![{titles[stem]}](performance/{name})")


def _charted(measured: Iterable[Figure]) -> list[str]:
    return [figure.point.chart for figure in measured if figure.point is not None]


def _row(figure: Figure) -> str:
    beside = "<br>".join(
        f"{_cell(each.what)}: {number(each.sample.median)}"
        + (f" ({number(figure.value / each.sample.median)} times)" if each.sample.median else "")
        for each in figure.beside
    )
    verdict = "" if figure.goal is None else _cell(goal(figure.goal))
    unit = _cell(figure.unit)
    return f"| {_cell(figure.name)} | {number(figure.value)} {unit} | {between(figure.sample)} | {beside} | {verdict} |"


def _peers(measured: tuple[Figure, ...]) -> Iterator[str]:
    yield "| | version | how it was run | fsync | order a key | what it does not do |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for figure in measured:
        if "lacks" in figure.facts:
            cells = [figure.facts.get(key, "") for key in ("version", "how", "fsync", "order", "lacks")]
            yield f"| {_cell(figure.name)} | {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

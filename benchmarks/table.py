"""Figures for a terminal: one table a suite, each figure with its spread, what stands beside it, and its goal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.comparison import Change
from benchmarks.figures import Beside, Figure, Goal, number
from benchmarks.running import Measured
from benchmarks.samples import Sample

STYLES = {"better": "green", "worse": "red", "within the spread": "dim"}


def console() -> Console:
    """Standard output; wide enough for a table where it is no terminal."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=150)


def show(to: Console, suite: str, measured: Measured, changes: Mapping[tuple[str, str], Change] | None) -> None:
    """One suite."""
    if measured.broke is not None:
        to.print(f"[bold red]{suite} broke[/]", escape(measured.broke), sep="\n")
    if measured.figures:
        to.print(_table(suite, measured, changes))
    if any("lacks" in figure.facts for figure in measured.figures):
        to.print()
        to.print(_facts(measured))
    for why in measured.skipped:
        to.print(f"[yellow]left out:[/] {escape(why)}")
    to.print()


def _table(suite: str, measured: Measured, changes: Mapping[tuple[str, str], Change] | None) -> Table:
    load = measured.load[1]
    title = f"{suite}  ({measured.seconds:.0f} s, load {load:.1f})"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("figure", ratio=3)
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("lowest to highest", justify="right", no_wrap=True)
    table.add_column("beside it", ratio=3)
    table.add_column("goal", ratio=2)
    if changes is not None:
        table.add_column("now / then", justify="right", no_wrap=True)
    for figure in measured.figures:
        row = [
            escape(figure.name),
            f"{number(figure.value)} {figure.unit}".strip(),
            between(figure.sample),
            "\n".join(escape(beside(figure, each)) for each in figure.beside),
            "" if figure.goal is None else f"[{'green' if figure.goal.met else 'red'}]{escape(goal(figure.goal))}[/]",
        ]
        if changes is not None:
            change = changes.get((suite, figure.name))
            row.append("new" if change is None else "\n".join(_change(change)))
        table.add_row(*row)
    return table


def _facts(measured: Measured) -> Table:
    """How each peer was run, what was found of its order, and what it does not do."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, ratio in (
        ("peer", 2),
        ("version", 1),
        ("how it was run", 3),
        ("fsync", 2),
        ("order a key", 2),
        ("lacks", 3),
    ):
        table.add_column(name, ratio=ratio)
    for figure in measured.figures:
        if "lacks" in figure.facts:
            cells = [figure.facts.get(key, "") for key in ("version", "how", "fsync", "order", "lacks")]
            table.add_row(escape(figure.name), *map(escape, cells))
    return table


def between(sample: Sample) -> str:
    """The spread, empty where there is one round only."""
    return f"{number(sample.low)} to {number(sample.high)}" if len(sample.values) > 1 else ""


def beside(figure: Figure, other: Beside) -> str:
    """What stands beside a figure, and how many times it that is."""
    times = f" ({number(figure.value / other.sample.median)} times)" if other.sample.median else ""
    return f"{other.what}: {number(other.sample.median)}{times}"


def goal(of: Goal) -> str:
    """A goal and what became of it."""
    verdict = "met" if of.met else "not met on this machine" if of.absolute else "NOT MET"
    return f"{of.says}: {number(of.sample.median)} of {number(of.bound)}, {verdict}"


def _change(change: Change) -> Iterator[str]:
    style = STYLES[change.verdict]
    yield f"{number(change.ratio)}"
    if change.relative is not None:
        yield f"{number(change.relative)} of what is beside it"
    yield f"[{style}]{change.verdict}[/]"

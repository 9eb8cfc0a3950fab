"""A table on a terminal. The law: what somebody copies or compares is whole on its line, at every width.

Ids, states and times keep their width. What is left goes to the other columns: the last one gives way first, and
only when it is narrow do names fold. A terminal too narrow even for that gets long lines, which it wraps itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from concorde_trio.cli.show import Cell, visible

_NARROW = 8
"""No column that may give way gets narrower than this."""


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Print ``rows`` under ``columns``, fitted to the terminal."""
    console = Console(markup=False, highlight=False, emoji=False)
    gap = 2 if sum(_natural(columns, rows)) + 2 * (len(columns) - 1) <= console.width else 1
    gaps = gap * (len(columns) - 1)
    widths = fitted(columns, rows, console.width - gaps)
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, gap - 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    for column, width in zip(columns, widths, strict=True):
        shown.add_column(Text(column), width=width, overflow="fold")
    for row in rows:
        shown.add_row(*(_text(cell) for cell in row))
    Console(markup=False, highlight=False, emoji=False, width=max(console.width, sum(widths) + gaps)).print(
        shown, crop=False
    )


def fitted(columns: Sequence[str], rows: Sequence[Sequence[Cell]], room: int) -> list[int]:
    """The width of each column so that together they take ``room``, as far as that can be done."""
    widths = _natural(columns, rows)
    kept = _widest(columns, rows, lambda cell: cell_len(visible(cell.text)) if cell.fixed else 0)
    words = _widest(columns, rows, lambda cell: _longest_word(visible(cell.text)) if cell.whole else 0)
    last = len(columns) - 1
    ids_last = any(row[last].whole for row in rows)
    for least in (words, kept):
        others = sorted(range(last), key=lambda index: -widths[index])
        # An id that folds can't be copied in one piece, so names fold before it.
        for index in (*others, last) if ids_last and least is kept else (last, *others):
            floor = max(least[index], kept[index], 0 if any(row[index].fixed for row in rows) else _NARROW)
            widths[index] -= max(0, min(sum(widths) - room, widths[index] - floor))
    return widths


def _natural(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[int]:
    wide = _widest(columns, rows, lambda cell: cell_len(visible(cell.text)))
    return [max(width, cell_len(column)) for width, column in zip(wide, columns, strict=True)]


def _widest(columns: Sequence[str], rows: Sequence[Sequence[Cell]], measure: Callable[[Cell], int]) -> list[int]:
    """For each column the most that ``measure`` gives of its cells, or the longest word of its title."""
    return [
        max(_longest_word(column), *(measure(row[index]) for row in rows)) if rows else _longest_word(column)
        for index, column in enumerate(columns)
    ]


def _longest_word(text: str) -> int:
    return max((cell_len(word) for word in text.split()), default=0)


def _text(cell: Cell) -> Text:
    folds = cell.whole and not cell.fixed
    return Text(visible(cell.text), style=cell.style, overflow="fold" if folds else "ellipsis", no_wrap=not folds)

"""How the demo is watched: a live table on a terminal, a line for each thing that happens elsewhere, or nothing.

The law: a table is shown only where all of it fits; what is printed holds nothing that a terminal of any kind can't show.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import trio
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from concorde_trio.demo.board import Board, Row

STYLES = {
    "sent": "dim",
    "queued": "yellow",
    "running": "cyan",
    "held": "blue",
    "done": "green",
    "failed": "red",
    "limited": "magenta",
    "cancelled": "yellow",
}
REFRESH = 0.1
"""Seconds between two pictures."""
_ROOM = 8
"""Lines of a terminal that are not for errands."""
_NARROW = 72
"""Columns without which there is no table."""
_WIDE = 100
"""Columns with which there is room for what an errand needs."""


class Screen:
    """Shows a board while it is entered. ``errands``: how many there will be. ``quiet``: show nothing at all."""

    def __init__(self, console: Console, errands: int, *, quiet: bool = False) -> None:
        self._console = console
        self._live = not quiet and console.is_terminal and not console.is_dumb_terminal
        self._live = self._live and console.height >= errands + _ROOM and console.width >= _NARROW
        self._quiet = quiet
        self._began = time.time()
        self._picture: Live | None = None

    def tell(self, row: Row, what: str) -> None:
        """A line, where there is no table."""
        if not self._live and not self._quiet:
            at = f"{time.time() - self._began:5.2f} s"
            line = f"{at}  {row.errand.number:>2}  {row.message.person:<4}  {what}"
            self._console.print(Text(line), soft_wrap=True)

    def showing(self) -> AbstractContextManager[object]:
        """While entered the table, if there is one, is on the screen; it stays there, as it was at the end."""
        if not self._live:
            return nullcontext()
        self._picture = Live(console=self._console, auto_refresh=False, transient=False)
        return self._picture

    async def refresh(self, board: Board, left: Callable[[], int]) -> None:
        """Draw the table again and again."""
        while True:
            self.draw(board, left())
            await trio.sleep(REFRESH)

    def draw(self, board: Board, left: int) -> None:
        """Draw the table once."""
        if self._picture is not None:
            picture = Group(_table(board, self._console.width), self._below(board, left))
            if len(self._console.render_lines(picture)) > self._console.height:
                picture = Group(_table(board, self._console.width, folded=False), self._below(board, left))
            self._picture.update(picture, refresh=True)

    def _below(self, board: Board, left: int) -> Text:
        states = [row.state for row in board.rows]
        running, waiting = states.count("running"), states.count("queued") + states.count("sent")
        return Text(
            f"  {running} running, {waiting} waiting, {len(states) - running - waiting} ended;  "
            f"{left} left in the budget;  {time.time() - self._began:.1f} s",
            style="dim",
        )


def _table(board: Board, width: int, *, folded: bool = True) -> Table:
    """The table; ``folded``: what has no room in a line goes on in the next, instead of being cut off."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", expand=True)
    table.add_column("#", justify="right", no_wrap=True, min_width=2)
    table.add_column("from", no_wrap=True, min_width=4)
    table.add_column("message", no_wrap=True, min_width=19)
    if width >= _WIDE:
        table.add_column("needs alone", no_wrap=True, style="dim", min_width=15)
    table.add_column("now", no_wrap=not folded, overflow="fold" if folded else "ellipsis", ratio=1)
    table.add_column("took", justify="right", no_wrap=True, min_width=6)
    for row in board.rows:
        needs = ", ".join(name for space, name in row.errand.locks if space == "resource")
        cells = [Text(str(row.errand.number)), Text(row.message.person), Text(row.message.about)]
        if width >= _WIDE:
            cells.append(Text(needs or "-"))
        style = STYLES[row.state]
        took = f"{row.lasted:.1f} s" if row.started is not None else ""
        table.add_row(*cells, Text(_now(board, row), style=style), Text(took, style=style))
    return table


def _now(board: Board, row: Row) -> str:
    match row.state:
        case "queued":
            return board.waits(row) or "may start"
        case "held":
            return f"{board.ending(row)}, holds its locks"
        case "sent":
            return row.state
        case "running":
            return board.doing(row)
        case _:
            return board.ending(row)

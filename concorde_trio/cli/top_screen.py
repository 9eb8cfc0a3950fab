"""The picture of ``top`` as the lines of a terminal.

The law: exactly as many lines as there are, none wider than the terminal, at any size; and nothing that came from outside
acts on it. Ids are whole wherever they have room: other columns give way first.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from concorde_trio.cli.picture import Picture
from concorde_trio.cli.show import Cell, at, visible
from concorde_trio.cli.top_detail import detail
from concorde_trio.cli.top_layout import share, window
from concorde_trio.cli.top_rows import Section, sections, standing_of, summary
from concorde_trio.cli.top_view import View

HEADING = "reverse"
FOCUS = "bold reverse"
KEYS = "q quit   arrows move   tab list   enter who it waits for   i interrupt   c cancel   ? help"
HELP = """\
concorde-trio top shows what is going on, as it happens.

  RUNS      what runs, what is held for its signal, what waits and for whom
  SESSIONS  those in memory: what each waits on, how long still, what holds it
  LOCKS     sessions and resources that runs hold or wait for
  SIGNALS   those whose handler or post phase is called, and those not claimed

  up, down, j, k      move                   home, end, g, G   first, last
  page up, page down  move by ten            tab               the next list
  enter, w            who the chosen run waits for, to the root; what is
                      known of a session, a lock, a signal
  i                   interrupt the session's turn, after a question
  c                   cancel the run or the signal, after a question
  escape              close what is open     q, Ctrl-C         quit

LEFT is what is left of a run's time limit, or of what a session waits on.
Any key closes this."""
WIDEST = {"SESSION": 6, "KIND": 8, "NAME": 4, "HELD BY": 3, "WAITS ON": 6}
"""Columns of names, which may be long: the part of the width that they get at most, as one in so many."""
ENOUGH = {"KIND": 96, "LEFT": 60, "FOR": 50, "QUEUED": 60}
"""Columns of the terminal without which there is no such column."""
_CONSOLE = Console(markup=False, highlight=False, emoji=False)
"""For folding text, which does not look at the terminal."""


def render(view: View, picture: Picture, now: float, width: int, height: int, place: str) -> list[Text]:
    """The lines. ``place``: what is looked at, in words. Sets the offsets of ``view``."""
    lists = sections(picture, now)
    head = [_title(picture, now, place), Text(visible(summary(picture)))]
    if view.help:
        body = [Text(line) for line in HELP.splitlines()]
    else:
        body = _body(view, picture, lists, now, width, max(0, height - len(head) - 1))
    lines = (head + body)[: max(0, height - 1)]
    lines += [Text()] * (height - 1 - len(lines)) + [_foot(view)]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines[-height:]


def _title(picture: Picture, now: float, place: str) -> Text:
    style = "green" if picture.worker["status"] == "running" else "yellow"
    return Text.assemble((at(now)[-8:], ""), "  ", (visible(standing_of(picture.worker)), style), f"  {visible(place)}")


def _foot(view: View) -> Text:
    if view.question is not None:
        return Text(f"{visible(view.question.text)} y/n", "bold yellow")
    return Text(visible(view.said), "bold") if view.said else Text(KEYS, "dim")


def _body(view: View, picture: Picture, lists: Sequence[Section], now: float, width: int, room: int) -> list[Text]:
    opened: list[Text] = []
    if view.opened:
        opened = _opened(view, picture, lists, now, width, room // 2)
    shown = [each for each in lists if not view.opened or each.name == view.focus]
    wanted = {each.name: max(1, len(each.keys)) if each.name == "runs" else len(each.keys) for each in shown}
    rows = share(room - len(opened), wanted, view.focus)
    lines: list[Text] = []
    for section in shown:
        if section.name in rows:
            lines += _list(view, section, rows[section.name], width)
    return lines + opened


def _opened(view: View, picture: Picture, lists: Sequence[Section], now: float, width: int, room: int) -> list[Text]:
    """What is known of the chosen row, folded; what has no room is counted."""
    section = next(each for each in lists if each.name == view.focus)
    here = view.place(section)
    told = detail(picture, view.focus, section.keys[here], now) if here >= 0 else ["nothing is chosen"]
    lines: list[Text] = []
    for line in told:
        lines += _folded(visible(line), width)
    if len(lines) > room - 1:
        hidden = len(lines) - max(0, room - 2)
        lines = [*lines[: max(0, room - 2)], Text(f"... and {hidden} more lines", "dim")]
    return ([Text("-" * width, "dim"), *lines])[: max(0, room)]


def _folded(text: str, width: int) -> list[Text]:
    """A line over as many as it needs, the others a little further in."""
    indent = len(text) - len(text.lstrip(" "))
    pieces = Text(text.strip(" ")).wrap(_CONSOLE, max(8, width - indent - 2), overflow="fold")
    return [Text(" " * (indent + (2 if number else 0)) + piece.plain) for number, piece in enumerate(pieces)]


def _list(view: View, section: Section, rows: int, width: int) -> list[Text]:
    """A heading and so many rows."""
    chosen, count = view.place(section), len(section.keys)
    first = view.offsets[section.name] = window(view.offsets.get(section.name, 0), count, rows, chosen)
    cells = section.cells(first, first + rows)
    columns = [at for at, name in enumerate(section.columns) if width >= ENOUGH.get(name, 0)]
    last = len(section.columns) - 1
    widths = []
    for column in columns:
        widest = max([cell_len(section.columns[column]), *(cell_len(visible(row[column].text)) for row in cells)])
        part = WIDEST.get(section.columns[column])
        widths.append(widest if part is None else min(widest, max(8, width // part)))
    if columns and columns[-1] == last:
        widths[-1] = max(0, width - sum(widths[:-1]) - 2 * (len(widths) - 1))
    focused = section.name == view.focus
    titles = [Cell(section.columns[column]) for column in columns]
    heading = _line(titles, widths)
    count_words = f"{first + 1}-{first + len(cells)} of {count}" if count > rows else str(count)
    told = f"{section.name} {count_words}{', ' if section.more else ''}{section.more}"
    heading.truncate(width, overflow="ellipsis", pad=True)
    if cell_len(heading.plain.rstrip()) + cell_len(told) + 2 <= width:
        heading = Text(heading.plain[: width - cell_len(told)] + told)
    heading.stylize(FOCUS if focused else HEADING)
    lines = [heading]
    for number, row in enumerate(cells, first):
        line = _line([row[column] for column in columns], widths)
        if focused and number == chosen:
            line.truncate(width, overflow="ellipsis", pad=True)
            line.stylize("reverse")
        lines.append(line)
    if not cells and rows:
        lines.append(Text(f"no {section.name}", "dim"))
    return lines


def _line(cells: Sequence[Cell], widths: Sequence[int]) -> Text:
    line = Text(no_wrap=True)
    for number, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        piece = Text(visible(cell.text), cell.style)
        piece.truncate(width, overflow="ellipsis", pad=number < len(cells) - 1)
        line.append_text(piece)
        if number < len(cells) - 1:
            line.append("  ")
    return line

"""What a command prints. The law: text from outside is shown, never interpreted.

Control characters, terminal escapes, characters that turn the direction of writing, and lone surrogates are shown
as escapes (``\\x1b``, ``\\u202e``). Rich is imported for a terminal alone, and is only ever given Text, so that
``[red]`` is five characters. Off a terminal a table is aligned text, of which nothing is cut off.
"""

from __future__ import annotations

import json
import sys
import time
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

STYLES: Mapping[str, str] = {
    "pending": "yellow",
    "processing": "cyan",
    "running": "cyan",
    "done": "green",
    "failed": "red",
    "limited": "magenta",
    "cancelled": "yellow",
}
"""How the states of signals and runs are coloured."""


class PipeClosed(Exception):
    """Whoever reads our output went away. Click would make a failure of the BrokenPipeError itself."""


@attrs.frozen
class Cell:
    """A piece of a table: text as it came, and a Rich style.

    ``whole`` text may be broken over lines and is never cut; ``fixed`` text is neither broken nor cut.
    """

    text: str
    style: str = ""
    whole: bool = False
    fixed: bool = False


def state_cell(state: str) -> Cell:
    """A state in its colour."""
    return Cell(state, STYLES.get(state, ""), fixed=True)


def id_cell(text: str) -> Cell:
    """An id: somebody will copy it, so none of it is left out."""
    return Cell(text, "bold", fixed=True)


def time_cell(text: str) -> Cell:
    """A time or a duration in words: half of one is a wrong one."""
    return Cell(text, fixed=True)


def name_cell(text: str) -> Cell:
    """A name of up to 200 characters: broken over lines when there is no room, since it is what others are named by."""
    return Cell(text, whole=True)


def visible(text: str) -> str:
    """``text`` on one line, with whatever could act on a terminal shown as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible_character(character) for character in text)


def visible_lines(text: str) -> str:
    """The same, but line feeds stay line feeds, and tabs become spaces."""
    return "\n".join(visible(line) for line in text.expandtabs(4).split("\n"))


def _visible_character(character: str) -> str:
    if unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return character
    # A joiner holds an emoji together and turns nothing around.
    if character == "\u200d":
        return character
    return character.encode("unicode_escape").decode()


def say(text: str = "") -> None:
    """One line on stdout; ``text`` has been made visible where it came from outside."""
    print(text, flush=True)


def note(text: str) -> None:
    """One line on stderr: an explanation beside the answer."""
    print(visible(text), file=sys.stderr)


def document(value: object) -> None:
    """One JSON document on stdout, in ASCII: the same on every terminal and in every locale."""
    print(json.dumps(value, indent=2, allow_nan=False))


def json_text(value: object) -> str:
    """A JSON value for a person, over several lines, visible."""
    return visible_lines(json.dumps(value, indent=2, ensure_ascii=False))


def on_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell | str]]) -> None:
    """A table: in colours and fitted to the width on a terminal, else aligned text."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    if on_terminal():
        from concorde_trio.cli.rich_table import print_table

        print_table(columns, cells)
        return
    texts = [list(columns), *([visible(cell.text) for cell in row] for row in cells)]
    widths = [max(_width(row[index]) for row in texts) for index in range(len(columns))]
    for row in texts:
        line = "  ".join(text + " " * (width - _width(text)) for text, width in zip(row, widths, strict=True))
        say(line.rstrip())


def fields(pairs: Iterable[tuple[str, Cell | str | None]]) -> None:
    """Names and values, one a line; None leaves the line out."""
    shown = [(name, value if isinstance(value, Cell) else Cell(value)) for name, value in pairs if value is not None]
    width = max((len(name) for name, _ in shown), default=0)
    for name, cell in shown:
        say(f"{name:<{width}}  {coloured(visible(cell.text), cell.style)}")


def coloured(text: str, style: str) -> str:
    """``text``, already visible, in a style on a terminal that wants colour."""
    if not style or not on_terminal():
        return text
    from rich.console import Console
    from rich.text import Text

    console = Console(markup=False, highlight=False, emoji=False)
    with console.capture() as captured:
        console.print(Text(text, style=style), end="", soft_wrap=True)
    return captured.get()


def at(moment: float | None) -> str:
    """A wall-clock time in seconds, as local date and time; "-" for None."""
    if moment is None:
        return "-"
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))
    except (OverflowError, ValueError, OSError):
        return f"{moment:.0f}"


def lasting(seconds: float | None) -> str:
    """A duration in the largest two units; "-" for None."""
    if seconds is None:
        return "-"
    if seconds < 9.995:
        return f"{max(seconds, 0.0):.2f}s"
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    for unit, size, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if whole >= size:
            return f"{whole // size}{unit}{whole % size // part:02}{smaller}"
    return f"{whole}s"


def first_line(text: str | None) -> str:
    """The first line of a text that has something on it; "" for None."""
    return next((line.strip() for line in (text or "").splitlines() if line.strip()), "")


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def plural(count: int, what: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


Document = dict[str, Any]
"""A JSON object as the agent server gives it."""

"""The statements of the SQLite store: they stand in files, and are made for any number of rows.

The law: one statement writes all rows of a kind in a commit, since each statement of its own waits for the
interpreter lock beside a busy Trio thread. Rows are bound, and padded with nulls to a power of two, so that few texts
are compiled and floats arrive as they are (as JSON text they would lose their last bit now and then).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

ROWS_AT_ONCE = 512
"""Rows a statement: 19 parameters for a run times this stays below SQLite's 32,766."""

_FOLDER = files("concorde_trio.stores") / "sql" / "sqlite"
_MARK = "/*rows*/"


@cache
def statement(name: str) -> str:
    """The text of the statement in the file ``name``.sql, without its comments."""
    lines = (_FOLDER / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("--"))


@cache
def _for_rows(name: str, count: int) -> tuple[str, int]:
    before, marked = statement(name).split(_MARK)
    row, after = marked[: marked.index(")") + 1], marked[marked.index(")") + 1 :]
    return before + ", ".join([row] * count) + after, row.count("?")


class SqliteWrites:
    """A connection inside a write transaction, and its statements by name (see ``database.Writes``)."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.execute = connection.execute

    def execute_named(self, name: str, parameters: Sequence[Any], /) -> sqlite3.Cursor:
        """Run a statement that takes parameters."""
        return self._connection.execute(statement(f"write/{name}"), parameters)

    def execute_rows(self, name: str, rows: Sequence[Sequence[Any]], /) -> int:
        """Run a statement that has ``/*rows*/`` over all rows; how many rows of the table it changed."""
        return sum(cursor.rowcount for cursor in _cursors(self._connection, f"write/{name}", rows))

    def select_rows(self, name: str, rows: Sequence[Sequence[Any]], /) -> list[tuple[Any, ...]]:
        """Run a query that has ``/*rows*/`` over all rows; what it found."""
        return [found for cursor in _cursors(self._connection, f"write/{name}", rows) for found in cursor.fetchall()]


def _cursors(connection: sqlite3.Connection, name: str, rows: Sequence[Sequence[Any]]) -> Iterator[sqlite3.Cursor]:
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[start : start + ROWS_AT_ONCE]
        padded = 1 << (len(part) - 1).bit_length()
        text, width = _for_rows(name, padded)
        values = [value for row in part for value in row]
        values += [None] * (width * (padded - len(part)))
        yield connection.execute(text, values)


def migrations() -> list[tuple[int, str]]:
    """The numbered files, in order: version and text."""
    found = [each.name for each in _FOLDER.iterdir() if each.name[:4].isdigit()]
    return [(int(name[:4]), (_FOLDER / name).read_text(encoding="utf-8")) for name in sorted(found)]


def each_statement(script: str) -> Iterator[str]:
    """The statements of a script one by one; executescript would commit first."""
    text = ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text
            text = ""

"""The statements of the PostgreSQL store: they stand in files, and take any number of rows as one array a column.

The law: a statement has one text whatever the number of its rows, so the server plans it once. In the texts of others
(``queries``) ``?`` stands for a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

import psycopg

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
Cursor: TypeAlias = psycopg.Cursor[tuple[Any, ...]]

HAS_RESOURCE = (
    "exists (select 1 from json_array_elements_text(runs.resources::json) as held (resource) where held.resource = ?)"
)
KEPT = (
    "select document from messages where session = ? "
    "and seq in (select value::bigint from json_array_elements_text(?::json) as kept (value)) order by seq"
)

_FOLDER = files("concorde_trio.stores") / "sql" / "postgres"
_ARRAY = re.compile(r"%s::([a-z ]+)\[\]")


@cache
def statement(name: str, schema: str) -> str:
    """The text of the statement in the file ``name``.sql, without its comments, for this schema."""
    lines = (_FOLDER / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("--")).replace("/*schema*/", f'"{schema}".')


@cache
def migrations() -> list[tuple[int, str]]:
    """The numbered files, in order: version and text."""
    found = [each.name for each in _FOLDER.iterdir() if each.name[:4].isdigit()]
    return [(int(name[:4]), (_FOLDER / name).read_text(encoding="utf-8")) for name in sorted(found)]


@cache
def _columns(name: str, schema: str) -> list[str]:
    return _ARRAY.findall(statement(name, schema))


@cache
def _translated(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


def _array(kind: str, values: Sequence[Any]) -> str:
    """Values as the text of an array. Much faster than the driver's own, which finds out the type of each."""
    if kind == "text":
        items = ["NULL" if each is None else f'"{_escaped(each)}"' for each in values]
    elif kind == "double precision":
        items = ["NULL" if each is None else repr(float(each)) for each in values]
    else:
        items = ["NULL" if each is None else str(int(each)) for each in values]
    return f"{{{','.join(items)}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"') if "\\" in text or '"' in text else text


def _storable(value: Any) -> Any:
    """A text with NUL equals nothing that is stored, as null does; the server would refuse it."""
    return None if isinstance(value, str) and "\0" in value else value


class PostgresReads:
    """A connection for queries, whose search path begins with the queue's schema (see ``database.Reads``)."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Cursor:
        """Run one statement."""
        if not parameters:
            return self.connection.execute(sql)
        return self.connection.execute(_translated(sql), [_storable(each) for each in parameters])


class PostgresWrites(PostgresReads):
    """A connection inside a write transaction, and its statements by name (see ``database.Writes``)."""

    def __init__(self, connection: Connection, schema: str) -> None:
        super().__init__(connection)
        self._schema = schema

    def execute_named(self, name: str, parameters: Sequence[Any], /) -> Cursor:
        """Run a statement that takes parameters."""
        if name == "old_sessions":
            return self._old_sessions(*parameters)
        return self._run(name, parameters)

    def execute_rows(self, name: str, rows: Sequence[Sequence[Any]], /) -> int:
        """Run a statement over all rows; how many rows of the table it changed."""
        if name == "update_sessions":
            return self._save_sessions(rows)
        return self._over(name, rows).rowcount

    def select_rows(self, name: str, rows: Sequence[Sequence[Any]], /) -> list[tuple[Any, ...]]:
        """Run a query over all rows; what it found."""
        found = self._over(name, rows).fetchall()
        if name == "signals_by_key" and len(found) != len(rows):
            # It was pruned between the two statements, so its key is free: all of it is done again.
            raise psycopg.errors.SerializationFailure("a signal of the same key was removed at this moment")
        return found

    def _run(self, name: str, parameters: Sequence[Any]) -> Cursor:
        return self.connection.execute(statement(f"write/{name}", self._schema), parameters)

    def _over(self, name: str, rows: Sequence[Sequence[Any]]) -> Cursor:
        kinds = _columns(f"write/{name}", self._schema)
        columns = zip(*rows, strict=True)
        return self._run(name, [_array(kind, column) for kind, column in zip(kinds, columns, strict=True)])

    def _save_sessions(self, rows: Sequence[Sequence[Any]]) -> int:
        """Change those that are there, make the others and change them. Another process may make one meanwhile."""
        there = {name for (name,) in self._over("update_sessions", rows).fetchall()}
        if len(there) < len(rows):
            new = [row for row in rows if row[0] not in there]
            self._over("make_sessions", [row[:3] for row in new])
            self._over("update_sessions", new)
        return len(rows)

    def _old_sessions(self, before: float, limit: int) -> Cursor:
        """Found, then locked, then looked at again: an input may have come between the first two."""
        names = [name for (name,) in self._run("old_sessions", (before, limit)).fetchall()]
        self._run("lock_sessions", (names,))
        return self._run("unused_sessions", (names, before))

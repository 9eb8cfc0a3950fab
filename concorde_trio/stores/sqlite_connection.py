"""Connections to the database of a queue, and its schema: opened one way, brought up to date by numbered files.

The law: the version is read before anything is changed, and read again under the write lock, so that a newer schema
is refused untouched and two processes that open a fresh file at once both succeed.
"""

from __future__ import annotations

import re
import sqlite3

from concorde_trio.errors import SchemaTooNew, StoreError
from concorde_trio.stores.sqlite_place import Place
from concorde_trio.stores.sqlite_sql import each_statement, migrations

_OLDEST = (3, 37, 0)
_MADE = re.compile(r"^create (?:unique )?(?:table|index) (\w+)", re.MULTILINE)


def connect(place: Place, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode; any thread may use it, one at a time. Waits for no lock."""
    if sqlite3.sqlite_version_info < _OLDEST:
        raise StoreError(
            f"Python's SQLite is {sqlite3.sqlite_version}, the store needs {'.'.join(map(str, _OLDEST))} or later"
        )
    connection = sqlite3.connect(
        place.uri("rw" if read_only else "rwc"),
        uri=True,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    if read_only:
        connection.execute("pragma query_only = on")
    return connection


def prepare(connection: sqlite3.Connection, place: Place) -> bool:
    """Make a connection ready to write; True if the schema is up to date, False if ``migrate`` is needed."""
    version = schema_version(connection, place)
    mode = connection.execute("pragma journal_mode").fetchone()[0]
    if mode != "wal":
        mode = connection.execute("pragma journal_mode = wal").fetchone()[0]
        if mode != "wal":
            raise StoreError(
                f"the database {place.database} cannot use a write-ahead log (its journal mode stays {mode}); "
                "keep it on a local disk"
            )
    connection.execute("pragma synchronous = full")
    connection.execute("pragma foreign_keys = on")
    connection.execute(f"pragma journal_size_limit = {64 * 1024 * 1024}")
    return version == migrations()[-1][0]


def migrate(connection: sqlite3.Connection, place: Place) -> None:
    """Bring the schema up to date, inside the write transaction that the caller has begun."""
    version = schema_version(connection, place)
    for number, script in migrations():
        if number > version:
            for statement in each_statement(script):
                connection.execute(statement)
            connection.execute("update concorde_meta set schema_version = ?", (number,))


def schema_version(connection: sqlite3.Connection, place: Place) -> int:
    """The version stored, 0 if none; SchemaTooNew, or a StoreError if a name that it needs is somebody else's."""
    there = {name.lower(): (kind, name) for kind, name in connection.execute("select type, name from sqlite_schema")}
    version: int = 0
    if "concorde_meta" in there:
        version = connection.execute("select schema_version from concorde_meta").fetchone()[0]
    newest = migrations()[-1][0]
    if version > newest:
        raise SchemaTooNew(
            f"the database {place.database} has schema version {version}, and this package knows versions up to "
            f"{newest}; use the newer package that wrote it"
        )
    for number, script in migrations():
        for made in _MADE.findall(script) if number > version else ():
            if made in there:
                kind, name = there[made]
                raise StoreError(
                    f"the database {place.database} has {'an' if kind == 'index' else 'a'} {kind} {name!r} that this "
                    "package did not make; rename it, or name another file for the queue"
                )
    return version

"""A SQLite queue as the source or the destination of a copy (see ``copying``)."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from concorde_trio.errors import QueueTaken, StoreError
from concorde_trio.processes.fork_safety import close_lock
from concorde_trio.stores.copied_tables import CopiedTable, Row
from concorde_trio.stores.copying import BATCH
from concorde_trio.stores.pauses import pauses
from concorde_trio.stores.sqlite_connection import connect, migrate, prepare
from concorde_trio.stores.sqlite_errors import passes, store_busy, store_error
from concorde_trio.stores.sqlite_place import Place, place_of
from concorde_trio.stores.sqlite_turnstile import Turnstile, open_lock_file, try_lock

PATIENCE = 10.0
"""Seconds that a copy waits for others who write."""


class SqliteTables:
    """The tables of a queue on a connection in a write transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def count(self, table: CopiedTable) -> int:
        """How many rows it has."""
        return self._number(f"select count(*) from {table.name}")

    def rows(self, table: CopiedTable) -> Iterator[list[Row]]:
        """Its rows, some at a time."""
        cursor = self._connection.execute(table.select)
        while batch := cursor.fetchmany(BATCH):
            yield list(table.alike(batch))

    def highest(self, table: CopiedTable) -> int:
        """The highest number its counter gave out."""
        return self._number(f"select coalesce(max(seq), 0) from sqlite_sequence where name = '{table.name}'")

    def last_position(self) -> int:
        """The highest position a run ever had."""
        return self._number("select last_position from concorde_meta")

    def write(self, table: CopiedTable, batches: Iterator[list[Row]]) -> None:
        """Insert the rows."""
        insert = f"insert into {table.name} ({table.columns_sql}) values ({', '.join('?' * len(table.columns))})"
        for batch in batches:
            self._connection.executemany(insert, batch)

    def number_from(self, table: CopiedTable, highest: int) -> None:
        """Never give out this number again."""
        if highest:
            self._connection.execute("delete from sqlite_sequence where name = ?", (table.name,))
            self._connection.execute("insert into sqlite_sequence (name, seq) values (?, ?)", (table.name, highest))

    def place_from(self, position: int) -> None:
        """Never give a run this position again."""
        self._connection.execute("update concorde_meta set last_position = ?", (position,))

    def _number(self, query: str) -> int:
        number: int = self._connection.execute(query).fetchone()[0]
        return number


class SqliteCopyPlace:
    """The queue in the file ``path``, or the file where one is to be."""

    def __init__(self, path: Path) -> None:
        self._place = place_of(path)

    @property
    def name(self) -> str:
        """The file."""
        return str(self._place.database)

    @contextmanager
    def held_still(self) -> Iterator[SqliteTables]:
        """The queue that is there; producers wait, as for any long transaction."""
        with self._writing() as connection:
            yield SqliteTables(connection)
            connection.execute("rollback")

    @contextmanager
    def filled(self) -> Iterator[SqliteTables]:
        """A new file, one without a queue, or a queue without rows."""
        there = self._place.database.exists()
        try:
            with self._writing() as connection:
                yield SqliteTables(connection)
                connection.execute("commit")
        except BaseException:
            if not there:
                self._remove()
            raise

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A connection in a write transaction with the schema up to date, and nobody serving. Rolled back on an error."""
        self._place.check()
        with ExitStack() as stack:
            for lock, taken in (
                (self._place.worker_lock, "is served by a worker; stop it first"),
                (
                    self._place.programs_lock,
                    "still has programs of its last worker running; wait until they have ended",
                ),
            ):
                descriptor = open_lock_file(lock)
                stack.callback(close_lock, descriptor)
                if not try_lock(descriptor):
                    raise QueueTaken(f"the queue {self.name} {taken}, then copy")
            turnstile = Turnstile(self._place)
            stack.callback(turnstile.close)
            try:
                connection = stack.enter_context(closing(connect(self._place)))
                up_to_date = self._prepared(connection, turnstile)
                if not up_to_date:
                    migrate(connection, self._place)
                yield connection
            except sqlite3.Error as error:
                raise store_error(error, self._place.database) from error

    def _prepared(self, connection: sqlite3.Connection, turnstile: Turnstile) -> bool:
        """Begin the transaction, waiting for others at most ``PATIENCE``; True if the schema is up to date."""
        until = time.monotonic() + PATIENCE
        last: sqlite3.Error | None = None
        for pause in pauses():
            try:
                up_to_date = prepare(connection, self._place)
                if turnstile.try_enter():
                    connection.execute("begin immediate")
                    return up_to_date
            except sqlite3.Error as error:
                turnstile.leave()
                if not passes(error):
                    raise
                last = error
            if time.monotonic() > until:
                raise store_busy(last, self._place.database, PATIENCE)
            time.sleep(pause)
        raise StoreError("pauses() has no end")

    def _remove(self) -> None:
        """What a copy that failed had made: the file, which has nothing in it, and those beside it."""
        beside: Place = self._place
        for path in (beside.worker_lock, beside.programs_lock, beside.turn_lock, beside.write_lock):
            path.unlink(missing_ok=True)
        for ending in ("", "-wal", "-shm"):
            with suppress(OSError):
                Path(f"{beside.database}{ending}").unlink(missing_ok=True)

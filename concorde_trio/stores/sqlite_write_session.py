"""One writer of a SQLite queue: a connection and its place at the turnstile, for whichever thread holds it.

The law: nothing here waits. What must be tried again says False (or gives None), and its caller waits in its own way: the
writer's thread, the Trio thread of an inline store, a producer that runs no Trio. What cannot pass is a StoreError.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from outcome import Outcome

from concorde_trio.errors import StoreBusy
from concorde_trio.stores.sqlite_connection import connect, migrate, prepare
from concorde_trio.stores.sqlite_errors import passes, store_busy, store_error
from concorde_trio.stores.sqlite_place import Place
from concorde_trio.stores.sqlite_turnstile import Turnstile
from concorde_trio.stores.sqlite_works import commit_works, roll_back
from concorde_trio.stores.works import Work

STEPS = 50_000
"""Steps of SQLite's machine between two questions whether a statement is still wanted; about a millisecond."""


class WriteSession:
    """Open with ``try_open``, then ``try_begin`` and one of ``commit_works``, ``commit``, ``roll_back``; then ``close``."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._connection: sqlite3.Connection | None = None
        self._turnstile: Turnstile | None = None
        self._prepared = False
        self._version = 0
        self._last_error: BaseException | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """Its connection, once it is open."""
        assert self._connection is not None
        return self._connection

    @property
    def name(self) -> str:
        """How errors call the database."""
        return str(self.place.database)

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open."""
        return self.connection.in_transaction

    def end_statements_if(self, unwanted: Callable[[], bool] | None) -> None:
        """End a statement that runs as soon as ``unwanted`` says so, which is asked every millisecond; None: none."""
        self.connection.set_progress_handler(unwanted, 0 if unwanted is None else STEPS)

    @property
    def next_in_line(self) -> bool:
        """True while it will be the next to write, so that its caller may look again soon."""
        return self._turnstile is not None and self._turnstile.has_turn

    def try_open(self) -> bool:
        """True once it is connected and the schema up to date; False if a lock was in the way."""
        if self._connection is None:
            self.place.check()
        try:
            if self._connection is None:
                self._connection = connect(self.place)
            if not self._prepared:
                self._prepared = prepare(self._connection, self.place)
            if self._turnstile is None:
                self._turnstile = Turnstile(self.place)
            if not self._prepared:
                if not self.try_begin():
                    return False
                migrate(self._connection, self.place)
                self.commit()
                self._prepared = True
            self._version = self._data_version()
        except sqlite3.Error as error:
            self.roll_back()
            if passes(error) and error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CANTOPEN:
                self._last_error = error
                return False
            raise store_error(error, self.place.database) from error
        return True

    def try_begin(self) -> bool:
        """True once a write transaction has begun."""
        assert self._turnstile is not None
        if not self._turnstile.try_enter():
            return False
        try:
            self.connection.execute("begin immediate")
        except sqlite3.Error as error:
            # The turn is given up, so that what holds the file without asking at the turnstile stops nobody else.
            self._turnstile.leave()
            if not passes(error):
                raise store_error(error, self.place.database) from error
            self._last_error = error
            return False
        self._last_error = None
        return True

    def commit_works(self, works: Sequence[Work]) -> list[Outcome[Any]] | None:
        """Write them in the transaction that has begun, and commit; None if it must be begun and tried again."""
        try:
            return commit_works(self.connection, self.place, works)
        except sqlite3.Error as error:
            self._last_error = error
            return None
        finally:
            self.roll_back()

    def commit(self) -> None:
        """Commit; raises what SQLite raises, and then the transaction is over too."""
        try:
            self.connection.execute("commit")
        finally:
            self.roll_back()

    def roll_back(self) -> None:
        """End the transaction, if there is one, and let the next writer come."""
        try:
            if self._connection is not None:
                roll_back(self._connection)
        finally:
            self.leave()

    def leave(self) -> None:
        """Let the next writer come."""
        if self._turnstile is not None:
            self._turnstile.leave()

    def busy(self, patience: float) -> StoreBusy:
        """What to tell whoever has waited for ``patience`` seconds."""
        return store_busy(self._last_error, self.place.database, patience)

    def others_committed(self) -> bool:
        """True if another connection has committed since it was asked last."""
        try:
            before, self._version = self._version, self._data_version()
        except sqlite3.Error:  # A lock in the way: the next look will see it.
            return False
        return before != self._version

    def interrupt(self) -> None:
        """End the statement that runs, from any thread."""
        if self._connection is not None:
            self._connection.interrupt()

    def interrupt_held(self) -> None:
        """Nothing: SQLite asks by itself (``end_statements_if``)."""

    def close(self) -> None:
        """Close the connection, rolling back what is open, and the lock files."""
        try:
            self.roll_back()
        finally:
            if self._turnstile is not None:
                self._turnstile.close()
            if self._connection is not None:
                self._connection.close()

    def _data_version(self) -> int:
        version: int = self.connection.execute("pragma data_version").fetchone()[0]
        return version

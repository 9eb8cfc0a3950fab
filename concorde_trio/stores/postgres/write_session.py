"""One writer of a PostgreSQL queue: its connection, its transactions, and what became of a commit it had no answer to.

The law: a transaction carries a number, which it writes into this writer's own row. If the connection is lost while it
commits, the row says on the next connection whether it was written, so nothing is done twice and nothing is lost. The
row of a worker is removed by whoever takes the queue from it; from then on it writes nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from outcome import Error, Outcome, Value
from psycopg.pq import TransactionStatus

from concorde_trio.errors import LeaseLost, StoreBusy, StoreError, TransactionOver
from concorde_trio.stores.mismatch import RowMismatch, doubled
from concorde_trio.stores.postgres.connection import LOCK_TIMEOUT, connect, migrate, up_to_date
from concorde_trio.stores.postgres.pg_errors import gone, passes, store_busy, store_error
from concorde_trio.stores.postgres.pg_sql import Connection, PostgresReads, PostgresWrites
from concorde_trio.stores.postgres.place import Place
from concorde_trio.stores.postgres.severing import cancel_statement, sever
from concorde_trio.stores.works import Apply, Work, wakes, write

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two tries to connect."""


class PostgresWriteSession:
    """Open with ``try_open``, then ``try_begin`` and one of ``commit_works``, ``commit``, ``roll_back``; then ``close``.

    ``writer``: hexadecimal, its own. ``origin``: what its notifications say of where they come from. ``unknown_for``: seconds
    that it tries to find out what became of a commit, before that is an error.
    """

    next_in_line = False

    def __init__(self, place: Place, writer: str, origin: Callable[[], str], unknown_for: float) -> None:
        self.place = place
        self.writer = writer
        self.owns = False
        self._origin = origin
        self._unknown_for = unknown_for
        self._connection: Connection | None = None
        self._ready = False
        self._commits = 0
        self._not_before = 0.0
        self._pause = FIRST_PAUSE
        self._last_error: BaseException | None = None
        self._fenced: StoreError | None = None
        self._closing = False
        self._held = self._held_begun = False
        self._canceller: threading.Thread | None = None
        self._cancelling = threading.Lock()
        self._guard = threading.Lock()

    # --- what the writer's thread asks ----------------------------------------------------------------------

    @property
    def name(self) -> str:
        """How errors call the database."""
        return self.place.name

    @property
    def connection(self) -> Connection:
        """The connection of a hold, in its transaction; the user's names are found as in a session of their own."""
        self._join_canceller()
        assert self._connection is not None
        if self._held and not self._held_begun:
            self._held_begun = True
            self._connection.execute("set local search_path to default")
        return self._connection

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open, whether or not a statement in it has failed."""
        return self._status() in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    def end_statements_if(self, unwanted: Callable[[], bool] | None) -> None:
        """A hold begins, or ends with None. The server does not ask; ``interrupt_held`` tells it."""
        self._held, self._held_begun = unwanted is not None, False

    def interrupt_held(self) -> None:
        """End the statement of a hold that runs."""
        with self._cancelling:
            connection = self._connection
            if connection is not None and self._canceller is None:
                self._canceller = threading.Thread(target=cancel_statement, args=(connection,), daemon=True)
                self._canceller.start()

    def try_open(self) -> bool:
        """True once it is connected and the schema up to date; False if it must be tried again."""
        if time.monotonic() < self._not_before:
            return False
        try:
            connection = self._connected()
            if not self._ready:
                if not up_to_date(connection, self.place):
                    migrate(connection, self.place)
                self._ready = True
        except psycopg.Error as error:
            self._trouble(error)
            return False
        self._well()
        return True

    def try_begin(self) -> bool:
        """True once a transaction has begun. StoreError once another worker has taken the queue."""
        self._check_fence()
        if time.monotonic() < self._not_before:
            return False
        try:
            self._begin(self._connected())
        except psycopg.Error as error:
            self._trouble(error)
            return False
        self._well()
        return True

    def commit_works(self, works: Sequence[Work]) -> list[Outcome[Any]] | None:
        """Write them in the transaction that has begun, and commit; None if it must be begun and tried again."""
        wake = any(wakes(work) for work in works)
        try:
            results = self._written(works)
            return results if self._committed(wake) else None
        except psycopg.Error as error:
            if passes(error):
                self._trouble(error)
                return None
            return [self._refused(error) for _ in works]
        finally:
            self.roll_back()

    def commit(self) -> None:
        """Commit a hold. TransactionOver if it cannot be, and then nothing of it is stored."""
        self._join_canceller()
        try:
            if self._status() is TransactionStatus.INERROR:
                raise TransactionOver("a statement of this transaction failed, so all of it was rolled back")
            try:
                written = self._committed(wake=False)
            except psycopg.Error as error:
                raise store_error(error, self.place) from error
            if not written:
                raise StoreBusy(f"the connection to {self.name} was lost before the commit, and nothing was stored")
        finally:
            self.roll_back()

    def roll_back(self) -> None:
        """End the transaction, if there is one."""
        self._join_canceller()
        connection = self._connection
        if connection is None:
            return
        try:
            if not connection.closed and connection.info.transaction_status is not TransactionStatus.IDLE:
                connection.execute("rollback")
        except psycopg.Error:
            self._drop()
        else:
            if connection.closed:
                self._drop()

    def busy(self, patience: float) -> StoreBusy:
        """What to tell whoever has waited for ``patience`` seconds."""
        return store_busy(self._last_error, self.place, patience)

    def others_committed(self) -> bool:
        """False: they tell of it themselves."""
        return False

    def interrupt(self) -> None:
        """The store is to be closed: cut the connection, and do not wait to find out what became of a commit."""
        self._closing = True
        self._sever()

    def fence(self, error: StoreError) -> None:
        """Nothing more is written: the queue is another worker's. From any thread."""
        self._fenced = error
        self._sever()

    def close(self) -> None:
        """Remove its own row, which nobody needs any more, and close the connection."""
        self.roll_back()
        connection = self._connection
        if connection is not None and not self._closing and self._commits:
            try:
                connection.execute(f"set synchronous_commit to off; delete from concorde_writers where {self._mine}")
            except psycopg.Error:
                pass  # It is only a row more, and old ones are removed by the next worker.
        self._drop()

    # --- inside ---------------------------------------------------------------------------------------------

    @property
    def _mine(self) -> str:
        return f"writer = '{self.writer}'"

    def _status(self) -> TransactionStatus:
        connection = self._connection
        return TransactionStatus.UNKNOWN if connection is None else connection.info.transaction_status

    def _check_fence(self) -> None:
        if self._fenced is not None:
            raise type(self._fenced)(str(self._fenced)) from self._fenced

    def _connected(self) -> Connection:
        if self._connection is not None and self._connection.closed:
            self._drop()
        if self._connection is None:
            try:
                self._connection = connect(self.place, f"concorde-trio writer {self.writer[:12]}")
            except psycopg.Error as error:
                if not passes(error):
                    raise store_error(error, self.place) from error
                raise
        return self._connection

    def _begin(self, connection: Connection) -> None:
        """Begin, and write the number of this transaction, in one message to the server."""
        number = self._commits + 1
        if self.owns:
            row = f"update concorde_writers set commits = {number}, used_at = now() where {self._mine} and owns"
        else:
            row = (
                f"insert into concorde_writers (writer, commits) values ('{self.writer}', {number}) "
                f"on conflict (writer) do update set commits = {number}, used_at = now()"
            )
        cursor = connection.execute(f"begin; {row}")
        cursor.nextset()
        self._commits = number
        if cursor.rowcount != 1:
            self.roll_back()
            self._fenced = LeaseLost(
                f"the queue in {self.name} was taken by another worker; this one writes nothing any more"
            )
            self._check_fence()

    def _written(self, works: Sequence[Work]) -> list[Outcome[Any]]:
        """What each work gave. If one cannot be written, all are done again one by one, so that it fails alone."""
        assert self._connection is not None
        database = PostgresWrites(self._connection, self.place.schema)
        try:
            return [Value(result) for result in write(database, works)]
        except Exception as error:
            if passes(error) and not (isinstance(error, psycopg.errors.LockNotAvailable) and len(works) > 1):
                raise
        database.execute("rollback")
        self._begin(self._connection)
        return [self._alone(database, work) for work in works]

    def _alone(self, database: PostgresWrites, work: Work) -> Outcome[Any]:
        database.execute("savepoint one")
        try:
            result = write(database, [work])[0]
        except Exception as error:
            locked = isinstance(error, psycopg.errors.LockNotAvailable)
            if not locked and passes(error):
                raise
            database.execute("rollback to savepoint one")
            refused = self._refused(self._explained(database, work, error))
            database.execute("release savepoint one")
            return refused
        database.execute("release savepoint one")
        return Value(result)

    def _explained(self, database: PostgresReads, work: Work, error: Exception) -> Exception:
        """The error with the name of the row that it is about, where that can be found."""
        if isinstance(error, RowMismatch):
            return error.explain(database)
        if isinstance(error, psycopg.errors.UniqueViolation) and isinstance(work, Apply):
            named = doubled(database, work.plan)
            if named is not None:
                named.__cause__ = error
                return named
        return error

    def _refused(self, error: BaseException) -> Outcome[Any]:
        if isinstance(error, psycopg.errors.LockNotAvailable):
            refused: StoreError = store_busy(error, self.place, LOCK_TIMEOUT)
        elif isinstance(error, psycopg.Error | UnicodeError | OverflowError):
            refused = store_error(error, self.place)
        else:
            return Error(error)
        refused.__cause__ = error
        return Error(refused)

    def _committed(self, wake: bool) -> bool:
        """Commit; False if nothing was written after all. StoreError if that cannot be found out."""
        assert self._connection is not None
        told = f"select pg_notify('{self.place.channel}', '{self._origin()}'); " if wake else ""
        try:
            self._connection.execute(f"{told}commit")
            return True
        except psycopg.Error as error:
            if not gone(error, self._connection):
                raise
            self._last_error = error
        return self._find_out()

    def _find_out(self) -> bool:
        """Whether the transaction whose commit had no answer was written: its number is in this writer's row, or not."""
        self._drop()
        until = time.monotonic() + self._unknown_for
        pause = FIRST_PAUSE
        while self._fenced is None and not self._closing and time.monotonic() < until:
            try:
                return self._number_written()
            except psycopg.Error as error:
                self._last_error = error
                self._drop()
            time.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
        raise StoreError(
            f"the connection to {self.name} was lost while it committed, and whether that was written is not known "
            f"({self._last_error}); look into the database, or do it again with a key, so that it is stored once"
        ) from self._last_error

    def _number_written(self) -> bool:
        """Waits for a transaction of the lost connection that the server has not ended yet."""
        connection = self._connected()
        if not self.owns:
            connection.execute(
                f"insert into concorde_writers (writer, commits) values ('{self.writer}', 0) on conflict do nothing"
            )
        found = connection.execute(
            f"begin; select commits from concorde_writers where {self._mine} for update; rollback"
        )
        found.nextset()
        rows = found.fetchall()
        if not rows:
            raise LeaseLost(
                f"the connection to {self.name} was lost while it committed, and another worker took the queue; "
                "whether that was written is not known"
            )
        return bool(rows[0][0] == self._commits)

    def _trouble(self, error: psycopg.Error) -> None:
        """Something passes: keep the connection if it is good, and wait a little longer each time."""
        self._last_error = error
        if not passes(error):
            self.roll_back()
            raise store_error(error, self.place) from error
        if gone(error, self._connection):
            self._drop()
        else:
            self.roll_back()
        self._not_before = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def _well(self) -> None:
        self._not_before, self._pause = 0.0, FIRST_PAUSE
        self._last_error = None

    def _drop(self) -> None:
        with self._guard:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _sever(self) -> None:
        with self._guard:
            if self._connection is not None:
                sever(self._connection)

    def _join_canceller(self) -> None:
        """A request to cancel must not meet the statement after the one that it was meant for."""
        with self._cancelling:
            canceller, self._canceller = self._canceller, None
        if canceller is not None:
            canceller.join()


def origin_of(store: str) -> Callable[[], str]:
    """What notifications of a store say of where they come from: a fork of its process is somebody else."""
    return lambda: f"{store} {os.getpid()}"

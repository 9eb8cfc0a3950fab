"""A transaction of the user's own in the queue's database: their tables and the signals, together or not at all.

Two kinds: ``PostgresTransaction`` is the store's, on its writer's connection; ``JoinedTransaction`` is one that the user
has begun, on a psycopg connection of theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from concorde_trio.errors import TransactionOver, UsageError
from concorde_trio.records import NewSignal
from concorde_trio.stores.hold import Held
from concorde_trio.stores.postgres.pg_errors import store_error
from concorde_trio.stores.postgres.pg_sql import Connection, PostgresWrites
from concorde_trio.stores.postgres.place import Place
from concorde_trio.stores.postgres.severing import cancel_statement, in_thread
from concorde_trio.stores.transactions import first_word
from concorde_trio.stores.works import insert_signals

T = TypeVar("T")

_REFUSED = frozenset({"begin", "start", "commit", "end", "abort", "prepare", "listen", "unlisten", "discard", "reset"})
_SET_FOR_ITSELF = re.compile(r"\bset\s+(local|constraints|transaction)\b", re.IGNORECASE)


def emit_on(connection: Connection, place: Place, signals: Sequence[NewSignal], origin: str) -> list[str]:
    """Store signals in the transaction of ``connection``, whose commit will tell of them; their ids. StoreError if refused."""
    try:
        ids = insert_signals(PostgresWrites(connection, place.schema), signals)
        if signals:
            connection.execute("select pg_notify(%s, %s)", (place.channel, origin))
    except (psycopg.Error, UnicodeError) as error:
        raise store_error(error, place) from error
    return ids


class PostgresTransaction:
    """What ``PostgresStore.transaction()`` gives: SQL of your own, and ``tx=`` for emits (SIG-2)."""

    def __init__(self, store: object, place: Place, held: Held, origin: Callable[[], str]) -> None:
        self.store = store
        self._place = place
        self._held = held
        self._origin = origin

    @property
    def over(self) -> bool:
        """True once it committed, rolled back, or ran out of time."""
        return self._held.over

    async def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> list[tuple[Any, ...]]:
        """Run one statement, with ``%s`` for parameters, and give its rows (an empty list when it has none).

        Errors of the statement are psycopg's own. As always in PostgreSQL, everything before it is lost then, unless
        there was a ``savepoint``. UsageError for a statement that would end the transaction; TransactionOver once it is over.
        """
        word = first_word(sql)
        if word == "set" and not _SET_FOR_ITSELF.search(sql):
            raise UsageError("a SET would outlast the transaction, on the queue's own connection; use SET LOCAL")
        if word in _REFUSED:
            raise UsageError(
                f"{word.upper()} cannot be run in a transaction of the store's: it commits when its `async with` block "
                "is left, and rolls back on an exception; this connection is the queue's own"
            )
        return await self.run(lambda connection: _rows(connection, sql, parameters))

    async def run(self, call: Callable[[Connection], T]) -> T:
        """What ``call(connection)`` gives, in the writer's thread: for cursors, COPY and all else that psycopg has.

        It must not commit, roll back, close the connection or keep it.
        """
        result: T = await self._held.call(call)
        return result

    async def emit(self, signals: Sequence[NewSignal]) -> list[str]:
        """Store signals in it; their ids."""
        ids: list[str] = await self._held.call(
            lambda connection: emit_on(connection, self._place, signals, self._origin())
        )
        self._held.wake_on_commit()
        return ids

    async def end(self, *, commit: bool) -> None:
        """Commit or roll back; TransactionOver if it is over already."""
        try:
            await self._held.end(commit=commit)
        except TransactionOver:
            if commit:
                raise


class JoinedTransaction:
    """A transaction that you have begun on your own psycopg connection to the same database: ``store.join(connection)``.

    Give it as ``tx=`` where you run Trio, or to ``emit_sync`` in place of the store where you do not. The signals are
    there once *you* commit, and never if you roll back (SIG-2). The connection is yours: do not use it while an ``await``
    on this object is under way.
    """

    def __init__(self, place: Place, connection: Connection) -> None:
        if not isinstance(connection, psycopg.Connection):
            raise UsageError(f"join takes a psycopg.Connection, not {type(connection).__name__}")
        self.place = place
        self._connection = connection

    async def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> list[tuple[Any, ...]]:
        """Run one statement in a thread and give its rows."""
        return await self._in_thread(lambda: _rows(self._connection, sql, parameters))

    async def emit(self, signals: Sequence[NewSignal]) -> list[str]:
        """Store signals in it; their ids."""
        return await self._in_thread(lambda: self.emit_sync(signals))

    def emit_sync(self, signals: Sequence[NewSignal]) -> list[str]:
        """The same from code that does not run Trio (SIG-8)."""
        if self._connection.autocommit and self._connection.info.transaction_status is TransactionStatus.IDLE:
            raise UsageError(
                "this connection is in autocommit mode and in no transaction, so the signal would not be stored together "
                "with your rows; begin one: with connection.transaction(): ..."
            )
        return emit_on(self._connection, self.place, signals, "joined")

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await in_thread(call, lambda: cancel_statement(self._connection))


def _rows(connection: Connection, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    cursor = connection.execute(sql, parameters or None)
    return cursor.fetchall() if cursor.description is not None else []

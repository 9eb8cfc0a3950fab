"""A transaction of the user's own in the queue's database: their tables and the signals, together or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from concorde_trio.errors import TransactionOver, UsageError
from concorde_trio.records import NewSignal
from concorde_trio.stores.hold import Held
from concorde_trio.stores.sqlite_errors import store_error
from concorde_trio.stores.sqlite_place import Place
from concorde_trio.stores.sqlite_sql import SqliteWrites
from concorde_trio.stores.transactions import first_word
from concorde_trio.stores.works import insert_signals

_REFUSED = frozenset(
    {"begin", "commit", "end", "rollback", "savepoint", "release", "pragma", "attach", "detach", "vacuum"}
)


class SqliteTransaction:
    """What ``SqliteStore.transaction()`` gives: SQL of your own, and ``tx=`` for emits (SIG-2)."""

    def __init__(self, store: object, place: Place, held: Held) -> None:
        self.store = store
        self._place = place
        self._held = held

    @property
    def over(self) -> bool:
        """True once it committed, rolled back, or ran out of time."""
        return self._held.over

    async def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> list[tuple[Any, ...]]:
        """Run one statement and give its rows. Errors of the statement are sqlite3's own, and leave the transaction open.

        UsageError for statements that would end the transaction or change the connection (commit, pragma, attach,
        …); TransactionOver once it is over.
        """
        word = first_word(sql)
        if word in _REFUSED:
            raise UsageError(
                f"{word.upper()} cannot be run in a transaction of the store's: it commits when its `async with` block "
                "is left, and rolls back on an exception; this connection is the queue's own"
            )

        def run(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
            return connection.execute(sql, parameters).fetchall()

        rows: list[tuple[Any, ...]] = await self._held.call(run)
        return rows

    async def emit(self, signals: Sequence[NewSignal]) -> list[str]:
        """Store signals in it; their ids."""

        def run(connection: sqlite3.Connection) -> list[str]:
            try:
                return insert_signals(SqliteWrites(connection), signals)
            except (sqlite3.Error, UnicodeError) as error:
                raise store_error(error, self._place.database) from error

        ids: list[str] = await self._held.call(run)
        self._held.wake_on_commit()
        return ids

    async def end(self, *, commit: bool) -> None:
        """Commit or roll back; TransactionOver if it is over already."""
        try:
            await self._held.end(commit=commit)
        except TransactionOver:
            if commit:
                raise
        except sqlite3.Error as error:
            raise store_error(error, self._place.database) from error

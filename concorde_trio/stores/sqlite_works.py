"""A group of works in one transaction of SQLite's.

The law: if one of them cannot be written, all are done again one by one, each in a savepoint, so that only the bad one
fails (REC-5).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from outcome import Error, Outcome, Value

from concorde_trio.stores.mismatch import RowMismatch, doubled
from concorde_trio.stores.sqlite_errors import passes, store_error
from concorde_trio.stores.sqlite_place import Place
from concorde_trio.stores.sqlite_sql import SqliteWrites
from concorde_trio.stores.works import Apply, Work, write


def commit_works(connection: sqlite3.Connection, place: Place, works: Sequence[Work]) -> list[Outcome[Any]]:
    """Write all works in the transaction that is begun, and commit it; what became of each.

    Raises only what passes by itself; then the transaction is rolled back and nothing of it is written.
    """
    try:
        try:
            results: list[Outcome[Any]] = [Value(result) for result in write(SqliteWrites(connection), works)]
        except Exception as error:
            if passes(error):
                raise
            roll_back(connection)
            connection.execute("begin immediate")
            results = [_alone(connection, place, work) for work in works]
        connection.execute("commit")
    except sqlite3.Error as error:
        roll_back(connection)
        if passes(error):
            raise
        return [_refused(error, place) for _ in works]
    return results


def roll_back(connection: sqlite3.Connection) -> None:
    """End the transaction, if an error has not ended it already."""
    if connection.in_transaction:
        connection.execute("rollback")


def _alone(connection: sqlite3.Connection, place: Place, work: Work) -> Outcome[Any]:
    connection.execute("savepoint one")
    try:
        result = write(SqliteWrites(connection), [work])[0]
    except Exception as error:
        if passes(error) or not connection.in_transaction:
            raise  # The works before this one went with the transaction.
        connection.execute("rollback to one")
        refused = _refused(_explained(connection, work, error), place)
        connection.execute("release one")
        return refused
    connection.execute("release one")
    return Value(result)


def _explained(connection: sqlite3.Connection, work: Work, error: Exception) -> Exception:
    """The error with the name of the row that it is about, where that can be found."""
    if isinstance(error, RowMismatch):
        return error.explain(connection)
    if isinstance(error, sqlite3.IntegrityError) and isinstance(work, Apply):
        named = doubled(connection, work.plan)
        if named is not None:
            named.__cause__ = error
            return named
    return error


def _refused(error: BaseException, place: Place) -> Outcome[Any]:
    if not isinstance(error, sqlite3.Error | UnicodeError | OverflowError):
        return Error(error)
    refused = store_error(error, place.database)
    refused.__cause__ = error
    return Error(refused)

"""Who reads a SQLite queue: short queries in the Trio thread, long ones in another, each on its own connection.

The law: a reader never waits for a writer (the log is a write-ahead one), and sees each commit whole. A query that is
found by an index and gives few rows takes less time than the way to a thread and back; what can be long never
stands in the loop's way, and a cancellation ends it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

import trio

from concorde_trio.stores.pauses import pauses
from concorde_trio.stores.sqlite_connection import connect
from concorde_trio.stores.sqlite_errors import passes, store_busy, store_error
from concorde_trio.stores.sqlite_place import Place

T = TypeVar("T")
Query = Callable[[sqlite3.Connection], T]

STEPS = 50_000
"""Steps of SQLite's machine between two questions whether a long query is still wanted; about a millisecond."""


class Reader:
    """Two connections that cannot write. ``inline``: long queries stay in the Trio thread too."""

    def __init__(self, place: Place, patience: float, *, inline: bool) -> None:
        self._place = place
        self._patience = patience
        self._inline = inline
        self._short: sqlite3.Connection | None = None
        self._long: sqlite3.Connection | None = None
        self._one = trio.CapacityLimiter(1)

    def open(self) -> None:
        """Connect; the schema is there already."""
        self._short = connect(self._place, read_only=True)
        if not self._inline:
            self._long = connect(self._place, read_only=True)
            self._long.set_progress_handler(_cancelled, STEPS)

    def close(self) -> None:
        """Close both."""
        for connection in (self._short, self._long):
            if connection is not None:
                connection.close()

    async def short(self, query: Query[T]) -> T:
        """The result of a query that takes tens of microseconds."""
        assert self._short is not None
        await trio.lowlevel.checkpoint()
        until = trio.current_time() + self._patience
        for pause in pauses():
            try:
                return query(self._short)
            except sqlite3.Error as error:
                self._check(error, until)
                await trio.sleep(pause)
        raise AssertionError("pauses() has no end")

    async def long(self, query: Query[T]) -> T:
        """The result of a query that can take longer."""
        if self._long is None:
            return await self.short(query)
        until = trio.current_time() + self._patience
        for pause in pauses():
            try:
                return await trio.to_thread.run_sync(query, self._long, limiter=self._one)
            except sqlite3.Error as error:
                await trio.lowlevel.checkpoint_if_cancelled()
                self._check(error, until)
                await trio.sleep(pause)
        raise AssertionError("pauses() has no end")

    def _check(self, error: sqlite3.Error, until: float) -> None:
        if not passes(error):
            raise store_error(error, self._place.database) from error
        if trio.current_time() > until:
            raise store_busy(error, self._place.database, self._patience) from error


def _cancelled() -> int:
    try:
        trio.from_thread.check_cancelled()
    except trio.Cancelled:  # noqa: ASYNC103
        return 1  # noqa: ASYNC104  SQLite ends the query with an interruption; the task raises its own Cancelled.
    return 0

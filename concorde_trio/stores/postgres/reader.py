"""Who reads a PostgreSQL queue: a few connections that cannot write, each used by one thread at a time.

The law: a read is tried again when its connection is lost, up to a patience; a cancellation ends its statement on the
server. The connections are made when they are needed, and none of them is the listener's or the writer's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import psycopg
import trio

from concorde_trio.stores.pauses import pauses
from concorde_trio.stores.postgres.connection import connect
from concorde_trio.stores.postgres.pg_errors import gone, passes, store_busy, store_error
from concorde_trio.stores.postgres.pg_sql import Connection, PostgresReads
from concorde_trio.stores.postgres.place import Place
from concorde_trio.stores.postgres.severing import cancel_statement, in_thread

T = TypeVar("T")

READERS = 4
"""Connections at most."""


class PostgresReader:
    """Reads of one store. ``patience``: seconds that each is tried again."""

    def __init__(self, place: Place, patience: float) -> None:
        self._place = place
        self.patience = patience
        self._places = trio.Semaphore(READERS)
        self._idle: list[Connection] = []

    async def read(self, query: Callable[[PostgresReads], T]) -> T:
        """What ``query`` gives; StoreBusy if the database cannot be reached for longer than the patience."""
        until = trio.current_time() + self.patience
        for pause in pauses(longest=1.0):
            async with self._places:
                try:
                    return await self._once(query)
                except psycopg.Error as error:
                    if not passes(error):
                        raise store_error(error, self._place) from error
                    if trio.current_time() > until:
                        raise store_busy(error, self._place, self.patience) from error
            await trio.sleep(pause)
        raise AssertionError("pauses() has no end")

    async def _once(self, query: Callable[[PostgresReads], T]) -> T:
        connection = self._idle.pop() if self._idle else None
        held = [connection]

        def call() -> T:
            used = held[0] or connect(self._place, "concorde-trio reader", read_only=True)
            held[0] = used
            return query(PostgresReads(used))

        def end() -> None:
            if held[0] is not None:
                cancel_statement(held[0])

        try:
            result = await in_thread(call, end)
        except BaseException as error:
            if held[0] is not None:
                if gone(error, held[0]):
                    self.close()  # The server has gone away, and the idle ones with it.
                # A query that was cut off may stand inside its transaction.
                held[0].close()
            raise
        assert held[0] is not None
        self._idle.append(held[0])
        return result

    def close(self) -> None:
        """Close those that are idle."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

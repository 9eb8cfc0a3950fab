"""One connection that is asked now and then, from the Trio thread, and made again when it is lost.

The law: whoever asks is never left waiting: a cancellation cuts the connection. A fork does not keep it open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio

from concorde_trio.processes.fork_safety import forget_lock, keep_from_forks
from concorde_trio.stores.postgres.connection import connect
from concorde_trio.stores.postgres.pg_sql import Connection, PostgresReads
from concorde_trio.stores.postgres.place import Place
from concorde_trio.stores.postgres.severing import connected_in_thread, in_thread, sever

T = TypeVar("T")


class Line:
    """``name``: what the server lists it by."""

    def __init__(self, place: Place, name: str) -> None:
        self.name = name
        self._place = place
        self._connection: Connection | None = None
        self._descriptor: int | None = None
        self._asking = trio.Lock()

    async def ask(self, call: Callable[[PostgresReads], T]) -> T:
        """What ``call`` gives, in a thread, one call after another. Whatever it raises, the connection is closed."""
        async with self._asking:
            return await self._ask(call)

    async def _ask(self, call: Callable[[PostgresReads], T]) -> T:
        if self._connection is None:
            self._connection = await connected_in_thread(lambda: connect(self._place, self.name))
            # What it locks would be locked for as long as a forked child lives.
            self._descriptor = keep_from_forks(self._connection.pgconn.socket)
        connection = self._connection
        try:
            return await in_thread(lambda: call(PostgresReads(connection)), lambda: sever(connection))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close it; the next question makes another."""
        connection, self._connection = self._connection, None
        if self._descriptor is not None:
            forget_lock(self._descriptor)
            self._descriptor = None
        if connection is not None:
            connection.close()

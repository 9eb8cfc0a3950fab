"""Who hears of other processes' commits: a connection of its own that only listens (SIG-6).

The law: no query and no pool has this connection, so nothing can make it deaf. It is waited for in the Trio thread, by its
socket; when it is lost it is made again, and everyone is woken then, since something may have been missed.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import psycopg
import trio
from psycopg.pq import ConnStatus

from concorde_trio.stores.pauses import pauses
from concorde_trio.stores.postgres.beside import beside
from concorde_trio.stores.postgres.connection import connect
from concorde_trio.stores.postgres.pg_errors import passes, store_busy, store_error
from concorde_trio.stores.postgres.pg_sql import Connection
from concorde_trio.stores.postgres.place import Place
from concorde_trio.stores.postgres.severing import connected_in_thread, in_thread, sever

logger = logging.getLogger("concorde_trio.stores")

LOOK = 20.0
"""Seconds of silence after which the connection is asked whether it is still there."""


class Listener:
    """Listens on a channel of a queue's. ``heard`` is called with the payload of each notification, None after a gap."""

    def __init__(self, place: Place, channel: str, patience: float, heard: Callable[[str | None], None]) -> None:
        self._place = place
        self._channel = channel
        self._patience = patience
        self._heard = heard
        self._connection: Connection | None = None

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """While entered, commits are heard of; from the first moment on."""
        await self._connect(trio.current_time() + self._patience)
        try:
            async with beside(self._listen):
                yield
        finally:
            self._close()

    async def _connect(self, until: float) -> None:
        for pause in pauses(longest=1.0):
            try:
                self._connection = await connected_in_thread(self._listening_connection)
                return
            except psycopg.Error as error:
                if not passes(error):
                    raise store_error(error, self._place) from error
                if trio.current_time() > until:
                    raise store_busy(error, self._place, self._patience) from error
            await trio.sleep(pause)

    def _listening_connection(self) -> Connection:
        connection = connect(self._place, "concorde-trio listener")
        try:
            connection.execute(f'listen "{self._channel}"')
        except BaseException:
            connection.close()
            raise
        return connection

    async def _listen(self) -> None:
        while True:
            try:
                await self._hear()
            except psycopg.Error as error:
                logger.info(
                    "the connection that listens at %s was lost (%s); connecting again", self._place.name, error
                )
            self._close()
            await self._connect(float("inf"))
            self._heard(None)

    async def _hear(self) -> None:
        connection = self._connection
        assert connection is not None
        while True:
            pgconn = connection.pgconn
            pgconn.consume_input()
            while notification := pgconn.notifies():
                self._heard(notification.extra.decode())
            if pgconn.status != ConnStatus.OK:
                return
            with trio.move_on_after(LOOK) as silence:
                await trio.lowlevel.wait_readable(pgconn.socket)
            if silence.cancelled_caught:
                await in_thread(lambda: connection.execute("select 1"), lambda: sever(connection))
                self._heard(None)  # What came while that ran was taken with its answer.

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

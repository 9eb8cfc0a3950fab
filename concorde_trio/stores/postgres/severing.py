"""Ending what a thread waits for on a connection: a statement by the server's own cancel, a dead connection by its socket.

The law: a thread that waits for a server is never left behind. It is told to stop in one of these two ways, and is
waited for.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import psycopg
import trio
from outcome import Outcome

from concorde_trio.stores.postgres.pg_sql import Connection

logger = logging.getLogger("concorde_trio.stores")

T = TypeVar("T")

CANCEL_TIMEOUT = 5.0
"""Seconds that a request to cancel may take to reach the server."""


async def in_thread(call: Callable[[], T], end: Callable[[], None]) -> T:
    """The result of ``call`` in a thread. A cancellation runs ``end`` in another thread and waits for the call.

    What ``call`` raises because it was ended gives way to the Cancelled; what it gave all the same is given.
    """
    task = trio.lowlevel.current_task()
    token = trio.lowlevel.current_trio_token()

    def deliver(result: Outcome[T]) -> None:
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(trio.lowlevel.reschedule, task, result)

    def abort(_: object) -> trio.lowlevel.Abort:
        trio.lowlevel.start_thread_soon(end, lambda _: None)
        return trio.lowlevel.Abort.FAILED

    await trio.lowlevel.checkpoint_if_cancelled()
    trio.lowlevel.start_thread_soon(call, deliver)
    try:
        result: T = await trio.lowlevel.wait_task_rescheduled(abort)
    except Exception:
        await trio.lowlevel.checkpoint_if_cancelled()  # noqa: ASYNC120  A cancellation is why it failed.
        raise
    return result


async def connected_in_thread(connect: Callable[[], Connection]) -> Connection:
    """A connection made in a thread. A cancellation does not wait for it; what comes too late is closed."""
    made: list[Connection] = []
    unwanted = False
    lock = threading.Lock()

    def call() -> None:
        connection = connect()
        with lock:
            made.append(connection)
            if not unwanted:
                return
        connection.close()

    try:
        await trio.to_thread.run_sync(call, abandon_on_cancel=True)
    except BaseException:
        with lock:
            unwanted = True
        for connection in made:
            connection.close()
        raise
    return made[0]


def cancel_statement(connection: Connection) -> None:
    """Ask the server to end the statement that runs; if it cannot be asked, the connection is cut."""
    try:
        connection.cancel_safe(timeout=CANCEL_TIMEOUT)
    except psycopg.Error as error:
        logger.warning("a statement could not be cancelled (%s); its connection is cut", error)
        sever(connection)


def sever(connection: Connection) -> None:
    """Cut the connection under whoever waits on it, from any thread; that one gets an OperationalError."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.pgconn.socket)) as copy:
        copy.shutdown(socket.SHUT_RDWR)

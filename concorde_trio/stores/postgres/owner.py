"""Who serves a PostgreSQL queue: one worker at a time, by an advisory lock on a connection of its own (REC-1).

The law: the server lets the lock go when the connection is lost, so a worker goes on without it for a lease at most: it
takes the lock again within that time, or it stops its runs. Whoever finds the lock free, though the last worker did not say
that it left and may live, waits for that long and for its runs to be stopped. So no two run at once. What a worker writes
that has lost the queue changes no row (``write_session``).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import psycopg
import trio

from concorde_trio.errors import QueueTaken, StoreError
from concorde_trio.processes.fork_safety import forget_lock, keep_from_forks
from concorde_trio.stores.pauses import pauses
from concorde_trio.stores.postgres.beside import beside
from concorde_trio.stores.postgres.connection import connect
from concorde_trio.stores.postgres.holder import Holder, alive_here, read_holder, this_holder
from concorde_trio.stores.postgres.pg_errors import passes, store_busy, store_error
from concorde_trio.stores.postgres.pg_sql import Connection, PostgresReads
from concorde_trio.stores.postgres.place import Place
from concorde_trio.stores.postgres.severing import connected_in_thread, in_thread, sever
from concorde_trio.stores.postgres.write_session import PostgresWriteSession

logger = logging.getLogger("concorde_trio.stores")

T = TypeVar("T")

POLL = 0.1
"""Seconds between two looks at a lock that is held."""

GRACE = 15.0
"""Seconds that the runs of a worker which lost the queue may take to stop, after its lease (its stop_grace is 10)."""


class Owner:
    """One worker's hold on a queue. ``lease``: seconds that it goes on without its lock."""

    def __init__(self, place: Place, session: PostgresWriteSession, lease: float, patience: float) -> None:
        self._place = place
        self._session = session
        self._lease = lease
        self._patience = patience
        self._holder = this_holder(session.writer, lease)
        self._connection: Connection | None = None
        self._descriptor: int | None = None
        self._epoch = 0
        self._seen = 0.0

    @asynccontextmanager
    async def owning(self, *, wait: bool, waiting: Callable[[str], None] | None) -> AsyncIterator[None]:
        """Be the one worker of the queue; QueueTaken if there is one, unless ``wait``.

        StoreError, with the block cancelled, once the queue is lost.
        """
        try:
            await self._take(wait, waiting)
            alive_here(self._session.writer, True)
            self._session.owns = True
            try:
                async with beside(self._keep):
                    yield
            finally:
                self._session.owns = False
                await self._leave()  # noqa: ASYNC102  Shielded and bounded inside.
                alive_here(self._session.writer, False)
        finally:
            self._close()

    # --- taking it ------------------------------------------------------------------------------------------

    async def _take(self, wait: bool, waiting: Callable[[str], None] | None) -> None:
        told: list[str] = []
        free_since: float | None = None

        def tell(sentence: str) -> None:
            if waiting is not None and not told:
                waiting(sentence)
                told.append(sentence)

        until = trio.current_time() + self._patience
        for pause in pauses(longest=1.0):
            try:
                while True:
                    await self._connect()
                    free, last = await self._on_lock(self._try_lock)
                    until = trio.current_time() + self._patience
                    if not free:
                        free_since = None
                        sentence = (
                            f"the queue {self._place.name} is served by another worker, {last or 'just starting'}"
                        )
                        if not wait:
                            raise QueueTaken(
                                f"{sentence}; stop it, or wait for it (serve --wait, or wait_for_queue=True)"
                            )
                        tell(f"{sentence}; waiting for it to stop")
                    else:
                        if free_since is None:
                            free_since = trio.current_time()
                        left = 0.0 if last is None else last.lease + GRACE - (trio.current_time() - free_since)
                        if last is None or last.known_dead() or left <= 0:
                            await self._on_lock(self._enter)
                            self._seen = trio.current_time()
                            return
                        # It may only have lost its connection: it can have the lock back meanwhile.
                        await self._on_lock(self._unlock)
                        tell(
                            f"the last worker of the queue {self._place.name}, {last}, did not say that it stopped; "
                            f"waiting {left:.0f} s, until its runs have been stopped"
                        )
                    await trio.sleep(POLL)
            except psycopg.Error as error:
                self._close()
                if not passes(error):
                    raise store_error(error, self._place) from error
                if trio.current_time() > until:
                    raise store_busy(error, self._place, self._patience) from error
            await trio.sleep(pause)

    def _try_lock(self, database: PostgresReads) -> tuple[bool, Holder | None]:
        free: bool = database.execute("select pg_try_advisory_lock(?)", (self._place.worker_key,)).fetchall()[0][0]
        owner = database.execute("select owner from concorde_meta").fetchall()[0][0]
        return free, read_holder(owner)

    def _unlock(self, database: PostgresReads) -> None:
        database.execute("select pg_advisory_unlock(?)", (self._place.worker_key,))

    def _enter(self, database: PostgresReads) -> None:
        """Write down who it is, in a new epoch; what an earlier worker still writes finds its row gone."""
        with database.connection.transaction():
            self._epoch = database.execute(
                "update concorde_meta set epoch = epoch + 1, owner = ? returning epoch", (self._holder.as_text(),)
            ).fetchall()[0][0]
            # Waits for a transaction of its that is under way.
            database.execute("delete from concorde_writers where owns or used_at < now() - interval '30 days'")
            database.execute(
                "insert into concorde_writers (writer, commits, owns) values (?, 0, true) "
                "on conflict (writer) do update set owns = true",
                (self._session.writer,),
            )

    # --- keeping it -----------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Return never: StoreError once the queue is lost."""
        while True:
            try:
                await self._watch()
            except (psycopg.Error, trio.TooSlowError) as error:
                logger.warning("the connection that holds the queue %s was lost (%s)", self._place.name, error)
            self._close()
            try:
                with trio.fail_at(self._seen + self._lease):
                    await self._take_again()
            except trio.TooSlowError:
                raise self._lost(f"the database could not be reached for {self._lease:g} s") from None
            logger.warning("the queue %s is held again", self._place.name)

    async def _watch(self) -> None:
        """Ask now and then whether the lock is still held; return when the connection ends."""
        while True:
            connection = self._connection
            assert connection is not None
            with trio.move_on_after(self._lease / 4):
                await trio.lowlevel.wait_readable(connection.pgconn.socket)
            asked = trio.current_time()
            with trio.fail_after(self._lease / 4):
                await self._on_lock(lambda database: database.execute("select 1"))
            self._seen = asked

    async def _take_again(self) -> None:
        for pause in pauses(longest=0.5):
            asked = trio.current_time()
            try:
                await self._connect()
                if await self._on_lock(self._resume):
                    self._seen = asked
                    return
            except psycopg.Error as error:
                logger.debug("the queue %s cannot be held again yet: %s", self._place.name, error)
                self._close()
            await trio.sleep(pause)

    def _resume(self, database: PostgresReads) -> bool:
        """True if the lock is held again; StoreError if somebody else had the queue meanwhile."""
        epoch = database.execute("select epoch from concorde_meta").fetchall()[0][0]
        if epoch != self._epoch:
            raise self._lost("another worker has taken it")
        if database.execute("select pg_try_advisory_lock(?)", (self._place.worker_key,)).fetchall()[0][0]:
            if database.execute("select epoch from concorde_meta").fetchall()[0][0] == self._epoch:
                return True
            raise self._lost("another worker has taken it")
        # The server may not have noticed yet that the connection which had it is gone.
        database.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = ? and pid <> pg_backend_pid()",
            (self._application,),
        )
        return False

    def _lost(self, why: str) -> StoreError:
        lost = StoreError(f"this worker lost the queue {self._place.name}: {why}; its runs were stopped")
        self._session.fence(lost)
        return lost

    async def _leave(self) -> None:
        """Say that it has left, if the database can be reached soon."""
        with trio.move_on_after(5, shield=True):
            try:
                if self._connection is not None:
                    await self._on_lock(self._say_left)
            except psycopg.Error as error:
                logger.info("could not say that the queue %s was left: %s", self._place.name, error)

    def _say_left(self, database: PostgresReads) -> None:
        with database.connection.transaction():
            database.execute("update concorde_meta set owner = null where epoch = ?", (self._epoch,))
            database.execute("update concorde_writers set owns = false where writer = ?", (self._session.writer,))

    # --- its connection -------------------------------------------------------------------------------------

    @property
    def _application(self) -> str:
        return f"concorde-trio worker {self._session.writer[:12]}"

    async def _connect(self) -> None:
        if self._connection is None:
            self._connection = await connected_in_thread(lambda: connect(self._place, self._application))
            # A forked child would hold the lock for as long as it lives.
            self._descriptor = keep_from_forks(self._connection.pgconn.socket)

    async def _on_lock(self, call: Callable[[PostgresReads], T]) -> T:
        connection = self._connection
        assert connection is not None
        return await in_thread(lambda: call(PostgresReads(connection)), lambda: sever(connection))

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if self._descriptor is not None:
            forget_lock(self._descriptor)
            self._descriptor = None
        if connection is not None:
            connection.close()

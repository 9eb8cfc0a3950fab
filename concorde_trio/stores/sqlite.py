"""A queue in a SQLite file: durable, one worker, any number of processes that emit into it.

The law: everything that is written goes through one writer, in commits that are on the disk when they return
(synchronous FULL); a task that waits for a commit is not cancelled away from it.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import trio

from concorde_trio.errors import StoreError, UsageError
from concorde_trio.records import NewSignal, Request
from concorde_trio.signals.store import Transaction
from concorde_trio.stores import queries, transactions
from concorde_trio.stores.change_checks import check_payloads
from concorde_trio.stores.pauses import pauses
from concorde_trio.stores.sql_store import SqlStore
from concorde_trio.stores.sqlite_inline import InlineWriter
from concorde_trio.stores.sqlite_owner import own
from concorde_trio.stores.sqlite_place import place_of
from concorde_trio.stores.sqlite_reader import Query, Reader
from concorde_trio.stores.sqlite_sql import statement
from concorde_trio.stores.sqlite_transaction import SqliteTransaction
from concorde_trio.stores.sqlite_write_session import WriteSession
from concorde_trio.stores.thread_writer import ThreadWriter
from concorde_trio.stores.works import Emit

T = TypeVar("T")


class SqliteStore(SqlStore):
    """A queue in the file ``path``; its folder must exist.

    ``busy_timeout``: seconds that a write waits while others hold the database, before StoreBusy (a worker's own
    writes: 20 times as long). ``max_payload``: bytes of a payload's JSON text that this store takes, None for what the
    caller takes. ``inline``: no threads, for tests under a virtual clock; commits of other processes are then found by
    the worker's sweep only.
    """

    _no_limit = -1

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        inline: bool = False,
        busy_timeout: float = 30.0,
        max_payload: int | None = None,
    ) -> None:
        self._place = place_of(path)
        self._inline = inline
        self._patience = busy_timeout
        self._max_payload = max_payload
        self._wakes: list[Callable[[], None]] = []
        self._identity: tuple[int, int] | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._writer: ThreadWriter | InlineWriter | None = None
        self._reader: Reader | None = None
        self._queue: str | None = None

    @property
    def path(self) -> Path:
        """The database file, absolute and with symbolic links followed."""
        return self._place.database

    @property
    def queue(self) -> str:
        """A name of this queue that survives restarts, known once it was opened."""
        if self._queue is None:
            raise UsageError("the name of a SQLite queue stands in its file; open the store first")
        return self._queue

    @property
    def programs_lock(self) -> Path | None:
        """The file of REC-6."""
        return self._place.programs_lock

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Connect and bring the schema up to date; SchemaTooNew, or a StoreError that says what is wrong."""
        if self._writer is not None:
            raise UsageError(f"the store of {self._place.database} is open already; open it once and share it")
        make = InlineWriter if self._inline else ThreadWriter
        self._writer = make(WriteSession(self._place), self._patience, self._wake)
        reader = Reader(self._place, self._patience, inline=self._inline)
        try:
            await self._writer.open()
            reader.open()
            self._queue = await reader.short(queries.queue)
            self._identity = self._place.identity()
            self._reader, self._token = reader, trio.lowlevel.current_trio_token()
            yield
        finally:
            writer, self._writer, self._reader, self._token = self._writer, None, None, None
            reader.close()
            await writer.close()  # noqa: ASYNC102  Shielded and bounded inside.

    @asynccontextmanager
    async def own(self, *, wait: bool = False, waiting: Callable[[str], None] | None = None) -> AsyncIterator[None]:
        """Be this queue's one worker (REC-1), once programs of an earlier one are dead (REC-6)."""
        self._opened()
        async with own(self._place, wait=wait, waiting=waiting):
            yield

    # --- writes ---------------------------------------------------------------------------------------------

    async def emit(self, signals: Sequence[NewSignal], *, tx: Transaction | None = None) -> list[str]:
        """Store signals in the order given; the ids, committed when ``tx`` is None (SIG-1 to SIG-3, SIG-7)."""
        writer, _ = self._opened()
        check_payloads(signals, self._max_payload)
        if tx is not None:
            if not isinstance(tx, SqliteTransaction) or tx.store is not self:
                raise UsageError(f"tx must come from this store's transaction(), not {tx!r:.80}")
            return await tx.emit(signals)
        transactions.refuse_inside(self, "emit without tx=")
        ids: list[str] = await writer.write(Emit(signals), self._patience)
        return ids

    def emit_sync(self, signals: Sequence[NewSignal]) -> list[str]:
        """The same on a connection of its own: from any thread or process, open or not (SIG-8).

        It blocks its thread until the commit is on the disk. In a Trio task use ``emit``.
        """
        transactions.refuse_inside(self, "emit_sync")
        check_payloads(signals, self._max_payload)
        session = WriteSession(self._place)
        try:
            self._attempt(session, session.try_open)
            results = None
            while results is None:
                self._attempt(session, session.try_begin)
                results = session.commit_works([Emit(signals)])
        finally:
            session.close()
        token = self._token
        if token is not None:
            try:
                token.run_sync_soon(self._wake)
            except trio.RunFinishedError:
                pass  # Trio ended between the two lines; nobody is left to be woken.
        ids: list[str] = results[0].unwrap()
        return ids

    @asynccontextmanager
    async def transaction(self, *, time_limit: float = 5.0) -> AsyncIterator[SqliteTransaction]:
        """Your own tables and emits with ``tx=``, together or not at all (SIG-2). Other writers wait meanwhile.

        Commits on leaving, rolls back on an exception. After ``time_limit`` seconds it is rolled back, its body
        cancelled, and TransactionOver raised.
        """
        writer, _ = self._opened()
        transactions.refuse_inside(self, "a second transaction")
        held = await writer.begin(time_limit, self._patience)
        async with transactions.bounded(SqliteTransaction(self, self._place, held), time_limit) as tx:
            yield tx

    # --- reads ----------------------------------------------------------------------------------------------

    async def requests(self) -> list[Request]:
        """Every operator's request not yet finished, oldest first."""
        self._opened()
        # A worker asks this at every wake-up and sweep. In a file that has lost its name nobody would ever look again.
        if self._place.identity() != self._identity:
            raise StoreError(
                f"the database {self._place.database} was removed or replaced while it was open; stop, put it back "
                "(or let a new one be made), and start again"
            )
        return await super().requests()

    # --- wakeups --------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def on_change(self, wake: Callable[[], None]) -> AsyncIterator[None]:
        """While entered, ``wake()`` is called in the Trio thread after every emit and request, of any process (SIG-6)."""
        writer, _ = self._opened()
        self._wakes.append(wake)
        writer.watch(True)
        try:
            await trio.lowlevel.checkpoint()
            yield
        finally:
            self._wakes.remove(wake)
            writer.watch(bool(self._wakes))

    # --- inside ---------------------------------------------------------------------------------------------

    def _opened(self) -> tuple[ThreadWriter | InlineWriter, Reader]:
        if self._writer is None or self._reader is None:
            raise UsageError(
                f"the store of {self._place.database} is not open; use it inside `async with store.open():`"
            )
        return self._writer, self._reader

    async def _read(self, query: Query[T], *, short: bool = False) -> T:
        _, reader = self._opened()
        return await (reader.short if short else reader.long)(query)

    def _old_sessions(self) -> str:
        return statement("write/old_sessions")

    def _attempt(self, session: WriteSession, attempt: Callable[[], bool]) -> None:
        until = time.monotonic() + self._patience
        for pause in pauses():
            if attempt():
                return
            if time.monotonic() > until:
                raise session.busy(self._patience)
            time.sleep(0.0005 if session.next_in_line else pause)

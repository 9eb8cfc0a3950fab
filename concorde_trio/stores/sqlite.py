"""A queue in a SQLite file: durable, one worker, any number of processes that emit into it.

The law: everything that is written goes through one writer, in commits that are on the disk when they return
(synchronous FULL); a task that waits for a commit is not cancelled away from it.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio

from concorde_trio._sansio.changes import Change
from concorde_trio._sansio.schedules import ScheduleRecord
from concorde_trio._sansio.session_changes import SessionChange
from concorde_trio.errors import StoreError, UsageError
from concorde_trio.messages import Message
from concorde_trio.records import NewSignal, Request, RequestKind, Run, SignalRecord, Unfinished
from concorde_trio.sessions.store import SessionFilter, SessionRecord, StoredInput, StoredSession
from concorde_trio.signals.store import Pruned, RunFilter, SignalFilter, Transaction
from concorde_trio.stores import queries, schedule_works, session_queries, transactions
from concorde_trio.stores.change_checks import check_payloads
from concorde_trio.stores.change_plan import plan
from concorde_trio.stores.pauses import pauses
from concorde_trio.stores.schedule_works import ScheduleWork
from concorde_trio.stores.sql_schedules import SqlSchedules
from concorde_trio.stores.sqlite_inline import InlineWriter
from concorde_trio.stores.sqlite_owner import own
from concorde_trio.stores.sqlite_place import place_of
from concorde_trio.stores.sqlite_reader import Reader
from concorde_trio.stores.sqlite_sql import statement
from concorde_trio.stores.sqlite_transaction import SqliteTransaction
from concorde_trio.stores.sqlite_write_session import WriteSession
from concorde_trio.stores.thread_writer import ThreadWriter
from concorde_trio.stores.works import AddRequest, Apply, Emit, Prune, PruneSessions

SHORT_LIST = 100
"""Pending signals that are read in the Trio thread; more go to the reader's."""

PRUNE_AT_ONCE = 200
"""Signals pruned in one commit, so that others get between."""

PRUNE_SESSIONS_AT_ONCE = 50
"""Sessions pruned in one commit; each may have thousands of messages."""

WORKER_PATIENCE = 20
"""How many times longer than others a worker waits for a busy database, before it gives up and stops."""


class SqliteStore(SqlSchedules):
    """A queue in the file ``path``; its folder must exist.

    ``busy_timeout``: seconds that a write waits while others hold the database, before StoreBusy (a worker's own
    writes: 20 times as long). ``max_payload``: bytes of a payload's JSON text that this store takes, None for what the
    caller takes. ``inline``: no threads, for tests under a virtual clock; commits of other processes are then found by
    the worker's sweep only.
    """

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

    def in_transaction(self) -> bool:
        """True in a task that is inside an open transaction of this store."""
        return transactions.inside(self)

    async def apply(self, changes: Sequence[Change | SessionChange]) -> None:
        """Write all of it in one commit, in order: a worker's changes and sessions' (SES-21). On an error nothing is written."""
        writer, _ = self._opened()
        transactions.refuse_inside(self, "apply")
        await writer.write(Apply(plan(changes)), self._patience * WORKER_PATIENCE)

    async def _write_schedules(self, work: ScheduleWork, *, by_worker: bool) -> Any:
        writer, _ = self._opened()
        return await writer.write(work, self._patience * (WORKER_PATIENCE if by_worker else 1))

    async def request(self, kind: RequestKind, target: str) -> None:
        """Leave an operator's request for the worker."""
        writer, _ = self._opened()
        transactions.refuse_inside(self, "request")
        await writer.write(AddRequest(kind, target), self._patience)

    async def prune(self, before: float) -> Pruned:
        """Remove signals settled before this wall-clock time, with their runs, some hundreds in a commit (STP-5).

        And sessions last saved before it, as ``prune_sessions`` does.
        """
        writer, _ = self._opened()
        transactions.refuse_inside(self, "prune")
        total = Pruned(signals=0, runs=0)
        while True:
            part: Pruned = await writer.write(Prune(before, PRUNE_AT_ONCE), self._patience)
            total = Pruned(signals=total.signals + part.signals, runs=total.runs + part.runs)
            if part.signals < PRUNE_AT_ONCE:
                break
        return attrs.evolve(total, sessions=await self._prune_sessions(before, math.inf))

    async def prune_sessions(self, before: float, limit: int = 1_000) -> int:
        """Remove at most ``limit`` sessions last saved before this time, the oldest; how many (STP-5)."""
        self._opened()
        transactions.refuse_inside(self, "prune_sessions")
        return await self._prune_sessions(before, limit)

    async def _prune_sessions(self, before: float, limit: float) -> int:
        writer, _ = self._opened()
        total = 0
        while total < limit:
            most = int(min(limit - total, PRUNE_SESSIONS_AT_ONCE))
            part: int = await writer.write(PruneSessions(before, most), self._patience)
            total += part
            if part < most:
                break
        return total

    # --- reads ----------------------------------------------------------------------------------------------

    async def pending(self, limit: int) -> list[SignalRecord]:
        """The first ``limit`` pending signals in seq order."""
        _, reader = self._opened()
        read = reader.short if limit <= SHORT_LIST else reader.long
        return await read(partial(queries.pending, limit=limit))

    async def requests(self) -> list[Request]:
        """Every operator's request not yet finished, oldest first."""
        _, reader = self._opened()
        # A worker asks this at every wake-up and sweep. In a file that has lost its name nobody would ever look again.
        if self._place.identity() != self._identity:
            raise StoreError(
                f"the database {self._place.database} was removed or replaced while it was open; stop, put it back "
                "(or let a new one be made), and start again"
            )
        return await reader.short(queries.requests)

    async def unfinished(self) -> list[Unfinished]:
        """Every processing signal with its runs, in the order of their claim."""
        return await self._opened()[1].long(queries.unfinished)

    async def last_position(self) -> int:
        """The highest position ever given to a run, 0 if none."""
        return await self._opened()[1].short(queries.last_position)

    async def signal(self, signal_id: str) -> SignalRecord | None:
        """One signal, None if there is none."""
        return await self._opened()[1].short(partial(queries.signal, signal_id=signal_id))

    async def run(self, run_id: str) -> Run | None:
        """One run, None if there is none."""
        return await self._opened()[1].short(partial(queries.run, run_id=run_id))

    async def signals(self, where: SignalFilter) -> list[SignalRecord]:
        """Signals, newest first."""
        return await self._opened()[1].long(partial(queries.signals, where=where))

    async def runs(self, where: RunFilter) -> list[Run]:
        """Runs, newest first."""
        return await self._opened()[1].long(partial(queries.runs, where=where))

    async def tags(self) -> list[str]:
        """The tags of all runs that have not ended (TAG-4)."""
        return await self._opened()[1].long(queries.tags)

    async def counts(self) -> dict[str, dict[str, int]]:
        """How many signals and runs are in each state."""
        return await self._opened()[1].long(queries.counts)

    async def prunable(self, before: float) -> Pruned:
        """How many rows ``prune`` would remove now."""
        query = partial(queries.prunable, before=before, old_sessions=statement("write/old_sessions"), no_limit=-1)
        return await self._opened()[1].long(query)

    async def schedules(self) -> list[ScheduleRecord]:
        """All schedules, by name."""
        return await self._opened()[1].long(schedule_works.schedules)

    # --- sessions -------------------------------------------------------------------------------------------

    async def load_session(self, name: str) -> StoredSession | None:
        """What a loop starts from, None if there is no such session (SES-17)."""
        return await self._opened()[1].long(partial(session_queries.load_session, name=name))

    async def session(self, name: str) -> SessionRecord | None:
        """A session's row, None if there is none."""
        return await self._opened()[1].short(partial(session_queries.session, name=name))

    async def sessions(self, where: SessionFilter) -> list[SessionRecord]:
        """Sessions, most recently updated first, then by name downwards."""
        return await self._opened()[1].long(partial(session_queries.sessions, where=where))

    async def messages(self, session: str, *, after: int = 0, limit: int = 50) -> list[Message]:
        """Its messages with a higher seq than ``after``, in order, compacted ones included."""
        return await self._opened()[1].long(partial(session_queries.messages, name=session, after=after, limit=limit))

    async def latest_messages(self, session: str, *, before: int | None = None, limit: int = 50) -> list[Message]:
        """Its last messages, in order; with ``before`` the last of those with a lower seq."""
        query = partial(session_queries.latest_messages, name=session, before=before, limit=limit)
        return await self._opened()[1].long(query)

    async def input(self, input_id: str) -> StoredInput | None:
        """One row of the ledger, None if there is none (SES-10a)."""
        return await self._opened()[1].short(partial(session_queries.input_by_id, input_id=input_id))

    async def unsettled_inputs(self, session: str | None = None) -> list[StoredInput]:
        """Every queued input, of one session or of all, in the order in which they were accepted."""
        return await self._opened()[1].long(partial(session_queries.unsettled_inputs, name=session))

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

    def _wake(self) -> None:
        for wake in tuple(self._wakes):
            wake()

    # --- inside ---------------------------------------------------------------------------------------------

    def _opened(self) -> tuple[ThreadWriter | InlineWriter, Reader]:
        if self._writer is None or self._reader is None:
            raise UsageError(
                f"the store of {self._place.database} is not open; use it inside `async with store.open():`"
            )
        return self._writer, self._reader

    def _attempt(self, session: WriteSession, attempt: Callable[[], bool]) -> None:
        until = time.monotonic() + self._patience
        for pause in pauses():
            if attempt():
                return
            if time.monotonic() > until:
                raise session.busy(self._patience)
            time.sleep(0.0005 if session.next_in_line else pause)

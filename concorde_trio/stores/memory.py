"""A queue in this process: it does all that a store does, and ends with the process.

The law: a write is one synchronous step, so nothing is ever half written and a cancellation comes before it or
after it. No thread is used, so that it works under a virtual clock; ``emit_sync`` may come from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import attrs
import trio

from concorde_trio._sansio.changes import Change
from concorde_trio._sansio.schedules import ScheduleRecord
from concorde_trio._sansio.session_changes import SessionChange
from concorde_trio.errors import QueueTaken, StoreBusy, StoreError, TransactionOver, UsageError
from concorde_trio.messages import Message
from concorde_trio.records import NewSignal, Request, RequestKind, Run, SignalRecord, Unfinished
from concorde_trio.sessions.store import SessionFilter, SessionRecord, StoredInput, StoredSession
from concorde_trio.signals.schedule_store import Fire, Fired
from concorde_trio.signals.store import Pruned, RunFilter, SignalFilter, Transaction
from concorde_trio.stores import transactions
from concorde_trio.stores.memory_schedules import MemorySchedules
from concorde_trio.stores.memory_tables import MemoryTables

T = TypeVar("T")


class MemoryTransaction:
    """A transaction of a MemoryStore: what is emitted in it is stored when it commits (SIG-2)."""

    def __init__(self, store: MemoryStore, time_limit: float) -> None:
        self.store = store
        self.time_limit = time_limit
        self.over = False
        self.buffered: dict[str, NewSignal] = {}
        self.keys: dict[tuple[str, str], str] = {}

    async def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> list[tuple[Any, ...]]:
        """UsageError: there is no SQL in memory."""
        raise UsageError("a MemoryStore has no SQL; use a SqliteStore to write your own tables in a transaction")

    def check(self) -> None:
        """TransactionOver, saying why, once it is over."""
        if self.over:
            raise TransactionOver(
                f"this transaction is over (it committed, rolled back, or passed its time_limit of {self.time_limit:g} s); "
                "use it inside its `async with` block only"
            )


class MemoryStore:
    """Signals, runs, requests and sessions in this process. One worker may own it at a time (REC-1)."""

    def __init__(self) -> None:
        self._tables = MemoryTables()
        self._schedules = MemorySchedules()
        self._guard = threading.Lock()
        self._writer = trio.Semaphore(1, max_value=1)
        self._owner = trio.Semaphore(1, max_value=1)
        self._wakes: list[Callable[[], None]] = []
        self._token: trio.lowlevel.TrioToken | None = None
        self._transaction: MemoryTransaction | None = None
        self._queue = f"memory-{uuid4().hex}"

    @property
    def queue(self) -> str:
        """A name of this queue."""
        return self._queue

    @property
    def programs_lock(self) -> Path | None:
        """None: this queue does not outlive its process."""
        return None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Open it; what it holds outlasts closing."""
        if self._token is not None:
            raise UsageError("this MemoryStore is open already; open it once and share it")
        self._token = trio.lowlevel.current_trio_token()
        try:
            await trio.lowlevel.checkpoint()
            yield
        finally:
            self._token = None

    @asynccontextmanager
    async def own(self, *, wait: bool = False, waiting: Callable[[str], None] | None = None) -> AsyncIterator[None]:
        """Be this queue's one worker; QueueTaken if there is one, unless ``wait`` (REC-1)."""
        self._check_open()
        try:
            await trio.lowlevel.checkpoint()
            self._owner.acquire_nowait()
        except trio.WouldBlock:
            sentence = "this queue has a worker already, in this process"
            if not wait:
                raise QueueTaken(f"{sentence}; stop it, or wait for it (wait_for_queue=True)") from None
            if waiting is not None:
                waiting(f"{sentence}; waiting for it to stop")
            await self._owner.acquire()
        try:
            yield
        finally:
            self._owner.release()

    # --- writes ---------------------------------------------------------------------------------------------

    async def emit(self, signals: Sequence[NewSignal], *, tx: Transaction | None = None) -> list[str]:
        """Store signals in the order given; the ids (SIG-1 to SIG-3, SIG-7)."""
        self._check_open()
        if tx is not None:
            if not isinstance(tx, MemoryTransaction) or tx.store is not self:
                raise UsageError(f"tx must come from this store's transaction(), not {tx!r:.80}")
            await trio.lowlevel.checkpoint()
            tx.check()
            return self._buffer(tx, signals)
        transactions.refuse_inside(self, "emit without tx=")
        async with self._writer:
            with self._guard:
                ids = self._tables.insert(signals)
            self._wake()
            return ids

    def emit_sync(self, signals: Sequence[NewSignal]) -> list[str]:
        """The same from any thread (SIG-8). StoreBusy if an open transaction is about to store the same key."""
        transactions.refuse_inside(self, "emit_sync")
        with self._guard:
            self._check_reserved(signals)
            ids = self._tables.insert(signals)
        token = self._token
        if token is not None:
            try:
                token.run_sync_soon(self._wake)
            except trio.RunFinishedError:
                pass  # Trio ended between the two lines; nobody is left to be woken.
        return ids

    @asynccontextmanager
    async def transaction(self, *, time_limit: float = 5.0) -> AsyncIterator[MemoryTransaction]:
        """Emits in it are stored together when it is left, or not at all (SIG-2). Other writers wait meanwhile."""
        self._check_open()
        transactions.refuse_inside(self, "a second transaction")
        await self._writer.acquire()
        tx = self._transaction = MemoryTransaction(self, time_limit)
        try:
            with transactions.entered(tx), trio.move_on_after(time_limit) as scope:  # noqa: ASYNC100  The body is theirs.
                yield tx
            if scope.cancelled_caught or trio.current_time() >= scope.deadline:
                raise TransactionOver(
                    f"the transaction passed its time_limit of {time_limit:g} s and was rolled back; "
                    "do less in it, or give it more time"
                )
            with self._guard:
                self._tables.insert(list(tx.buffered.values()))
        finally:
            tx.over = True
            self._transaction = None
            self._writer.release()
        if tx.buffered:
            self._wake()

    def in_transaction(self) -> bool:
        """True in a task that is inside an open transaction of this store."""
        return transactions.inside(self)

    async def apply(self, changes: Sequence[Change | SessionChange]) -> None:
        """Write all of it, in order, or nothing: a worker's changes and sessions' (SES-21)."""
        await self._write("apply")
        with self._guard:
            emitted = self._tables.apply(changes)
        if emitted:
            self._wake()

    async def put_schedule(self, record: ScheduleRecord) -> bool:
        """Store it under its name; False if the same is there already (SCH-5)."""
        await self._write("a change of schedules")
        with self._guard:
            return self._schedules.put(record)

    async def remove_schedule(self, name: str) -> bool:
        """Remove it; False if there is none of this name."""
        await self._write("a change of schedules")
        with self._guard:
            return self._schedules.remove(name)

    async def fire_schedules(self, fires: Sequence[Fire]) -> list[Fired | None]:
        """Advance rows and emit their signals together; None for a row that is not as it must be (SCH-4)."""
        await self._write("a change of schedules")
        with self._guard:
            fired = self._schedules.fire(fires, self._tables.insert)
        self._wake()
        return fired

    async def request(self, kind: RequestKind, target: str) -> None:
        """Leave an operator's request for the worker."""
        await self._write("request")
        with self._guard:
            self._tables.add_request(kind, target)
        self._wake()

    async def prune(self, before: float) -> Pruned:
        """Remove signals settled before this wall-clock time, with their runs, and sessions last saved before it (STP-5)."""
        await self._write("prune")
        with self._guard:
            return attrs.evolve(self._tables.prune(before), sessions=self._tables.prune_sessions(before))

    async def prune_sessions(self, before: float, limit: int = 1_000) -> int:
        """Remove at most ``limit`` sessions last saved before this time, the oldest; how many (STP-5)."""
        await self._write("prune_sessions")
        with self._guard:
            return self._tables.prune_sessions(before, limit)

    # --- reads ----------------------------------------------------------------------------------------------

    async def pending(self, limit: int) -> list[SignalRecord]:
        """The first ``limit`` pending signals in seq order."""
        return await self._read(lambda tables: tables.pending(limit))

    async def requests(self) -> list[Request]:
        """Every operator's request not yet finished, oldest first."""
        return await self._read(MemoryTables.requests)

    async def unfinished(self) -> list[Unfinished]:
        """Every processing signal with its runs, in the order of their claim."""
        return await self._read(MemoryTables.unfinished)

    async def last_position(self) -> int:
        """The highest position ever given to a run."""
        return await self._read(lambda tables: tables.last_position)

    async def signal(self, signal_id: str) -> SignalRecord | None:
        """One signal, None if there is none."""
        return await self._read(lambda tables: tables.signal(signal_id))

    async def run(self, run_id: str) -> Run | None:
        """One run, None if there is none."""
        return await self._read(lambda tables: tables.run(run_id))

    async def signals(self, where: SignalFilter) -> list[SignalRecord]:
        """Signals, newest first."""
        return await self._read(lambda tables: tables.signals(where))

    async def runs(self, where: RunFilter) -> list[Run]:
        """Runs, newest first."""
        return await self._read(lambda tables: tables.runs(where))

    async def tags(self) -> list[str]:
        """The tags of all runs that have not ended (TAG-4)."""
        return await self._read(MemoryTables.tags)

    async def counts(self) -> dict[str, dict[str, int]]:
        """How many signals and runs are in each state."""
        return await self._read(MemoryTables.counts)

    async def schedules(self) -> list[ScheduleRecord]:
        """All schedules, by name."""
        return await self._read(lambda tables: self._schedules.all())

    # --- sessions -------------------------------------------------------------------------------------------

    async def load_session(self, name: str) -> StoredSession | None:
        """What a loop starts from, None if there is no such session (SES-17)."""
        return await self._read(lambda tables: tables.sessions.load(name))

    async def session(self, name: str) -> SessionRecord | None:
        """A session's row, None if there is none."""
        return await self._read(lambda tables: tables.sessions.session(name))

    async def sessions(self, where: SessionFilter) -> list[SessionRecord]:
        """Sessions, most recently updated first, then by name downwards."""
        return await self._read(lambda tables: tables.sessions.sessions(where))

    async def messages(self, session: str, *, after: int = 0, limit: int = 50) -> list[Message]:
        """Its messages with a higher seq than ``after``, in order, compacted ones included."""
        return await self._read(lambda tables: tables.sessions.messages(session, after, limit))

    async def latest_messages(self, session: str, *, before: int | None = None, limit: int = 50) -> list[Message]:
        """Its last messages, in order; with ``before`` the last of those with a lower seq."""
        return await self._read(lambda tables: tables.sessions.latest_messages(session, before, limit))

    async def input(self, input_id: str) -> StoredInput | None:
        """One row of the ledger, None if there is none (SES-10a)."""
        return await self._read(lambda tables: tables.sessions.input(input_id))

    async def unsettled_inputs(self, session: str | None = None) -> list[StoredInput]:
        """Every queued input, of one session or of all, in the order in which they were accepted."""
        return await self._read(lambda tables: tables.sessions.unsettled(session))

    # --- wakeups --------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def on_change(self, wake: Callable[[], None]) -> AsyncIterator[None]:
        """While entered, ``wake()`` is called in the Trio thread after every emit and request (SIG-6)."""
        self._check_open()
        self._wakes.append(wake)
        try:
            await trio.lowlevel.checkpoint()
            yield
        finally:
            self._wakes.remove(wake)

    def _wake(self) -> None:
        for wake in tuple(self._wakes):
            wake()

    # --- inside ---------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._token is None:
            raise UsageError("this MemoryStore is not open; use it inside `async with store.open():`")

    async def _write(self, what: str) -> None:
        """A checkpoint, past any open transaction: what follows it at once is alone."""
        self._check_open()
        transactions.refuse_inside(self, what)
        async with self._writer:
            pass

    async def _read(self, read: Callable[[MemoryTables], T]) -> T:
        self._check_open()
        await trio.lowlevel.checkpoint()
        with self._guard:
            return read(self._tables)

    def _buffer(self, tx: MemoryTransaction, signals: Sequence[NewSignal]) -> list[str]:
        with self._guard:
            fresh: dict[str, NewSignal] = {}
            keys: dict[tuple[str, str], str] = {}
            ids: list[str] = []
            for new in signals:
                stored = None
                if new.key is not None:
                    key = (new.kind, new.key)
                    stored = self._tables.stored_id(*key) or tx.keys.get(key) or keys.get(key)
                    keys.setdefault(key, stored or new.id)
                if stored is None:
                    self._tables.check_new_id(new.id)
                    if new.id in tx.buffered or new.id in fresh:
                        raise StoreError(f"the id {new.id!r} is emitted twice in this transaction; use a new one")
                    fresh[new.id] = new
                ids.append(stored or new.id)
            tx.buffered.update(fresh)
            tx.keys.update(keys)
            return ids

    def _check_reserved(self, signals: Sequence[NewSignal]) -> None:
        if self._transaction is not None:
            for new in signals:
                if new.key is not None and (new.kind, new.key) in self._transaction.keys:
                    raise StoreBusy(
                        f"an open transaction is about to store kind {new.kind!r} key {new.key!r}; try again"
                    )

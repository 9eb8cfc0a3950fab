"""A queue in a schema of a PostgreSQL database: durable, one worker, any number of processes on any machines that emit.

The law: everything that is written goes through one connection, in commits whose outcome is always found out; reads have
others, and what listens has its own. A task that waits for a commit is not cancelled away from it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import psycopg
import trio

from concorde_trio.errors import UsageError
from concorde_trio.records import NewSignal
from concorde_trio.signals.fleet import FleetView
from concorde_trio.signals.store import Transaction
from concorde_trio.stores import queries, transactions
from concorde_trio.stores.change_checks import check_payloads
from concorde_trio.stores.change_plan import ChangePlan
from concorde_trio.stores.pauses import pauses
from concorde_trio.stores.postgres import fleet_reads
from concorde_trio.stores.postgres.connection import connect, schema_version
from concorde_trio.stores.postgres.fleet_works import MemberApply
from concorde_trio.stores.postgres.listener import Listener
from concorde_trio.stores.postgres.membership import PostgresMembership, programs_lock
from concorde_trio.stores.postgres.owner import Owner
from concorde_trio.stores.postgres.pg_errors import store_error
from concorde_trio.stores.postgres.pg_sql import HAS_RESOURCE, KEPT, PostgresReads, statement
from concorde_trio.stores.postgres.place import Place, place_of, state_folder
from concorde_trio.stores.postgres.reader import PostgresReader
from concorde_trio.stores.postgres.transaction import JoinedTransaction, PostgresTransaction
from concorde_trio.stores.postgres.write_session import PostgresWriteSession, origin_of
from concorde_trio.stores.programs import programs_dead
from concorde_trio.stores.sql_store import SqlStore
from concorde_trio.stores.thread_writer import ThreadWriter
from concorde_trio.stores.works import Apply, Emit, OwnWork

T = TypeVar("T")


class PostgresStore(SqlStore):
    """A queue in the database that ``url`` names, in a schema of its own.

    ``url``: ``postgresql://user:password@host:port/database``, or all else that libpq takes in one (several hosts for a
    failover, ``sslmode``, ...); ``schema`` may stand in it as ``?schema=NAME``. The schema is made when it is first opened.
    ``lease``: seconds that a process may be taken to live without another word of it: it stops its runs a fifth of that
    before (REC-1), and whoever takes over waits for it to be over.
    ``busy_timeout``: seconds that others' reads and writes are tried again while the database cannot be used, before
    StoreBusy; reads of a member's store, for a lease at least. ``max_payload``: bytes of a payload's JSON text that this store takes, None for what the caller takes.
    UsageError for what can never work, the extra ``postgres`` not installed among it.
    """

    _has_resource = HAS_RESOURCE
    _kept = KEPT
    _no_limit = None

    def __init__(
        self,
        url: str,
        *,
        schema: str | None = None,
        lease: float = 10.0,
        busy_timeout: float = 30.0,
        max_payload: int | None = None,
    ) -> None:
        if not 0.5 <= lease <= 3600:
            raise UsageError(f"a lease is from 0.5 to 3600 seconds, not {lease!r:.80}")
        self._place = place_of(url, schema)
        self._lease = lease
        self._patience = busy_timeout
        self._max_payload = max_payload
        self._origin = origin_of(uuid4().hex)
        self._wakes: list[Callable[[], None]] = []
        self._token: trio.lowlevel.TrioToken | None = None
        self._session: PostgresWriteSession | None = None
        self._writer: ThreadWriter | None = None
        self._reader: PostgresReader | None = None
        self._queue: str | None = None
        self._member: PostgresMembership | None = None

    @property
    def queue(self) -> str:
        """A name of this queue that survives restarts, known once it was opened."""
        if self._queue is None:
            raise UsageError("the name of a queue in PostgreSQL stands in its schema; open the store first")
        return self._queue

    @property
    def path(self) -> Path:
        """Beside which the files of this queue stand that belong to this machine: where a gateway here can be reached."""
        return state_folder() / self.queue

    @property
    def programs_lock(self) -> Path | None:
        """The file of REC-6, for programs on this machine."""
        path = self.path
        return path.with_name(f"{path.name}.programs")

    def holds_queue(self) -> bool:
        """True if there is a queue in the schema, whose name and ``path`` are known then. Changes nothing, and blocks.

        StoreError if the database cannot be asked.
        """
        try:
            with connect(self._place, "concorde-trio", read_only=True) as connection:
                if not schema_version(connection, self._place):
                    return False
                self._queue = queries.queue(PostgresReads(connection))
        except psycopg.Error as error:
            raise store_error(error, self._place) from error
        return True

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Connect and bring the schema up to date; SchemaTooNew, or a StoreError that says what is wrong."""
        if self._writer is not None:
            raise UsageError(f"the store of {self._place.name} is open already; open it once and share it")
        session = self._new_session()
        reader = PostgresReader(self._place, self._patience)
        self._session, self._writer = session, ThreadWriter(session, self._patience, self._wake)
        try:
            await self._writer.open()
            self._queue = await reader.read(queries.queue)
            self._reader, self._token = reader, trio.lowlevel.current_trio_token()
            yield
        finally:
            writer, self._session, self._writer, self._reader, self._token = self._writer, None, None, None, None
            reader.close()
            await writer.close()  # noqa: ASYNC102  Shielded and bounded inside.

    @asynccontextmanager
    async def own(self, *, wait: bool = False, waiting: Callable[[str], None] | None = None) -> AsyncIterator[None]:
        """Be this queue's one worker (REC-1), once programs of an earlier one on this machine are dead (REC-6).

        A StoreError, with the block cancelled, when the queue is lost.
        """
        self._opened()
        assert self._session is not None
        owner = Owner(self._place, self._session, self._lease, self._patience)
        async with owner.owning(wait=wait, waiting=waiting):
            assert self.programs_lock is not None
            await programs_dead(self.programs_lock, self._place.name, waiting)
            yield

    # --- a fleet --------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def enrol(self, *, url: str | None = None, capacity: int | None = None) -> AsyncIterator[PostgresMembership]:
        """Be a member of the fleet of this queue while the block runs; one at a time for each store.

        ``url``: of its agent server. ``capacity``: how many runs it executes at once. The block is cancelled, and LeaseLost
        raised, once its lease is over; what sessions write in this process is under that lease too.
        """
        self._opened()
        if self._member is not None and self._member.over is None:
            raise UsageError("this store is a member of the fleet already; open another one for another member")
        self._member = PostgresMembership(self, url=url, capacity=capacity)
        _, reader = self._opened()
        # A database that is away for less than the lease ends nothing; for longer, the lease is over first (REC-5).
        reader.patience = max(self._patience, self._lease)
        try:
            async with self._member.held():
                yield self._member
        finally:
            reader.patience = self._patience

    async def session_elsewhere(self, session: str) -> tuple[str | None] | None:
        """The URL of the other member that executes a run of this session, in a tuple; None if none does."""
        mine = "" if self._member is None else self._member.id
        return await self._read(partial(fleet_reads.session_elsewhere, session=session, member=mine))

    async def fleet(self) -> FleetView:
        """Who leads and who executes what."""
        return await self._read(fleet_reads.fleet)

    @property
    def place(self) -> Place:
        """Where the queue is."""
        return self._place

    @property
    def lease(self) -> float:
        """Seconds."""
        return self._lease

    @property
    def patience(self) -> float:
        """Seconds that others than a worker wait for the database."""
        return self._patience

    @property
    def writer_name(self) -> str:
        """By which the server lists the connection that writes."""
        assert self._session is not None
        return self._session.writer[:12]

    async def read(self, query: Callable[[PostgresReads], T]) -> T:
        """What a query gives: for the parts of this store."""
        return await self._read(query)

    async def write_work(self, work: OwnWork, *, patient: bool = False) -> Any:
        """What a work of this database's own gives: for the parts of this store."""
        return await self._ask_writer(work, by_worker=patient)

    def leaders_writer(self, writer: str) -> ThreadWriter:
        """A writer of its own, whose row must say that it owns the queue."""
        session = PostgresWriteSession(self._place, writer, self._origin, self._patience * 10)
        session.owns = True
        return ThreadWriter(session, self._patience, self._wake)

    def member_programs(self, member: str) -> Path:
        """The programs lock of a member of this machine."""
        return programs_lock(self, member)

    # --- writes ---------------------------------------------------------------------------------------------

    async def emit(self, signals: Sequence[NewSignal], *, tx: Transaction | None = None) -> list[str]:
        """Store signals in the order given; the ids, committed when ``tx`` is None (SIG-1 to SIG-3, SIG-7)."""
        writer, _ = self._opened()
        check_payloads(signals, self._max_payload)
        if tx is not None:
            if isinstance(tx, JoinedTransaction) and tx.place == self._place:
                return await tx.emit(signals)
            if not isinstance(tx, PostgresTransaction) or tx.store is not self:
                raise UsageError(f"tx must come from this store's transaction() or join(), not {tx!r:.80}")
            return await tx.emit(signals)
        transactions.refuse_inside(self, "emit without tx=")
        ids: list[str] = await writer.write(Emit(signals), self._patience)
        return ids

    def emit_sync(self, signals: Sequence[NewSignal]) -> list[str]:
        """The same on a connection of its own, made for this call: from any thread or process, open or not (SIG-8).

        It blocks its thread until the commit is on the disk. In a Trio task use ``emit``; to send many, or in a
        transaction of yours, ``join``.
        """
        transactions.refuse_inside(self, "emit_sync")
        check_payloads(signals, self._max_payload)
        session = self._new_session()
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

    def join(self, connection: psycopg.Connection[Any]) -> JoinedTransaction:
        """The transaction that you have begun on a psycopg connection of yours, for ``tx=`` and ``emit_sync`` (SIG-2).

        It must be a connection to the queue's database, by a user who may write the queue's tables.
        """
        return JoinedTransaction(self._place, connection)

    @asynccontextmanager
    async def transaction(self, *, time_limit: float = 5.0) -> AsyncIterator[PostgresTransaction]:
        """Your own tables and emits with ``tx=``, together or not at all (SIG-2). Other writes of this store wait meanwhile.

        Commits on leaving, rolls back on an exception. After ``time_limit`` seconds it is rolled back, its body
        cancelled, and TransactionOver raised.
        """
        writer, _ = self._opened()
        transactions.refuse_inside(self, "a second transaction")
        held = await writer.begin(time_limit, self._patience)
        begun = PostgresTransaction(self, self._place, held, self._origin)
        async with transactions.bounded(begun, time_limit) as tx:
            yield tx

    # --- wakeups --------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def on_change(self, wake: Callable[[], None]) -> AsyncIterator[None]:
        """While entered, ``wake()`` is called in the Trio thread after every emit and request, of any process (SIG-6)."""
        self._opened()

        def heard(origin: str | None) -> None:
            if origin != self._origin():  # Of its own commits it knows already.
                wake()

        async with Listener(self._place, self._place.channel, self._patience, heard).listening():
            self._wakes.append(wake)
            try:
                yield
            finally:
                self._wakes.remove(wake)

    # --- inside ---------------------------------------------------------------------------------------------

    def _opened(self) -> tuple[ThreadWriter, PostgresReader]:
        if self._writer is None or self._reader is None:
            raise UsageError(f"the store of {self._place.name} is not open; use it inside `async with store.open():`")
        return self._writer, self._reader

    async def _read(self, query: Callable[[PostgresReads], T], *, short: bool = False) -> T:
        return await self._opened()[1].read(query)  # However short: the database is on the other side of a socket.

    def _old_sessions(self) -> str:
        return statement("write/old_sessions", self._place.schema).replace("%s", "?")

    def _apply_work(self, plan: ChangePlan) -> Apply:
        if self._member is None:
            return super()._apply_work(plan)
        self._member.check()
        return MemberApply(plan, self._member.id)

    def _new_session(self) -> PostgresWriteSession:
        return PostgresWriteSession(self._place, uuid4().hex, self._origin, self._patience * 10)

    def _attempt(self, session: PostgresWriteSession, attempt: Callable[[], bool]) -> None:
        until = time.monotonic() + self._patience
        for pause in pauses():
            if attempt():
                return
            if time.monotonic() > until:
                raise session.busy(self._patience)
            time.sleep(pause)

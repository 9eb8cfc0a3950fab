"""What the stores that speak SQL have in common: requests, pruning, and every read, each said once for all of them.

The law: nothing here knows a database. A store says who writes for it and how it reads, and in which words its SQL differs;
an order of checks that callers can see (open, then inside a transaction) is the same in all stores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import attrs

from concorde_trio._sansio.changes import Change
from concorde_trio._sansio.schedules import ScheduleRecord
from concorde_trio._sansio.session_changes import SessionChange
from concorde_trio.messages import Message
from concorde_trio.records import Request, RequestKind, Run, SignalRecord, Unfinished
from concorde_trio.sessions.store import SessionFilter, SessionRecord, StoredInput, StoredSession
from concorde_trio.signals.store import Pruned, RunFilter, SignalFilter
from concorde_trio.stores import queries, schedule_works, session_queries, transactions
from concorde_trio.stores.change_plan import ChangePlan, plan
from concorde_trio.stores.database import Reads
from concorde_trio.stores.schedule_works import ScheduleWork
from concorde_trio.stores.sql_schedules import SqlSchedules
from concorde_trio.stores.works import AddRequest, Apply, Prune, PruneSessions, Work

T = TypeVar("T")

SHORT_LIST = 100
"""Pending signals that are a short read; more are a long one."""

PRUNE_AT_ONCE = 200
"""Signals pruned in one commit, so that others get between."""

PRUNE_SESSIONS_AT_ONCE = 50
"""Sessions pruned in one commit; each may have thousands of messages."""

WORKER_PATIENCE = 20
"""How many times longer than others a worker waits for the database, before it gives up and stops; losing the queue, where
that can be, ends it sooner."""


class Writer(Protocol):
    """Who writes for a store."""

    async def write(self, work: Any, patience: float) -> Any:
        """What became of a work, committed; StoreBusy after ``patience`` seconds."""
        ...


class SqlStore(SqlSchedules):
    """What a store inherits: it gives its writer (``_opened``), its way to read (``_read``), and its own words."""

    _patience: float
    _wakes: list[Callable[[], None]]

    _has_resource = queries.HAS_RESOURCE
    _kept = session_queries.KEPT
    _no_limit: int | None
    """What stands for no limit in ``limit ?``."""

    # --- what each store says -------------------------------------------------------------------------------

    def _opened(self) -> tuple[Writer, Any]:
        """Its writer and its reader; UsageError if it is not open."""
        raise NotImplementedError

    async def _read(self, query: Callable[[Reads], T], *, short: bool = False) -> T:
        """What a query gives. ``short``: an index finds its few rows in tens of microseconds."""
        raise NotImplementedError

    def _old_sessions(self) -> str:
        """The query of the sessions that may be pruned, of a time and a limit."""
        raise NotImplementedError

    def _apply_work(self, plan: ChangePlan) -> Apply:
        """The work that writes a plan."""
        return Apply(plan)

    # --- writes ---------------------------------------------------------------------------------------------

    def in_transaction(self) -> bool:
        """True in a task that is inside an open transaction of this store."""
        return transactions.inside(self)

    async def apply(self, changes: Sequence[Change | SessionChange]) -> None:
        """Write all of it in one commit, in order: a worker's changes and sessions' (SES-21). On an error nothing is written."""
        self._opened()
        transactions.refuse_inside(self, "apply")
        await self._ask_writer(self._apply_work(plan(changes)), by_worker=True)

    async def request(self, kind: RequestKind, target: str) -> None:
        """Leave an operator's request for the worker."""
        self._opened()
        transactions.refuse_inside(self, "request")
        await self._ask_writer(AddRequest(kind, target))

    async def prune(self, before: float) -> Pruned:
        """Remove signals settled before this wall-clock time, with their runs, some hundreds in a commit (STP-5).

        And sessions last saved before it, as ``prune_sessions`` does.
        """
        self._opened()
        transactions.refuse_inside(self, "prune")
        total = Pruned(signals=0, runs=0)
        while True:
            part: Pruned = await self._ask_writer(Prune(before, PRUNE_AT_ONCE))
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
        total = 0
        while total < limit:
            most = int(min(limit - total, PRUNE_SESSIONS_AT_ONCE))
            part: int = await self._ask_writer(PruneSessions(before, most))
            total += part
            if part < most:
                break
        return total

    async def _ask_writer(self, work: Work, *, by_worker: bool = False) -> Any:
        writer, _ = self._opened()
        return await writer.write(work, self._patience * (WORKER_PATIENCE if by_worker else 1))

    async def _write_schedules(self, work: ScheduleWork, *, by_worker: bool) -> Any:
        return await self._ask_writer(work, by_worker=by_worker)

    # --- reads ----------------------------------------------------------------------------------------------

    async def pending(self, limit: int) -> list[SignalRecord]:
        """The first ``limit`` pending signals in seq order."""
        return await self._read(partial(queries.pending, limit=limit), short=limit <= SHORT_LIST)

    async def requests(self) -> list[Request]:
        """Every operator's request not yet finished, oldest first."""
        return await self._read(queries.requests, short=True)

    async def unfinished(self) -> list[Unfinished]:
        """Every processing signal with its runs, in the order of their claim."""
        return await self._read(queries.unfinished)

    async def last_position(self) -> int:
        """The highest position ever given to a run, 0 if none."""
        return await self._read(queries.last_position, short=True)

    async def signal(self, signal_id: str) -> SignalRecord | None:
        """One signal, None if there is none."""
        return await self._read(partial(queries.signal, signal_id=signal_id), short=True)

    async def run(self, run_id: str) -> Run | None:
        """One run, None if there is none."""
        return await self._read(partial(queries.run, run_id=run_id), short=True)

    async def signals(self, where: SignalFilter) -> list[SignalRecord]:
        """Signals, newest first."""
        return await self._read(partial(queries.signals, where=where))

    async def runs(self, where: RunFilter) -> list[Run]:
        """Runs, newest first."""
        return await self._read(partial(queries.runs, where=where, has_resource=self._has_resource))

    async def tags(self) -> list[str]:
        """The tags of all runs that have not ended (TAG-4)."""
        return await self._read(queries.tags)

    async def counts(self) -> dict[str, dict[str, int]]:
        """How many signals and runs are in each state."""
        return await self._read(queries.counts)

    async def prunable(self, before: float) -> Pruned:
        """How many rows ``prune`` would remove now."""
        old = self._old_sessions()
        return await self._read(partial(queries.prunable, before=before, old_sessions=old, no_limit=self._no_limit))

    async def schedules(self) -> list[ScheduleRecord]:
        """All schedules, by name."""
        return await self._read(schedule_works.schedules)

    # --- sessions -------------------------------------------------------------------------------------------

    async def load_session(self, name: str) -> StoredSession | None:
        """What a loop starts from, None if there is no such session (SES-17)."""
        return await self._read(partial(session_queries.load_session, name=name, kept_query=self._kept))

    async def session(self, name: str) -> SessionRecord | None:
        """A session's row, None if there is none."""
        return await self._read(partial(session_queries.session, name=name), short=True)

    async def sessions(self, where: SessionFilter) -> list[SessionRecord]:
        """Sessions, most recently updated first, then by name downwards."""
        return await self._read(partial(session_queries.sessions, where=where))

    async def messages(self, session: str, *, after: int = 0, limit: int = 50) -> list[Message]:
        """Its messages with a higher seq than ``after``, in order, compacted ones included."""
        return await self._read(partial(session_queries.messages, name=session, after=after, limit=limit))

    async def latest_messages(self, session: str, *, before: int | None = None, limit: int = 50) -> list[Message]:
        """Its last messages, in order; with ``before`` the last of those with a lower seq."""
        return await self._read(partial(session_queries.latest_messages, name=session, before=before, limit=limit))

    async def input(self, input_id: str) -> StoredInput | None:
        """One row of the ledger, None if there is none (SES-10a)."""
        return await self._read(partial(session_queries.input_by_id, input_id=input_id), short=True)

    async def unsettled_inputs(self, session: str | None = None) -> list[StoredInput]:
        """Every queued input, of one session or of all, in the order in which they were accepted."""
        return await self._read(partial(session_queries.unsettled_inputs, name=session))

    # --- wakeups --------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        for wake in tuple(self._wakes):
            wake()

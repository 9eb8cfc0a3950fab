"""What a writer does inside its transaction: emits, changes, requests, pruning, many callers in one commit.

The law: a group of works is written with one statement for each kind of row. It is the same for every SQL database;
what an error means, and how a transaction begins and ends, is that one's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from concorde_trio.errors import StoreError
from concorde_trio.records import NewSignal, RequestKind
from concorde_trio.signals.store import Pruned
from concorde_trio.stores.change_plan import ChangePlan
from concorde_trio.stores.database import Writes
from concorde_trio.stores.mismatch import RowMismatch
from concorde_trio.stores.rows import new_run_row, new_signal_row, run_row, signal_row
from concorde_trio.stores.schedule_works import FireSchedules, ScheduleWork, write_schedules
from concorde_trio.stores.session_plan import merged
from concorde_trio.stores.session_works import prune_sessions, write_sessions


@attrs.frozen
class Emit:
    """Signals to be stored; gives their ids."""

    signals: Sequence[NewSignal]


@attrs.frozen
class Apply:
    """A worker's changes and sessions'; gives None. What else is written with them is a subclass's."""

    plan: ChangePlan

    def before(self, database: Writes) -> None:
        """Look whether it may be written; raise if not."""

    def after(self, database: Writes) -> None:
        """Write what goes with it."""


class OwnWork:
    """What only one kind of database has. It knows by itself how it is written."""

    wakes = False

    def write(self, database: Any) -> Any:
        """What it gives; raises as ``write`` below."""
        raise NotImplementedError


@attrs.frozen
class AddRequest:
    """An operator's request; gives None."""

    kind: RequestKind
    target: str


@attrs.frozen
class Prune:
    """Remove at most ``limit`` signals settled before this time; gives how many rows went."""

    before: float
    limit: int


@attrs.frozen
class PruneSessions:
    """Remove at most ``limit`` sessions last saved before this time; gives how many went."""

    before: float
    limit: int


Work = Emit | Apply | AddRequest | Prune | PruneSessions | ScheduleWork | OwnWork


def wakes(work: object) -> bool:
    """True if it adds what a worker waits for (SIG-6)."""
    if isinstance(work, OwnWork):
        return work.wakes
    return isinstance(work, Emit | AddRequest | FireSchedules) or (isinstance(work, Apply) and bool(work.plan.emitted))


def write(database: Writes, works: Sequence[Work]) -> list[Any]:
    """What each of them gave; raises what the database raises, or RowMismatch, with the transaction still open."""
    results: list[Any] = [None] * len(works)
    applied = [work for work in works if isinstance(work, Apply)]
    for each in applied:
        each.before(database)
    emits = [(number, _emitted(work)) for number, work in enumerate(works)]
    ids = insert_signals(database, [signal for _, signals in emits for signal in signals])
    for number, signals in emits:
        if isinstance(works[number], Emit):
            results[number] = ids[: len(signals)]
        ids = ids[len(signals) :]
    requests = [(work.kind, work.target) for work in works if isinstance(work, AddRequest)]
    if requests:
        database.execute_rows("insert_requests", requests)
    write_sessions(database, merged(each.plan.sessions for each in applied))
    for each in applied:
        apply_plan(database, each.plan)
        each.after(database)
    for number, work in enumerate(works):
        if isinstance(work, Prune):
            results[number] = _prune(database, work)
        elif isinstance(work, PruneSessions):
            results[number] = prune_sessions(database, work.before, work.limit)
        elif isinstance(work, ScheduleWork):
            results[number] = write_schedules(database, work, insert_signals)
        elif isinstance(work, OwnWork):
            results[number] = work.write(database)
    return results


def _emitted(work: Work) -> Sequence[NewSignal]:
    match work:
        case Emit(signals):
            return signals
        case Apply(plan):
            return plan.emitted
    return ()


def insert_signals(database: Writes, signals: Sequence[NewSignal]) -> list[str]:
    """Store signals in this order; the ids (SIG-3, SIG-7)."""
    if not signals:
        return []
    database.execute_rows("insert_signals", [new_signal_row(new) for new in signals])
    ids = [new.id for new in signals]
    keyed = [(number, new.kind, new.key) for number, new in enumerate(signals) if new.key is not None]
    if keyed:
        for number, stored in database.select_rows("signals_by_key", keyed):
            ids[number] = stored
    return ids


def apply_plan(database: Writes, plan: ChangePlan) -> None:
    """Write what a plan has of signals and runs; RowMismatch if a row is not what it must be."""
    signals = list(plan.signals.values())
    if signals and database.execute_rows("update_signals", [signal_row(each) for each in signals]) != len(signals):
        raise RowMismatch(signals)
    if plan.positions is not None:
        first, last = plan.positions
        if database.execute_named("advance_position", (last, first)).rowcount != 1:
            given = database.execute("select last_position from concorde_meta").fetchone()[0]
            raise StoreError(f"position {first} was given out already (the last was {given}); it needs a higher one")
        new = [new_run_row(each, each.queued) for each in plan.runs.values() if each.queued is not None]
        database.execute_rows("insert_runs", new)
    old = [each for each in plan.runs.values() if each.queued is None]
    if old and database.execute_rows("update_runs", [run_row(each) for each in old]) != len(old):
        raise RowMismatch(old)
    if plan.finished:
        database.execute_rows("delete_requests", [(each,) for each in plan.finished])


def _prune(database: Writes, work: Prune) -> Pruned:
    ids = database.execute_named("settled_before", (work.before, work.limit)).fetchall()
    if not ids:
        return Pruned(signals=0, runs=0)
    runs = database.execute_rows("delete_runs", ids)
    return Pruned(signals=database.execute_rows("delete_signals", ids), runs=runs)

"""What a writer does inside its transaction: emits, changes, requests, pruning, many callers in one commit.

The law: a group of works is written with one statement for each kind of row. If one of them cannot be written, all
are done again one by one, each in a savepoint, so that only the bad one fails (REC-5).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import attrs
from outcome import Error, Outcome, Value

from concorde_trio.errors import StoreError
from concorde_trio.records import NewSignal, RequestKind
from concorde_trio.signals.store import Pruned
from concorde_trio.stores.change_plan import ChangePlan
from concorde_trio.stores.session_plan import merged
from concorde_trio.stores.sqlite_errors import passes, store_error
from concorde_trio.stores.sqlite_mismatch import RowMismatch, doubled
from concorde_trio.stores.sqlite_place import Place
from concorde_trio.stores.sqlite_rows import new_run_row, new_signal_row, run_row, signal_row
from concorde_trio.stores.sqlite_session_works import prune_sessions, write_sessions
from concorde_trio.stores.sqlite_sql import execute_rows, select_rows, statement


@attrs.frozen
class Emit:
    """Signals to be stored; gives their ids."""

    signals: Sequence[NewSignal]


@attrs.frozen
class Apply:
    """A worker's changes and sessions'; gives None."""

    plan: ChangePlan


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


Work = Emit | Apply | AddRequest | Prune | PruneSessions


def wakes(work: object) -> bool:
    """True if it adds what a worker waits for (SIG-6)."""
    return isinstance(work, Emit | AddRequest) or (isinstance(work, Apply) and bool(work.plan.emitted))


def commit_works(connection: sqlite3.Connection, place: Place, works: Sequence[Work]) -> list[Outcome[Any]]:
    """Write all works in the transaction that is begun, and commit it; what became of each.

    Raises only what passes by itself; then the transaction is rolled back and nothing of it is written.
    """
    try:
        try:
            results: list[Outcome[Any]] = [Value(result) for result in _write(connection, works)]
        except Exception as error:
            if passes(error):
                raise
            roll_back(connection)
            connection.execute("begin immediate")
            results = [_alone(connection, place, work) for work in works]
        connection.execute("commit")
    except sqlite3.Error as error:
        roll_back(connection)
        if passes(error):
            raise
        return [_refused(error, place) for _ in works]
    return results


def roll_back(connection: sqlite3.Connection) -> None:
    """End the transaction, if an error has not ended it already."""
    if connection.in_transaction:
        connection.execute("rollback")


def _alone(connection: sqlite3.Connection, place: Place, work: Work) -> Outcome[Any]:
    connection.execute("savepoint one")
    try:
        result = _write(connection, [work])[0]
    except Exception as error:
        if passes(error) or not connection.in_transaction:
            raise  # The works before this one went with the transaction.
        connection.execute("rollback to one")
        refused = _refused(_explained(connection, work, error), place)
        connection.execute("release one")
        return refused
    connection.execute("release one")
    return Value(result)


def _explained(connection: sqlite3.Connection, work: Work, error: Exception) -> Exception:
    """The error with the name of the row that it is about, where that can be found."""
    if isinstance(error, RowMismatch):
        return error.explain(connection)
    if isinstance(error, sqlite3.IntegrityError) and isinstance(work, Apply):
        named = doubled(connection, work.plan)
        if named is not None:
            named.__cause__ = error
            return named
    return error


def _refused(error: BaseException, place: Place) -> Outcome[Any]:
    if not isinstance(error, sqlite3.Error | UnicodeError | OverflowError):
        return Error(error)
    refused = store_error(error, place.database)
    refused.__cause__ = error
    return Error(refused)


def _write(connection: sqlite3.Connection, works: Sequence[Work]) -> list[Any]:
    results: list[Any] = [None] * len(works)
    emits = [(number, _emitted(work)) for number, work in enumerate(works)]
    ids = insert_signals(connection, [signal for _, signals in emits for signal in signals])
    for number, signals in emits:
        if isinstance(works[number], Emit):
            results[number] = ids[: len(signals)]
        ids = ids[len(signals) :]
    requests = [(work.kind, work.target) for work in works if isinstance(work, AddRequest)]
    if requests:
        execute_rows(connection, "write/insert_requests", requests)
    plans = [work.plan for work in works if isinstance(work, Apply)]
    write_sessions(connection, merged(plan.sessions for plan in plans))
    for plan in plans:
        apply_plan(connection, plan)
    for number, work in enumerate(works):
        if isinstance(work, Prune):
            results[number] = _prune(connection, work)
        elif isinstance(work, PruneSessions):
            results[number] = prune_sessions(connection, work.before, work.limit)
    return results


def _emitted(work: Work) -> Sequence[NewSignal]:
    match work:
        case Emit(signals):
            return signals
        case Apply(plan):
            return plan.emitted
    return ()


def insert_signals(connection: sqlite3.Connection, signals: Sequence[NewSignal]) -> list[str]:
    """Store signals in this order; the ids (SIG-3, SIG-7)."""
    if not signals:
        return []
    execute_rows(connection, "write/insert_signals", [new_signal_row(new) for new in signals])
    ids = [new.id for new in signals]
    keyed = [(number, new.kind, new.key) for number, new in enumerate(signals) if new.key is not None]
    if keyed:
        for number, stored in select_rows(connection, "write/signals_by_key", keyed):
            ids[number] = stored
    return ids


def apply_plan(connection: sqlite3.Connection, plan: ChangePlan) -> None:
    """Write what a plan has of signals and runs; RowMismatch if a row is not what it must be."""
    signals = list(plan.signals.values())
    if signals and execute_rows(connection, "write/update_signals", [signal_row(each) for each in signals]) != len(
        signals
    ):
        raise RowMismatch(signals)
    if plan.positions is not None:
        first, last = plan.positions
        if connection.execute(statement("write/advance_position"), (last, first)).rowcount != 1:
            given = connection.execute("select last_position from concorde_meta").fetchone()[0]
            raise StoreError(f"position {first} was given out already (the last was {given}); it needs a higher one")
        new = [new_run_row(each, each.queued) for each in plan.runs.values() if each.queued is not None]
        execute_rows(connection, "write/insert_runs", new)
    old = [each for each in plan.runs.values() if each.queued is None]
    if old and execute_rows(connection, "write/update_runs", [run_row(each) for each in old]) != len(old):
        raise RowMismatch(old)
    if plan.finished:
        execute_rows(connection, "write/delete_requests", [(each,) for each in plan.finished])


def _prune(connection: sqlite3.Connection, work: Prune) -> Pruned:
    ids = connection.execute(statement("write/settled_before"), (work.before, work.limit)).fetchall()
    if not ids:
        return Pruned(signals=0, runs=0)
    runs = execute_rows(connection, "write/delete_runs", ids)
    return Pruned(signals=execute_rows(connection, "write/delete_signals", ids), runs=runs)

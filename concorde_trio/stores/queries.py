"""What is read from a queue in a SQL database: each query a function of a connection.

The law: what the worker reads costs in the rows that come back. A state stands in the text of a query, not among its
parameters, because only then a database uses the index that covers this state alone.
"""

from __future__ import annotations

from typing import Any

from concorde_trio.records import Request, Run, RunState, SignalRecord, SignalState, Unfinished
from concorde_trio.signals.store import Pruned, RunFilter, SignalFilter
from concorde_trio.stores.database import Reads
from concorde_trio.stores.rows import RUN, SIGNAL, read_request, read_run, read_signal

PENDING = f"select {SIGNAL} from signals where state = 'pending' order by seq limit ?"
PROCESSING = f"select {SIGNAL} from signals where state = 'processing' order by seq"
UNFINISHED_RUNS = (
    f"select {RUN} from runs where signal_id in (select id from signals where state = 'processing') "
    'order by signal_id, "index"'
)
REQUESTS = "select id, kind, target from concorde_requests order by id"
TAGS = "select tag from runs where tag is not null"
LAST_POSITION = "select last_position from concorde_meta"
QUEUE = "select queue from concorde_meta"
SIGNAL_BY_ID = f"select {SIGNAL} from signals where id = ?"
RUN_BY_ID = f"select {RUN} from runs where id = ?"
HAS_RESOURCE = "exists (select 1 from json_each(runs.resources) where value = ?)"
"""In the words of SQLite; other databases have their own."""


def bound(text: str) -> str | None:
    """``text`` as a parameter; null, which equals nothing, if it has lone surrogates, which nothing stored has."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text


def pending(connection: Reads, limit: int) -> list[SignalRecord]:
    """The first pending signals in seq order."""
    return [read_signal(row) for row in connection.execute(PENDING, (limit,)).fetchall()]


def requests(connection: Reads) -> list[Request]:
    """Every request, oldest first."""
    return [read_request(row) for row in connection.execute(REQUESTS).fetchall()]


def unfinished(connection: Reads) -> list[Unfinished]:
    """Processing signals with their runs, by first position; those without runs last, by seq."""
    connection.execute("begin")  # Both queries see the same commit.
    try:
        return unfinished_now(connection)
    finally:
        connection.execute("rollback")


def unfinished_now(connection: Reads) -> list[Unfinished]:
    """The same, in the transaction that the caller has begun."""
    signals = [read_signal(row) for row in connection.execute(PROCESSING).fetchall()]
    runs: dict[str, list[Run]] = {}
    for row in connection.execute(UNFINISHED_RUNS).fetchall():
        runs.setdefault(row[1], []).append(read_run(row))
    found = [Unfinished(signal=signal, runs=tuple(runs.get(signal.id, ()))) for signal in signals]
    return sorted(found, key=lambda each: (not each.runs, min((run.position for run in each.runs), default=0)))


def last_position(connection: Reads) -> int:
    """The highest position ever given to a run."""
    position: int = connection.execute(LAST_POSITION).fetchone()[0]
    return position


def queue(connection: Reads) -> str:
    """The name of the queue."""
    name: str = connection.execute(QUEUE).fetchone()[0]
    return name


def signal(connection: Reads, signal_id: str) -> SignalRecord | None:
    """One signal."""
    row = connection.execute(SIGNAL_BY_ID, (bound(signal_id),)).fetchone()
    return None if row is None else read_signal(row)


def run(connection: Reads, run_id: str) -> Run | None:
    """One run."""
    row = connection.execute(RUN_BY_ID, (bound(run_id),)).fetchone()
    return None if row is None else read_run(row)


def tags(connection: Reads) -> list[str]:
    """The tags of runs that have not ended."""
    return [tag for (tag,) in connection.execute(TAGS).fetchall()]


def signals_query(where: SignalFilter) -> tuple[str, list[Any]]:
    """The query of a list of signals, newest first."""
    conditions: list[str] = []
    parameters: list[Any] = []
    if where.state is not None:
        conditions.append(f"state = '{SignalState(where.state).value}'")
    if where.kind is not None:
        conditions.append("kind = ?")
        parameters.append(bound(where.kind))
    if where.since is not None:
        conditions.append("emitted_at >= ?")
        parameters.append(where.since)
    if where.before is not None:
        conditions.append("seq < ?")
        parameters.append(where.before)
    return _list(f"select {SIGNAL} from signals", conditions, "seq"), [*parameters, where.limit]


def runs_query(where: RunFilter, has_resource: str = HAS_RESOURCE) -> tuple[str, list[Any]]:
    """The query of a list of runs, newest first."""
    conditions: list[str] = []
    parameters: list[Any] = []
    if where.state is not None:
        conditions.append(f"state = '{RunState(where.state).value}'")
    if where.signal_id is not None:
        conditions.append("signal_id = ?")
        parameters.append(bound(where.signal_id))
    if where.kind is not None:
        conditions.append("exists (select 1 from signals where id = runs.signal_id and kind = ?)")
        parameters.append(bound(where.kind))
    if where.session is not None:
        conditions.append("session = ?")
        parameters.append(bound(where.session))
    if where.resource is not None:
        conditions.append(has_resource)
        parameters.append(bound(where.resource))
    if where.since is not None:
        conditions.append("queued_at >= ?")
        parameters.append(where.since)
    if where.before is not None:
        conditions.append("position < ?")
        parameters.append(where.before)
    return _list(f"select {RUN} from runs", conditions, "position"), [*parameters, where.limit]


def signals(connection: Reads, where: SignalFilter) -> list[SignalRecord]:
    """Signals, newest first."""
    return [read_signal(row) for row in connection.execute(*signals_query(where)).fetchall()]


def runs(connection: Reads, where: RunFilter, has_resource: str = HAS_RESOURCE) -> list[Run]:
    """Runs, newest first."""
    return [read_run(row) for row in connection.execute(*runs_query(where, has_resource)).fetchall()]


def counts(connection: Reads) -> dict[str, dict[str, int]]:
    """How many signals and runs are in each state: the few by their indexes, those done by what is left."""
    connection.execute("begin")
    try:
        return {
            "signals": _counts(connection, "signals", SignalState, "done"),
            "runs": _counts(connection, "runs", RunState, "done"),
        }
    finally:
        connection.execute("rollback")


def prunable(connection: Reads, before: float, old_sessions: str, no_limit: int | None) -> Pruned:
    """How many rows a prune would remove. ``old_sessions``: the query of those it may, of a time and a limit."""
    old = "select id from signals where state in ('done', 'failed') and settled_at < ?"
    connection.execute("begin")
    try:
        return Pruned(
            signals=connection.execute(f"select count(*) from ({old}) as old", (before,)).fetchone()[0],
            runs=connection.execute(f"select count(*) from runs where signal_id in ({old})", (before,)).fetchone()[0],
            sessions=connection.execute(f"select count(*) from ({old_sessions}) as old", (before, no_limit)).fetchone()[
                0
            ],
        )
    finally:
        connection.execute("rollback")


def _counts(connection: Reads, table: str, states: type[SignalState | RunState], rest: str) -> dict[str, int]:
    found = {
        state.value: connection.execute(f"select count(*) from {table} where state = '{state.value}'").fetchone()[0]
        for state in states
        if state.value != rest
    }
    total = connection.execute(f"select count(*) from {table}").fetchone()[0]
    return {state.value: found.get(state.value, total - sum(found.values())) for state in states}


def _list(select: str, conditions: list[str], order: str) -> str:
    where = f" where {' and '.join(conditions)}" if conditions else ""
    return f"{select}{where} order by {order} desc limit ?"

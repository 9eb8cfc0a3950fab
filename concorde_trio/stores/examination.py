"""What ``doctor`` reads of a queue in a SQL database: the rows that no rule allows, and what is at hand, in one snapshot.

The law: it changes nothing, and a check is a query that gives the ids of what is wrong, or nothing. A constraint of the schema
forbids most of it; but a tool that edits rows can switch those off (SQLite's foreign keys are off unless asked for).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from concorde_trio._sansio.diagnosis import PATIENCE, REPORT, START, Evidence, Finding, finding
from concorde_trio._sansio.lifecycle import MAY_BE_EMPTY, RUN_COLUMNS, SIGNAL_COLUMNS
from concorde_trio.stores import queries
from concorde_trio.stores.copied_tables import TABLES, CopiedTable
from concorde_trio.stores.database import Reads

MOST = 1000
"""Rows at most that one check gives."""

DELETE = "they belong to nothing: with the worker stopped, and a backup made, delete them"

ENDED = "state in ('done', 'failed')"
OPEN = "state in ('pending', 'running')"


@attrs.frozen
class RowCheck:
    """A query of ids, which gives none if all is well. ``?`` in it is the wall clock less ``PATIENCE``.

    ``cut``: while no worker has the queue, a crash left it so, and the next start puts it right.
    """

    rule: str
    what: str
    query: str
    advice: str = REPORT
    cut: bool = False


def _columns(table: str, columns: Mapping[Any, Mapping[str, bool]]) -> str:
    """The ids of rows whose columns are not set and null as their state demands (``lifecycle``)."""
    wrong = []
    for state, demands in columns.items():
        for column, wanted in demands.items():
            test = f"{column} is null" if wanted else f"{column} is not null"
            if wanted and column in ("error", "text", "phase") and column not in MAY_BE_EMPTY:
                test = f"coalesce({column}, '') = ''"
            wrong.append(f"(state = '{state.value}' and {test})")
    return f"select id from {table} where {' or '.join(wrong)}"


CHECKS: tuple[RowCheck, ...] = (
    RowCheck(
        "SIG-4", "signals have columns that their state forbids, or lack some", _columns("signals", SIGNAL_COLUMNS)
    ),
    RowCheck(
        "RUN-2, TAG-4",
        "runs have columns that their state forbids (a tag, an error), or lack some",
        _columns("runs", RUN_COLUMNS),
    ),
    RowCheck(
        "PST-1",
        "runs have not ended, though their signal is settled",
        f"select r.id from runs r join signals s on s.id = r.signal_id where r.{OPEN} and s.{ENDED}",
        f"no worker takes them up again; cancel them by hand, or retry their signal; {REPORT}",
    ),
    RowCheck(
        "RUN-2",
        "signals are done, though a run of theirs is not",
        "select distinct s.id from signals s join runs r on r.signal_id = s.id "
        "where s.state = 'done' and r.state in ('failed', 'limited', 'cancelled')",
    ),
    RowCheck(
        "CLM-1",
        "runs belong to signals that were never claimed",
        "select r.id from runs r join signals s on s.id = r.signal_id where s.state = 'pending'",
    ),
    RowCheck(
        "LCK-2",
        "runs have another seq than their signal, which decides their order",
        "select r.id from runs r join signals s on s.id = r.signal_id where r.signal_seq <> s.seq",
    ),
    RowCheck(
        "STP-5",
        "runs have no signal",
        "select id from runs where not exists (select 1 from signals where signals.id = runs.signal_id)",
        DELETE,
    ),
    RowCheck(
        "STP-5",
        "messages have no session",
        "select session || ' ' || cast(seq as text) from messages "
        "where not exists (select 1 from sessions where sessions.name = messages.session)",
        DELETE,
    ),
    RowCheck(
        "STP-5",
        "inputs have no session",
        "select id from inputs where not exists (select 1 from sessions where sessions.name = inputs.session)",
        DELETE,
    ),
    RowCheck(
        "SES-17",
        "sessions have another number of messages than their row says",
        "select name from sessions where messages <> (select count(*) from messages m where m.session = sessions.name)",
    ),
    RowCheck(
        "SES-10a, SES-20",
        "inputs wait for a signal that is settled, or gone",
        "select i.id from inputs i left join signals s on s.id = i.signal_id where i.state = 'queued' "
        "and i.signal_id is not null and (s.id is null or (s.settled_at is not null and s.settled_at < ?))",
        f"restart the worker: it settles them as it starts; {REPORT}",
        cut=True,
    ),
    RowCheck(
        "SES-21",
        "inputs are the prompts of runs that do not run, and are still queued",
        # The prompt of run R is the input prompt_R.
        "select i.id from inputs i where i.state = 'queued' and i.prompt <> false and i.at < ? and not exists (select 1 from "
        "runs r where r.id = substr(i.id, 8) and (r.state = 'running' or r.ended_at >= ?))",
        f"restart the worker: it closes them as it starts; {REPORT}",
        cut=True,
    ),
)


def examine(
    connection: Reads,
    *,
    now: float,
    served: Callable[[Reads], bool],
    highest: Callable[[Reads, CopiedTable], int],
    owners: Callable[[Reads], Mapping[str, bool] | None] = lambda _: None,
    more: tuple[RowCheck, ...] = (),
) -> Evidence:
    """All of it. ``served``: whether a worker has the queue now. ``highest``: the last number of a table's counter.

    ``owners``: see ``Evidence``; ``more``: checks of tables that this database alone has.
    """
    before = served(connection)  # and after, so that one that comes or goes meanwhile is not wronged
    connection.execute("begin")
    try:
        rows = [each for check in (*CHECKS, *more) for each in _found(connection, check, now, before)]
        rows += _counters(connection, highest)
        unfinished = queries.unfinished_now(connection)
        executing = owners(connection)
    finally:
        connection.execute("rollback")
    after = served(connection)
    return Evidence(served=before or after, now=now, unfinished=unfinished, owners=executing, rows=rows)


def _found(connection: Reads, check: RowCheck, now: float, served: bool) -> list[Finding]:
    cut = check.cut and not served
    # A stopped queue has nobody who is about to write.
    parameters = [now - PATIENCE if served else now + PATIENCE] * check.query.count("?")
    ids = [str(each) for (each,) in connection.execute(f"{check.query} limit {MOST}", parameters).fetchall()]
    return list(finding("cut" if cut else "broken", check.rule, check.what, ids, START if cut else check.advice))


def _counters(connection: Reads, highest: Callable[[Reads, CopiedTable], int]) -> list[Finding]:
    wrong = []
    for table in TABLES:
        if table.counter is not None:
            there = connection.execute(f'select coalesce(max("{table.counter}"), 0) from {table.name}').fetchone()[0]
            if there > (given := highest(connection, table)):
                wrong.append(f"{table.name}: {there} is there, {given} was the last")
    there = connection.execute("select coalesce(max(position), 0) from runs").fetchone()[0]
    if there > (given := queries.last_position(connection)):
        wrong.append(f"runs: {there} is there, {given} was the last")
    advice = f"a number would be given out a second time; restore the backup from before the rows were loaded; {REPORT}"
    return list(finding("broken", "SIG-3", "numbers are higher than the last that was given out", wrong, advice))

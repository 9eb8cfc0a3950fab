"""The schema says what the lifecycle says, and the worker's queries cost in what they give."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from concorde_trio._sansio.lifecycle import MAY_BE_EMPTY, RUN_COLUMNS, SIGNAL_COLUMNS
from concorde_trio.records import RequestKind, RunState, SignalPhase, SignalRecord, SignalState
from concorde_trio.records import Run as RunRecord
from concorde_trio.signals.store import RunFilter, SignalFilter
from concorde_trio.stores import queries
from concorde_trio.stores.sqlite_sql import each_statement, migrations, statement

SIGNAL: dict[str, Any] = {"id": "s", "kind": "k", "payload": "null", "emitted_at": 1.0}
RUN: dict[str, Any] = {
    "position": 1,
    "id": "r",
    "signal_id": "s",
    "signal_seq": 1,
    "index": 0,
    "session": "ann",
    "prompt": "do it",
    "resources": "[]",
    "queued_at": 1.0,
}
VALUES: dict[str, tuple[Any, ...]] = {
    "phase": (None, *(phase.value for phase in SignalPhase)),
    "claimed_at": (None, 2.0),
    "settled_at": (None, 3.0),
    "started_at": (None, 2.0),
    "ended_at": (None, 3.0),
    "error": (None, "", "why"),
    "text": (None, "", "said"),
    "usage": (None, "{}"),
    "tag": (None, "a-tag-of-16-chars"),
}


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """An empty queue in memory."""
    made = sqlite3.connect(":memory:", isolation_level=None)
    for _, script in migrations():
        for each in each_statement(script):
            made.execute(each)
    yield made
    made.close()


def insert(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> bool:
    """True if the schema takes the row (which is not kept)."""
    names = ", ".join(f'"{name}"' for name in row)
    connection.execute("begin")
    try:
        connection.execute(f"insert into {table} ({names}) values ({', '.join('?' * len(row))})", tuple(row.values()))
    except sqlite3.IntegrityError:
        return False
    finally:
        connection.execute("rollback")
    return True


def allowed(row: dict[str, Any], columns: Any) -> bool:
    """What the lifecycle's table says of it: set or null as demanded; no text is empty but where it may be."""
    return all((row[name] is not None) == wanted for name, wanted in columns.items()) and not any(
        row[name] == "" for name in row if name not in MAY_BE_EMPTY
    )


@pytest.mark.parametrize("state", SignalState)
def test_check_constraints_of_signals_say_what_the_lifecycle_says(
    connection: sqlite3.Connection, state: SignalState
) -> None:
    """SIG-4: every combination of what a row may hold is taken or refused as the table says."""
    names = ("phase", "claimed_at", "settled_at", "error")
    for values in product(*(VALUES[name] for name in names)):
        row = dict(zip(names, values, strict=True))
        assert insert(connection, "signals", {**SIGNAL, "state": state.value, **row}) == allowed(
            row, SIGNAL_COLUMNS[state]
        ), (state, row)


@pytest.mark.parametrize("state", RunState)
def test_check_constraints_of_runs_say_what_the_lifecycle_says(connection: sqlite3.Connection, state: RunState) -> None:
    """RUN-2, TAG-4: every combination of what a row may hold is taken or refused as the table says."""
    names = ("started_at", "ended_at", "error", "text", "usage", "tag")
    for values in product(*(VALUES[name] for name in names)):
        row = dict(zip(names, values, strict=True))
        assert insert(connection, "runs", {**RUN, "state": state.value, **row}) == allowed(row, RUN_COLUMNS[state]), (
            state,
            row,
        )


@pytest.mark.parametrize(
    ("table", "row", "column", "values"),
    [
        ("signals", SIGNAL, "state", SignalState),
        ("runs", RUN, "state", RunState),
        ("concorde_requests", {"target": "t"}, "kind", RequestKind),
    ],
)
def test_only_the_names_of_the_glossary_are_taken(
    connection: sqlite3.Connection, table: str, row: dict[str, Any], column: str, values: type[SignalState]
) -> None:
    """SIG-4, RUN-2, RUN-6: the schema knows the same words as the records."""
    sql = connection.execute("select sql from sqlite_schema where name = ?", (table,)).fetchone()[0]
    (words,) = re.findall(rf"constraint \w+_{column} check \({column} in \(([^)]*)\)\)", sql)
    assert re.findall(r"'(\w+)'", words) == [each.value for each in values]
    assert not insert(connection, table, {**row, column: "other"})


def test_columns_carry_the_names_of_the_records_fields(connection: sqlite3.Connection) -> None:
    """SRV-2: operators query them."""
    for table, record in (("signals", SignalRecord), ("runs", RunRecord)):
        columns = {row[1] for row in connection.execute(f"pragma table_info({table})")}
        assert columns == {field.name for field in record.__attrs_attrs__}


AT_WORK = {
    "pending": (queries.PENDING, "signals_pending"),
    "unfinished signals": (queries.PROCESSING, "signals_processing"),
    "runs of unfinished": (queries.UNFINISHED_RUNS, "runs_by_signal"),
    "tags": (queries.TAGS, "runs_tagged"),
    "one signal": (queries.SIGNAL_BY_ID, "sqlite_autoindex_signals_1"),
    "one run": (queries.RUN_BY_ID, "sqlite_autoindex_runs_1"),
    "settled": (statement("write/settled_before"), "signals_settled"),
    "signals by state": (queries.signals_query(SignalFilter(state=SignalState.FAILED))[0], "signals_failed"),
    "signals by kind": (queries.signals_query(SignalFilter(kind="k", before=9))[0], "signals_by_kind"),
    "runs by signal": (queries.runs_query(RunFilter(signal_id="s"))[0], "runs_by_signal"),
    "runs by session": (queries.runs_query(RunFilter(session="s", before=9))[0], "runs_by_session"),
    "runs running": (queries.runs_query(RunFilter(state=RunState.RUNNING))[0], "runs_running"),
    "runs waiting": (queries.runs_query(RunFilter(state=RunState.PENDING))[0], "runs_pending"),
    "runs limited": (queries.runs_query(RunFilter(state=RunState.LIMITED))[0], "runs_limited"),
    "update signals": (statement("write/update_signals"), "sqlite_autoindex_signals_1"),
    "update runs": (statement("write/update_runs"), "sqlite_autoindex_runs_1"),
    "signals by key": (statement("write/signals_by_key"), "signals_by_key"),
    "delete runs": (statement("write/delete_runs"), "runs_by_signal"),
    "delete signals": (statement("write/delete_signals"), "sqlite_autoindex_signals_1"),
    "delete requests": (statement("write/delete_requests"), "INTEGER PRIMARY KEY"),
}


@pytest.mark.parametrize("name", AT_WORK)
def test_no_query_at_work_scans_a_table(connection: sqlite3.Connection, name: str) -> None:
    """LCK-6, SIG-6: its cost grows with the rows that it gives, never with history or with what waits."""
    sql, index = AT_WORK[name]
    # Plans must be good for an empty file and for one whose statistics were never taken; that is how queues start.
    plan = [row[3] for row in connection.execute(f"explain query plan {sql}", [1] * sql.count("?"))]
    assert any(index in step for step in plan), plan
    for step in plan:
        # A scan is one of a partial index, which covers what is asked for and nothing else.
        assert not re.match(
            r"SCAN (signals|runs|concorde_requests)\b(?! USING (COVERING )?INDEX (signals|runs)_)", step
        ), plan
        # Sorted are only the runs of one signal.
        assert "TEMP B-TREE" not in step or name == "runs by signal", plan


def test_lists_without_a_filter_go_down_the_primary_key(connection: sqlite3.Connection) -> None:
    """SRV-2: a page costs a page."""
    for sql in (queries.signals_query(SignalFilter(before=9))[0], queries.runs_query(RunFilter(before=9))[0]):
        plan = [row[3] for row in connection.execute(f"explain query plan {sql}", [9, 9])]
        assert len(plan) == 1
        assert "USING INTEGER PRIMARY KEY" in plan[0]

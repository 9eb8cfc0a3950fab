"""What a session's loop reads and writes costs in what it is, not in what was before."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from concorde_trio._sansio.session_changes import SessionChange, SettleInputs
from concorde_trio.messages import InputState, Role
from concorde_trio.sessions.store import SessionFilter, SessionRecord, StoredInput
from concorde_trio.stores import SqliteStore
from concorde_trio.stores import session_queries as queries
from concorde_trio.stores.sqlite_sql import each_statement, migrations, statement
from concorde_trio.testing.session_store_checks.samples import LATER, given, said, save, summed


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """An empty queue in memory."""
    made = sqlite3.connect(":memory:", isolation_level=None)
    for _, script in migrations():
        for each in each_statement(script):
            made.execute(each)
    yield made
    made.close()


AT_WORK = {
    "one session": (queries.SESSION_BY_NAME, "sqlite_autoindex_sessions_1", "inputs_queued"),
    "sessions": (queries.sessions_query(SessionFilter())[0], "sessions_by_updated", "inputs_queued"),
    "next page": (queries.sessions_query(SessionFilter(before=(1.0, "a"), prefix="b"))[0], "sessions_by_updated ("),
    "last seq": (queries.LAST_SEQ, "sqlite_autoindex_messages_1 (session"),
    "summary": (queries.SUMMARY, "messages_summaries (session"),
    "kept": (queries.KEPT, "sqlite_autoindex_messages_1 (session=? AND seq="),
    "since": (queries.SINCE, "sqlite_autoindex_messages_1 (session=? AND seq>"),
    "messages": (queries.MESSAGES, "sqlite_autoindex_messages_1 (session=? AND seq>"),
    "latest messages": (queries.LATEST_MESSAGES, "sqlite_autoindex_messages_1 (session"),
    "waiting": (queries.WAITING, "inputs_queued (session"),
    "unsettled": (queries.UNSETTLED, "inputs_unsettled"),
    "unsettled of one": (queries.UNSETTLED_OF, "inputs_queued (session"),
    "one input": (queries.INPUT_BY_ID, "sqlite_autoindex_inputs_1"),
    "update sessions": (statement("write/update_sessions"), "sqlite_autoindex_sessions_1"),
    "update inputs": (statement("write/update_inputs"), "sqlite_autoindex_inputs_1"),
    "old sessions": (statement("write/old_sessions"), "sessions_by_updated (updated_at", "inputs_queued", "runs_pending"),
    "delete messages": (statement("write/delete_session_messages"), "sqlite_autoindex_messages_1"),
    "delete inputs": (statement("write/delete_session_inputs"), "inputs_by_session"),
    "delete sessions": (statement("write/delete_sessions"), "sqlite_autoindex_sessions_1"),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_WORK)
def test_no_query_of_a_session_scans_a_table(connection: sqlite3.Connection, name: str) -> None:
    """SES-17, SES-19: each goes down an index to what it gives."""
    sql, *indices = AT_WORK[name]
    plan = [row[3] for row in connection.execute(f"explain query plan {sql}", [1] * sql.count("?"))]
    for index in indices:
        assert any(index in step for step in plan), plan
    for step in plan:
        assert not re.match(r"SCAN (sessions|messages|inputs|runs)\b(?! USING (COVERING )?INDEX \w+_[a-z])", step), plan
        assert "TEMP B-TREE" not in step or name == "kept", plan


def test_columns_carry_the_names_of_the_records_fields(connection: sqlite3.Connection) -> None:
    """SRV-2: operators query them."""
    columns = {row[1] for row in connection.execute("pragma table_info(sessions)")}
    assert columns == {field.name for field in SessionRecord.__attrs_attrs__} - {"queued"}
    columns = {row[1] for row in connection.execute("pragma table_info(inputs)")}
    fields = {field.name for field in StoredInput.__attrs_attrs__} - {"input"}
    assert columns == fields | {"number", "id", "text", "at", "sender", "attachments"}


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [("messages", "role", [each.value for each in Role]), ("inputs", "state", [each.value for each in InputState])],
)
def test_the_schema_knows_the_words_of_the_glossary(
    connection: sqlite3.Connection, table: str, column: str, words: list[str]
) -> None:
    """SES-10a, SES-15: and no other."""
    sql = connection.execute("select sql from sqlite_schema where name = ?", (table,)).fetchone()[0]
    (listed,) = re.findall(rf"check \({column} in \(([^)]*)\)\)", sql)
    assert re.findall(r"'(\w+)'", listed) == words


def steps(connection: sqlite3.Connection, query: Callable[[sqlite3.Connection], object]) -> int:
    """How many steps SQLite's machine takes for it."""
    taken = 0

    def step() -> int:
        nonlocal taken
        taken += 1
        return 0

    connection.set_progress_handler(step, 1)
    query(connection)
    connection.set_progress_handler(None, 0)
    return taken


def test_what_a_loop_does_takes_as_many_steps_after_years(tmp_path: Path) -> None:
    """SES-15, SES-17, SES-19: a load, and a list of sessions, with 10 and with 3,000 messages and inputs before."""
    counted = []
    for before in (10, 3000):
        path = tmp_path / f"{before}.db"

        async def fill(path: Path = path, before: int = before) -> None:
            store = SqliteStore(path)
            async with store.open():
                changes: list[SessionChange] = [save(), *(said(seq) for seq in range(1, before + 1))]
                changes += [given(f"i{number}") for number in range(before)]
                changes += [SettleInputs(tuple(f"i{number}" for number in range(before)), InputState.DELIVERED, LATER)]
                changes += [summed(before + 1, before - 1, keeps=(2,)), said(before + 2), given("waits")]
                await store.apply(changes)

        trio.run(fill)
        connection = sqlite3.connect(path, isolation_level=None)
        loaded = queries.load_session(connection, "ann")
        assert loaded is not None
        assert [each.seq for each in loaded.messages] == [before + 1, 2, before, before + 2]
        assert [each.input.id for each in loaded.inputs] == ["waits"]
        counted.append(
            [
                steps(connection, lambda each: queries.load_session(each, "ann")),
                steps(connection, lambda each: queries.sessions(each, SessionFilter(limit=200))),
                steps(connection, lambda each: queries.latest_messages(each, "ann", None, 3)),
                steps(connection, lambda each: queries.unsettled_inputs(each, None)),
            ]
        )
        connection.close()
    for few, many in zip(*counted, strict=True):
        assert many <= few + 20, counted

"""What a writer does with sessions inside its transaction: rows, messages, inputs, and removing what is old.

The law: one statement for each kind of row, for all sessions of a commit. A session's row comes first, since messages
and inputs refer to it.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from concorde_trio.stores.session_plan import InputDelta, NewMessage, SessionDelta, SessionPlan
from concorde_trio.stores.sqlite_mismatch import RowMismatch
from concorde_trio.stores.sqlite_sql import execute_rows, statement


def write_sessions(connection: sqlite3.Connection, plan: SessionPlan) -> None:
    """Write a plan; RowMismatch if an input is not queued."""
    sessions = [_session_row(each) for each in plan.sessions.values()]
    if sessions and execute_rows(connection, "write/update_sessions", sessions) != len(sessions):
        execute_rows(connection, "write/insert_sessions", sessions)
    if plan.messages:
        execute_rows(connection, "write/insert_messages", [_message_row(each) for each in plan.messages.values()])
    new = [_new_input_row(each) for each in plan.inputs.values() if each.new is not None]
    if new:
        execute_rows(connection, "write/insert_inputs", new)
    old = [each for each in plan.inputs.values() if each.new is None]
    if old and execute_rows(connection, "write/update_inputs", [_input_row(each) for each in old]) != len(old):
        raise RowMismatch(old)


def prune_sessions(connection: sqlite3.Connection, before: float, limit: int) -> int:
    """Remove sessions last saved before this time, the oldest; how many."""
    names = connection.execute(statement("write/old_sessions"), (before, limit)).fetchall()
    if not names:
        return 0
    execute_rows(connection, "write/delete_session_messages", names)
    execute_rows(connection, "write/delete_session_inputs", names)
    return execute_rows(connection, "write/delete_sessions", names)


def _session_row(delta: SessionDelta) -> tuple[Any, ...]:
    return (
        delta.name,
        delta.made_at,
        delta.saved_at,
        delta.last_epoch,
        delta.last_registration,
        delta.usage,
        None if delta.held is None else int(delta.held),
        delta.messages,
    )


def _message_row(new: NewMessage) -> tuple[Any, ...]:
    return new.session, new.seq, new.role.value, new.at, new.covers, new.document


def _new_input_row(delta: InputDelta) -> tuple[Any, ...]:
    assert delta.new is not None
    change, attachments = delta.new
    given = change.input
    return (
        given.id,
        change.session,
        given.text,
        given.at,
        given.sender,
        attachments,
        int(change.prompt),
        delta.state.value,
        delta.signal_id,
        delta.settled_at,
    )


def _input_row(delta: InputDelta) -> tuple[Any, ...]:
    return delta.id, delta.state.value, delta.signal_id, delta.settled_at

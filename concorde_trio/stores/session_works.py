"""What a writer does with sessions inside its transaction: rows, messages, inputs, and removing what is old.

The law: one statement for each kind of row, for all sessions of a commit. A session's row comes first, since messages
and inputs refer to it.
"""

from __future__ import annotations

from typing import Any

from concorde_trio.stores.database import Writes
from concorde_trio.stores.mismatch import RowMismatch
from concorde_trio.stores.session_plan import InputDelta, NewMessage, SessionDelta, SessionPlan


def write_sessions(database: Writes, plan: SessionPlan) -> None:
    """Write a plan; RowMismatch if an input is not queued."""
    sessions = [_session_row(each) for each in plan.sessions.values()]
    if sessions and database.execute_rows("update_sessions", sessions) != len(sessions):
        database.execute_rows("insert_sessions", sessions)
    if plan.messages:
        database.execute_rows("insert_messages", [_message_row(each) for each in plan.messages.values()])
    new = [_new_input_row(each) for each in plan.inputs.values() if each.new is not None]
    if new:
        database.execute_rows("insert_inputs", new)
    old = [each for each in plan.inputs.values() if each.new is None]
    if old and database.execute_rows("update_inputs", [_input_row(each) for each in old]) != len(old):
        raise RowMismatch(old)


def prune_sessions(database: Writes, before: float, limit: int) -> int:
    """Remove sessions last saved before this time, the oldest; how many."""
    names = database.execute_named("old_sessions", (before, limit)).fetchall()
    if not names:
        return 0
    database.execute_rows("delete_session_messages", names)
    database.execute_rows("delete_session_inputs", names)
    return database.execute_rows("delete_sessions", names)


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

"""What is read of sessions from a queue in a SQL database: each query a function of a connection.

The law: what a session's loop reads costs in what comes back, never in the session's history: it starts from the latest
summary, and what is queued has an index of its own. A state stands in the text of a query, for the index's sake.
"""

from __future__ import annotations

import json
from typing import Any

from concorde_trio._sansio.json_values import decode
from concorde_trio.messages import Input, InputState, Message
from concorde_trio.sessions.store import SessionFilter, SessionRecord, StoredInput, StoredSession
from concorde_trio.stores.database import Cursor, Reads
from concorde_trio.stores.queries import bound
from concorde_trio.stores.session_change_checks import read_message, read_usage

SESSION = (
    "name, created_at, updated_at, last_epoch, last_registration, usage, held, messages, "
    "(select count(*) from inputs where inputs.session = sessions.name and inputs.state = 'queued')"
)
INPUT = "session, id, text, at, sender, attachments, state, prompt, signal_id, settled_at"
SESSION_BY_NAME = f"select {SESSION} from sessions where name = ?"
LAST_SEQ = "select max(seq) from messages where session = ?"
SUMMARY = "select document from messages where session = ? and role = 'summary' order by seq desc limit 1"
KEPT = "select document from messages where session = ? and seq in (select value from json_each(?)) order by seq"
"""In the words of SQLite; it is given the seqs as a JSON list."""
SINCE = "select document from messages where session = ? and seq > ? and seq <> ? order by seq"
WAITING = f"select {INPUT} from inputs where session = ? and state = 'queued' and signal_id is null order by number"
MESSAGES = "select document from messages where session = ? and seq > ? order by seq limit ?"
LATEST_MESSAGES = "select document from messages where session = ? and seq <= ? order by seq desc limit ?"
INPUT_BY_ID = f"select {INPUT} from inputs where id = ?"
UNSETTLED = f"select {INPUT} from inputs where state = 'queued' order by number"
UNSETTLED_OF = f"select {INPUT} from inputs where session = ? and state = 'queued' order by number"

_LAST = 2**63 - 1


def load_session(connection: Reads, name: str, kept_query: str = KEPT) -> StoredSession | None:
    """What a loop starts from."""
    name_or_none = bound(name)
    connection.execute("begin")  # All queries see the same commit.
    try:
        record = session(connection, name)
        if record is None:
            return None
        messages: list[Message] = []
        covers = summary_seq = 0
        found = connection.execute(SUMMARY, (name_or_none,)).fetchone()
        if found is not None:
            summary = read_message(found[0])
            assert summary.covers is not None
            messages.append(summary)
            covers, summary_seq = summary.covers, summary.seq
            # Sorted out here: a bound on seq in the query would be the way that SQLite goes, through all of history.
            kept = [seq for seq in set(summary.keeps) if seq <= covers]
            messages += _messages(connection.execute(kept_query, (name_or_none, json.dumps(kept))))
        messages += _messages(connection.execute(SINCE, (name_or_none, covers, summary_seq)))
        return StoredSession(
            record=record,
            last_seq=connection.execute(LAST_SEQ, (name_or_none,)).fetchone()[0] or 0,
            messages=tuple(messages),
            inputs=tuple(read_input(row) for row in connection.execute(WAITING, (name_or_none,)).fetchall()),
        )
    finally:
        connection.execute("rollback")


def session(connection: Reads, name: str) -> SessionRecord | None:
    """A session's row."""
    row = connection.execute(SESSION_BY_NAME, (bound(name),)).fetchone()
    return None if row is None else read_session(row)


def sessions_query(where: SessionFilter) -> tuple[str, list[Any]]:
    """The query of a list of sessions, most recently updated first, then by name downwards."""
    conditions: list[str] = []
    parameters: list[Any] = []
    if where.prefix is not None:
        conditions.append("substr(name, 1, length(?)) = ?")
        parameters += [bound(where.prefix)] * 2
    if where.before is not None:
        conditions.append("(updated_at, name) < (?, ?)")
        parameters += [where.before[0], bound(where.before[1])]
    wanted = f" where {' and '.join(conditions)}" if conditions else ""
    return f"select {SESSION} from sessions{wanted} order by updated_at desc, name desc limit ?", [
        *parameters,
        where.limit,
    ]


def sessions(connection: Reads, where: SessionFilter) -> list[SessionRecord]:
    """Sessions, most recently updated first."""
    return [read_session(row) for row in connection.execute(*sessions_query(where)).fetchall()]


def messages(connection: Reads, name: str, after: int, limit: int) -> list[Message]:
    """Messages with a higher seq, in order."""
    return _messages(connection.execute(MESSAGES, (bound(name), min(after, _LAST), limit)))


def latest_messages(connection: Reads, name: str, before: int | None, limit: int) -> list[Message]:
    """The last messages, or the last of those with a lower seq, in order."""
    last = _LAST if before is None else min(before - 1, _LAST)
    return _messages(connection.execute(LATEST_MESSAGES, (bound(name), last, limit)))[::-1]


def input_by_id(connection: Reads, input_id: str) -> StoredInput | None:
    """One row of the ledger."""
    row = connection.execute(INPUT_BY_ID, (bound(input_id),)).fetchone()
    return None if row is None else read_input(row)


def unsettled_inputs(connection: Reads, name: str | None) -> list[StoredInput]:
    """Queued inputs of one session or of all, in the order in which they were accepted."""
    if name is None:
        cursor = connection.execute(UNSETTLED)
    else:
        cursor = connection.execute(UNSETTLED_OF, (bound(name),))
    return [read_input(row) for row in cursor.fetchall()]


def read_session(row: tuple[Any, ...]) -> SessionRecord:
    """A row of the columns ``SESSION``."""
    return SessionRecord(
        name=row[0],
        created_at=row[1],
        updated_at=row[2],
        last_epoch=row[3],
        last_registration=row[4],
        usage=read_usage(row[5]),
        held=bool(row[6]),
        messages=row[7],
        queued=row[8],
    )


def read_input(row: tuple[Any, ...]) -> StoredInput:
    """A row of the columns ``INPUT``."""
    name, input_id, text, at, sender, attachments, state, prompt, signal_id, settled_at = row
    return StoredInput(
        session=name,
        input=Input(id=input_id, text=text, at=at, sender=sender, attachments=tuple(decode(attachments))),
        state=InputState(state),
        prompt=bool(prompt),
        signal_id=signal_id,
        settled_at=settled_at,
    )


def _messages(cursor: Cursor) -> list[Message]:
    return [read_message(document) for (document,) in cursor.fetchall()]

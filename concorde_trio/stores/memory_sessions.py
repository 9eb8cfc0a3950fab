"""Sessions in memory, as plain dicts: rows, messages, the ledger of inputs.

The law: as in ``memory_tables``, changes are applied one at a time to a copy of what they touch, and written down only
when all of them were right. Messages and attachments are kept as JSON text, so that nobody can change what is stored.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable
from typing import Any

import attrs

from concorde_trio._sansio.json_values import decode
from concorde_trio._sansio.session_changes import AddInput, AddMessage, LinkInputs, SaveSession, SettleInputs
from concorde_trio.errors import StoreError
from concorde_trio.messages import InputState, Message, Role
from concorde_trio.records import Usage
from concorde_trio.sessions.store import SessionFilter, SessionRecord, StoredInput, StoredSession
from concorde_trio.stores.session_change_checks import (
    SessionRowChange,
    check_input,
    check_link,
    check_message,
    check_save,
    check_settle_inputs,
    message_name,
    read_message,
)


@attrs.define
class _Session:
    """One session: its row, its messages by seq, its seqs in order, its latest summary, its queued inputs in order."""

    record: SessionRecord
    texts: dict[int, str] = attrs.field(factory=dict)
    seqs: list[int] = attrs.field(factory=list)
    summary: int | None = None
    queued: dict[str, None] = attrs.field(factory=dict)
    inputs: list[str] = attrs.field(factory=list)


class MemorySessions:
    """What a queue in memory knows of sessions."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._inputs: dict[str, StoredInput] = {}
        self._unsettled: dict[str, None] = {}

    # --- writes ---------------------------------------------------------------------------------------------

    def row(self, name: str) -> SessionRecord | None:
        """The row as it is stored, without what is counted."""
        session = self._sessions.get(name)
        return None if session is None else session.record

    def has_message(self, name: str, seq: int) -> bool:
        """True if there is one under this seq."""
        session = self._sessions.get(name)
        return session is not None and seq in session.texts

    def stored_input(self, input_id: str) -> StoredInput | None:
        """One row of the ledger, its attachments as text."""
        return self._inputs.get(input_id)

    def write(self, staged: StagedSessions) -> None:
        """Write down what was staged; it cannot fail."""
        for record in staged.rows.values():
            session = self._sessions.get(record.name)
            if session is None:
                self._sessions[record.name] = _Session(record)
            else:
                session.record = record
        for (name, seq), (role, text) in staged.messages.items():
            session = self._sessions[name]
            session.texts[seq] = text
            insort(session.seqs, seq)
            if role is Role.SUMMARY:
                session.summary = max(seq, session.summary or 0)
        for stored in staged.inputs.values():
            session, input_id = self._sessions[stored.session], stored.input.id
            if input_id not in self._inputs:
                session.inputs.append(input_id)
            self._inputs[input_id] = stored
            if stored.state is InputState.QUEUED:
                session.queued.setdefault(input_id)
                self._unsettled.setdefault(input_id)
            else:
                session.queued.pop(input_id, None)
                self._unsettled.pop(input_id, None)

    def prune(self, before: float, limit: int | None, needed: Collection[str]) -> int:
        """Remove the oldest sessions last saved before this time, but those needed or with a queued input."""
        old = [
            session.record
            for session in self._sessions.values()
            if session.record.updated_at < before and not session.queued and session.record.name not in needed
        ]
        gone = sorted(old, key=lambda record: (record.updated_at, record.name))[:limit]
        for record in gone:
            for input_id in self._sessions.pop(record.name).inputs:
                del self._inputs[input_id]
        return len(gone)

    # --- reads ----------------------------------------------------------------------------------------------

    def load(self, name: str) -> StoredSession | None:
        """What a loop starts from; its cost is in what comes back."""
        session = self._sessions.get(name)
        if session is None:
            return None
        messages: list[Message] = []
        if session.summary is None:
            seqs = session.seqs
        else:
            summary = read_message(session.texts[session.summary])
            assert summary.covers is not None
            messages.append(summary)
            kept = sorted(seq for seq in set(summary.keeps) if seq <= summary.covers and seq in session.texts)
            seqs = [*kept, *session.seqs[bisect_right(session.seqs, summary.covers) :]]
            seqs = [seq for seq in seqs if seq != summary.seq]
        messages += [read_message(session.texts[seq]) for seq in seqs]
        queued = [self._read_input(each) for each in session.queued if self._inputs[each].signal_id is None]
        return StoredSession(
            record=_counted(session),
            last_seq=session.seqs[-1] if session.seqs else 0,
            messages=tuple(messages),
            inputs=tuple(queued),
        )

    def session(self, name: str) -> SessionRecord | None:
        """A session's row."""
        session = self._sessions.get(name)
        return None if session is None else _counted(session)

    def sessions(self, where: SessionFilter) -> list[SessionRecord]:
        """Sessions, most recently updated first, then by name downwards."""
        found = [
            session
            for name, session in self._sessions.items()
            if (where.prefix is None or name.startswith(where.prefix))
            and (where.before is None or (session.record.updated_at, name) < where.before)
        ]
        found.sort(key=lambda session: (session.record.updated_at, session.record.name), reverse=True)
        return [_counted(session) for session in found[: where.limit]]

    def messages(self, name: str, after: int, limit: int) -> list[Message]:
        """Messages with a higher seq, in order."""
        session = self._sessions.get(name)
        if session is None:
            return []
        first = bisect_right(session.seqs, after)
        return [read_message(session.texts[seq]) for seq in session.seqs[first : first + limit]]

    def latest_messages(self, name: str, before: int | None, limit: int) -> list[Message]:
        """The last messages, or the last of those with a lower seq, in order."""
        session = self._sessions.get(name)
        if session is None:
            return []
        end = len(session.seqs) if before is None else bisect_left(session.seqs, before)
        return [read_message(session.texts[seq]) for seq in session.seqs[max(0, end - limit) : end]]

    def input(self, input_id: str) -> StoredInput | None:
        """One row of the ledger."""
        return self._read_input(input_id) if input_id in self._inputs else None

    def unsettled(self, name: str | None) -> list[StoredInput]:
        """Queued inputs of one session or of all, in the order in which they were accepted."""
        ids: Iterable[str] = self._unsettled
        if name is not None:
            ids = self._sessions[name].queued if name in self._sessions else ()
        return [self._read_input(each) for each in ids]

    def _read_input(self, input_id: str) -> StoredInput:
        stored = self._inputs[input_id]
        (text,) = stored.input.attachments
        return attrs.evolve(stored, input=attrs.evolve(stored.input, attachments=decode(text)))


class StagedSessions:
    """The rows that a batch of changes touches, changed, and not yet written down."""

    def __init__(self, stored: MemorySessions) -> None:
        self._stored = stored
        self.rows: dict[str, SessionRecord] = {}
        self.messages: dict[tuple[str, int], tuple[Role, str]] = {}
        self.inputs: dict[str, StoredInput] = {}

    def apply(self, change: SessionRowChange) -> None:
        """Do one change; StoreError if it is wrong or does not fit."""
        match change:
            case SaveSession():
                check_save(change)
                row = self._row(change.session, change.at)
                self.rows[change.session] = attrs.evolve(
                    row,
                    updated_at=change.at,
                    last_epoch=max(row.last_epoch, change.last_epoch),
                    last_registration=max(row.last_registration, change.last_registration),
                    usage=change.usage,
                    held=change.held,
                )
            case AddMessage(session, message):
                text = check_message(change)
                row = self._row(session, message.at)
                if self._stored.has_message(session, message.seq) or (session, message.seq) in self.messages:
                    raise StoreError(f"{message_name(session, message.seq)} is stored already; each needs its own seq")
                self.messages[session, message.seq] = message.role, text
                self.rows[session] = attrs.evolve(row, messages=row.messages + 1)
            case AddInput(session=session, input=given):
                text = check_input(change)
                self.rows[session] = self._row(session, given.at)
                if self._input(given.id) is not None:
                    raise StoreError(f"input {given.id!r} is stored already; each input needs a new id")
                self.inputs[given.id] = StoredInput(
                    session=session,
                    input=attrs.evolve(given, attachments=(text,)),
                    state=InputState.QUEUED,
                    prompt=change.prompt,
                    signal_id=change.signal_id,
                )
            case SettleInputs(ids, state, at):
                check_settle_inputs(change)
                for each in ids:
                    self._change_input(each, change, state=state, settled_at=at)
            case LinkInputs(ids, signal_id):
                check_link(change)
                for each in ids:
                    self._change_input(each, change, signal_id=signal_id)

    def _row(self, name: str, at: float) -> SessionRecord:
        return (
            self.rows.get(name)
            or self._stored.row(name)
            or SessionRecord(name=name, created_at=at, updated_at=at, usage=Usage())
        )

    def _input(self, input_id: str) -> StoredInput | None:
        return self.inputs.get(input_id) or self._stored.stored_input(input_id)

    def _change_input(self, input_id: str, change: SettleInputs | LinkInputs, **fields: Any) -> None:
        stored = self._input(input_id)
        if stored is None:
            raise StoreError(f"there is no input {input_id!r}, so {type(change).__name__} cannot be written")
        if stored.state is not InputState.QUEUED:
            raise StoreError(f"{type(change).__name__} needs input {input_id!r} to be queued, but it is {stored.state}")
        self.inputs[input_id] = attrs.evolve(stored, **fields)


def _counted(session: _Session) -> SessionRecord:
    return attrs.evolve(session.record, queued=len(session.queued))

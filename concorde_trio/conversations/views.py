"""Sessions as JSON documents: the same from the agent server and from a database read directly.

The law: every text goes through ``mask`` before it is cut, so that half a live tag is never shown (TAG-4). What a loop in
memory knows is read in one go, without an await; the rest is what the store has. Times are wall-clock seconds, but
``since``, ``last_progress`` (seconds ago) and ``left`` (seconds until it ends).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs

from concorde_trio._sansio.session_terms import Abandoned, WaitingOn
from concorde_trio.messages import Message
from concorde_trio.records import JSON, Run, RunState
from concorde_trio.sessions.loop import SessionLoop
from concorde_trio.sessions.store import SessionRecord, SessionStore, StoredInput
from concorde_trio.signals.store import RunFilter, SignalStore
from concorde_trio.signals.views import WaitView

Document: TypeAlias = dict[str, Any]
Mask: TypeAlias = Callable[[JSON], JSON]
Why: TypeAlias = Callable[[str], WaitView | None]

SHOWN_QUEUED = 100
"""Queued inputs that are shown; ``more_queued`` counts the others."""
SHOWN_TEXT = 4_000
"""Characters of a queued input's text, of a call's arguments and of a late result that are shown."""


async def session_view(
    name: str,
    *,
    sessions: SessionStore,
    signals: SignalStore,
    loop: SessionLoop | None,
    why: Why,
    mask: Mask,
    now: float,
) -> Document | None:
    """Everything that is known of one session, None if there is none. ``loop``: if it is in memory here."""
    record = await sessions.session(name)
    if record is None and loop is None:
        return None
    unsettled = [each for each in await sessions.unsettled_inputs(name) if not each.prompt] if record else []
    running = await signals.runs(RunFilter(session=name, state=RunState.RUNNING, limit=1))
    waiting, lock = await waiting_view(name, sessions=sessions, signals=signals, loop=loop, why=why, now=now)
    row = _row(record or SessionRecord(name=name, created_at=now, updated_at=now), loop)
    if record is None:  # nothing of it is stored, or not any more
        row |= {"created_at": None, "updated_at": None}
    found: Document = {
        **row,
        "waiting_on": waiting,
        "lock": lock,
        "run": None if not running else {"id": running[0].id, "signal_id": running[0].signal_id},
        "holds": [] if loop is None else _holds(loop),
        "approvals": [] if loop is None else approvals(loop),
        "queue": [_queued(each) for each in unsettled[:SHOWN_QUEUED]],
        "more_queued": max(0, len(unsettled) - SHOWN_QUEUED),
        "abandoned": [] if loop is None else [_abandoned(each) for each in loop.machine.calls.abandoned.records],
    }
    shown: Document = cut(mask(found))
    return shown


def session_row(record: SessionRecord, loops: Mapping[str, SessionLoop], mask: Mask) -> Document:
    """A session in a list."""
    loop = loops.get(record.name)
    found = _row(record, loop)
    found["waiting_on"] = _waiting(loop, record.queued).as_json()
    shown: Document = cut(mask(found))
    return shown


def live_session(loop: SessionLoop) -> Document:
    """A session that is in memory, as it is at this instant: what it waits for, what holds it, what it asks. Not masked."""
    machine = loop.machine
    return {
        "name": loop.name,
        "status": machine.status,
        "held": machine.books.queue.held,
        "queued": len(machine.books.queue) + len(machine.linked),
        "in_run": machine.run is not None,
        "waiting_on": machine.waiting_on().as_json(),
        "holds": _holds(loop),
        "approvals": approvals(loop),
        "abandoned": [_abandoned(each) for each in machine.calls.abandoned.records],
        "usage": attrs.asdict(machine.books.usage),
    }


def message_view(message: Message, mask: Mask) -> Document:
    """A message, whole."""
    shown: Document = mask(message.as_json())
    return shown


async def waiting_view(
    name: str, *, sessions: SessionStore, signals: SignalStore, loop: SessionLoop | None, why: Why, now: float
) -> tuple[Document, Document | None]:
    """What a session waits for (SES-12a), and the lock answer of LCK-7 where its input waits for a run; not masked."""
    oldest = next((each for each in await sessions.unsettled_inputs(name) if each.signal_id is not None), None)
    waiting = _waiting(loop, 0 if oldest is None else 1)
    if waiting.on != "lock" or oldest is None or oldest.signal_id is None:
        return waiting.as_json(), None
    runs = await signals.runs(RunFilter(signal_id=oldest.signal_id, session=name, limit=1))
    since = max(0.0, now - oldest.input.at)
    if not runs or runs[0].state is not RunState.PENDING:
        about = f"signal {oldest.signal_id} of input {oldest.input.id} is not claimed yet"
        if runs:
            about = f"run {runs[0].id} of input {oldest.input.id} is {runs[0].state}"
        return attrs.evolve(waiting, about=about, since=since).as_json(), None
    return _lock_answer(waiting, runs[0], why(runs[0].id), since)


def _lock_answer(waiting: WaitingOn, run: Run, view: WaitView | None, since: float) -> tuple[Document, Document | None]:
    if view is None or not view.edges:
        about = f"run {run.id} waits for a place, or for a worker"
        return attrs.evolve(waiting, about=about, since=since).as_json(), None
    edge = view.edges[0]
    more = f" and {len(view.edges) - 1} more" if len(view.edges) > 1 else ""
    about = f'run {run.id} waits for run {edge.blocker.run_id} on {edge.space} "{edge.name}"{more}'
    return attrs.evolve(waiting, about=about, since=since).as_json(), view.as_json()


def _waiting(loop: SessionLoop | None, queued: int) -> WaitingOn:
    if loop is None:
        return WaitingOn(on="lock", about="no run of this session is in flight") if queued else WaitingOn(on="input")
    return loop.machine.waiting_on()


def _row(record: SessionRecord, loop: SessionLoop | None) -> Document:
    machine = None if loop is None else loop.machine
    return {
        "name": record.name,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "loaded": loop is not None,
        "status": "waiting_for_input" if machine is None else machine.status,
        "held": record.held if machine is None else machine.books.queue.held,
        "messages": record.messages,
        "queued": record.queued,
        "usage": attrs.asdict(record.usage if machine is None else machine.books.usage),
    }


def _holds(loop: SessionLoop) -> list[Document]:
    """What holds the session now, each with its time left (LSE-8)."""
    lock, now = loop.machine.books.lock, loop.machine.books.now()
    found: list[Document] = []
    for what, lease in (("llm", lock.llm), ("summarizing", lock.summarizing)):
        if lease is not None:
            moved = lease.started_at > lease.acquired_at
            found.append(
                {
                    "what": what,
                    "epoch": lease.epoch,
                    "since": now - lease.acquired_at,
                    "last_progress": now - lease.started_at if moved else None,
                    "left": lease.deadline - now,
                }
            )
    for tool in lock.active_tools.values():
        found.append(
            {
                "what": "tool",
                "call_id": tool.call_id,
                "tool": tool.tool_name,
                "kind": tool.exec_kind,
                "since": now - tool.started_at,
                "last_progress": None,
                "left": tool.deadline - now,
            }
        )
    return found


def approvals(loop: SessionLoop) -> list[Document]:
    """The calls that a person is asked about, not masked (SES-18)."""
    now = loop.machine.books.now()
    return [
        {
            "call_id": each.call.id,
            "tool": each.call.name,
            "kind": each.kind,
            "arguments": each.call.arguments,
            "since": now - each.since,
            "left": each.since + each.asked_for - now,
        }
        for each in loop.machine.calls.asked.values()
    ]


def _queued(each: StoredInput) -> Document:
    given = each.input
    return {
        "id": given.id,
        "sender": given.sender,
        "at": given.at,
        "text": given.text,
        "attachments": len(given.attachments),
        "signal_id": each.signal_id,
    }


def _abandoned(each: Abandoned) -> Document:
    return attrs.asdict(each)


def cut(value: Any) -> Any:
    """A document, masked already, with every text in it cut to SHOWN_TEXT characters, and saying so."""
    if isinstance(value, str):
        if len(value) <= SHOWN_TEXT:
            return value
        return f"{value[:SHOWN_TEXT]}… ({len(value) - SHOWN_TEXT:,} more characters)"
    if isinstance(value, dict):
        return {name: cut(each) for name, each in value.items()}
    if isinstance(value, list):
        return [cut(each) for each in value]
    return value

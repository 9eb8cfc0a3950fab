"""What is going on, in one document: a gateway's ``GET /snapshot``, or the same made of the database's rows.

The law: of the database it says what the rows say, and nothing more: its ``id`` is null, its worker is ``none``, or
``unasked`` where there is one, and of sessions those are there whose input waits. Nothing is settled by looking.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from concorde_trio.cli.client import ask
from concorde_trio.errors import ServerGone
from concorde_trio.server.endpoint import read_endpoint

if TYPE_CHECKING:
    from concorde_trio.cli.queue import StoredQueue
    from concorde_trio.signals.documents import Document

RUNS = 10_000
"""Runs that are asked for: the most that a gateway gives."""
SIGNALS, PENDING, SESSIONS, LOCKS = 2_000, 200, 200, 1_000
NOBODY, UNASKED = "none", "unasked"
"""The status of the worker where there is none, and where there is one that is not asked."""


def snapshot_of(path: Path, *, direct: bool) -> Document:
    """Ask the worker that serves this database, if there is one, unless ``direct``; else read the database."""
    import trio

    endpoint = None if direct else read_endpoint(path)
    if endpoint is not None:
        try:
            return dict(ask(endpoint, lambda client: client.snapshot(limit=RUNS)))
        except ServerGone:
            pass
    return trio.run(stored_snapshot, path)


async def stored_snapshot(path: Path) -> Document:
    """The same of the database, which is opened for it. StoreError if that cannot be done."""
    from concorde_trio.cli.queue import store_at
    from concorde_trio.cli.stored import mask_of

    store = store_at(path)
    status = NOBODY if read_endpoint(path) is None else UNASKED
    async with store.open():
        found: Document = (await mask_of(store))(await _of_rows(store, status))
    return found


async def _of_rows(store: StoredQueue, status: str) -> Document:
    from concorde_trio._sansio.dispatch import Dispatcher
    from concorde_trio.records import SignalPhase
    from concorde_trio.signals.in_hand import InHand, pending_row

    unfinished = await store.unfinished()
    core = Dispatcher({})
    core.rebuild(unfinished)
    hand = InHand(core, lambda run_id: None)
    signals, runs = hand.signals(), hand.runs()
    handling = {entry.signal.id for entry in unfinished if entry.signal.phase is SignalPhase.HANDLING}
    pending = await store.pending(PENDING + 1)
    sessions = await _sessions(store)
    locks, more_locks = hand.locks(LOCKS)
    return {
        "id": None,
        "at": time.time(),
        "worker": {"status": status, "stop_mode": None, "last_error": None},
        "signals": [
            {**row, "phase": "handling"} if row["id"] in handling else row
            for row in map(hand.signal_row, signals[:SIGNALS])
        ],
        "more_signals": max(0, len(signals) - SIGNALS),
        "pending": [pending_row(each) for each in pending[:PENDING]],
        "more_pending": len(pending) > PENDING,
        "runs": hand.run_rows(runs[:RUNS]),
        "more_runs": max(0, len(runs) - RUNS),
        "sessions": sessions,
        "more_sessions": 0,
        "locks": locks,
        "more_locks": more_locks,
    }


async def _sessions(store: StoredQueue) -> list[dict[str, Any]]:
    """Those of the latest whose input waits for a worker."""
    from concorde_trio.conversations.views import session_row
    from concorde_trio.sessions.store import SessionFilter

    found = []
    for record in await store.sessions(SessionFilter(limit=SESSIONS)):
        if record.queued or record.held:
            row = session_row(record, {}, lambda value: value)
            shown = {name: row[name] for name in ("name", "status", "held", "queued", "waiting_on")}
            left = {"in_run": False, "holds": [], "approvals": [], "abandoned": [], "usage": attrs.asdict(record.usage)}
            found.append({**shown, **left})
    return found

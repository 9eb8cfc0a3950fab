"""What is true now, in one document, with the id of the event that it is true as of: where following events begins (SRV-4).

The law: the id is taken first, and everything else is read at that moment or later; each row is true at one instant. So what
events up to the id told is in it, and an event after it tells of what is newer than the id, perhaps not newer than a
row. To take it then changes nothing: events say what became of a thing, not how it changed.

A large one is made in pieces, and others are answered in between.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import trio

from concorde_trio._sansio.event_log import EventLog
from concorde_trio.conversations.views import cut, live_session
from concorde_trio.server.seam import Worker
from concorde_trio.server.session_doors import loops_of
from concorde_trio.signals.in_hand import ids, pending_row

T = TypeVar("T")

PARTS = ("signals", "runs", "sessions", "locks")
RUNS = 2_000
"""Runs that are listed unless a limit is given."""
MOST_RUNS = 10_000
SIGNALS = 2_000
SESSIONS = 2_000
LOCKS = 1_000
PENDING = 200
"""Signals, sessions, locks, and signals that nobody has claimed, that are listed; of the others it is said how many there are."""
PIECE = 100
"""Rows that are made without a break."""


class Snapshot:
    """One snapshot of a worker, whose events are in ``log``."""

    def __init__(self, worker: Worker, log: EventLog) -> None:
        self._worker = worker
        self._log = log

    async def write(self, parts: frozenset[str], limit: int) -> bytes:
        """The document as JSON, masked; at most ``limit`` runs."""
        worker, log = self._worker, self._log
        hand, loops = worker.in_hand(), loops_of(worker)
        signals = [] if hand is None else hand.signals()
        runs = [] if hand is None else hand.runs()
        sessions = sorted(loops.values(), key=lambda loop: (loop.machine.idle, loop.name))
        head = {
            "id": log.id_of(log.last),
            "at": time.time(),
            "worker": {"status": worker.status, "stop_mode": worker.stop_mode, "last_error": worker.last_error},
        }
        written = [self._json(head)[:-1]]
        if "signals" in parts:
            here = ids(signals)
            # Asked after the id was taken: who is claimed in between is missing here, and an event tells of it. A store can
            # still call pending what is being handled, a batch of the dispatcher's at most.
            pending = [one for one in await worker.store.pending(PENDING + PIECE + 1) if one.id not in here]
            shown = (
                []
                if hand is None
                else await self._rows(
                    signals[:SIGNALS], lambda some: (self._cut(hand.signal_row(each)) for each in some)
                )
            )
            written.append(_part("signals", shown, max(0, len(signals) - SIGNALS)))
            waiting = await self._rows(pending[:PENDING], lambda some: map(pending_row, some))
            written.append(_part("pending", waiting, len(pending) > PENDING))
        if "runs" in parts:
            shown = [] if hand is None else await self._rows(runs[:limit], hand.run_rows)
            written.append(_part("runs", shown, max(0, len(runs) - limit)))
        if "sessions" in parts:
            alive = await self._rows(
                sessions[:SESSIONS], lambda some: (self._cut(live_session(loop)) for loop in some if not loop.over)
            )
            written.append(_part("sessions", alive, max(0, len(sessions) - SESSIONS)))
        if "locks" in parts:
            locks, more = ([], 0) if hand is None else hand.locks(LOCKS)
            written.append(_part("locks", await self._rows(locks, lambda some: some), more))
        return "".join([*written, "}\n"]).encode()

    async def _rows(self, items: Sequence[T], made: Callable[[Sequence[T]], Iterable[Any]]) -> list[str]:
        written: list[str] = []
        for at in range(0, len(items), PIECE):
            written += [self._json(row) for row in made(items[at : at + PIECE])]
            await trio.lowlevel.checkpoint()
        return written

    def _cut(self, row: Any) -> Any:
        return cut(self._worker.mask_json(row))  # in this order, or half a tag would be shown

    def _json(self, row: Any) -> str:
        return json.dumps(self._worker.mask_json(row), ensure_ascii=False, allow_nan=False)


def _part(name: str, rows: Sequence[str], more: int | bool) -> str:
    return f', "{name}": [{", ".join(rows)}], "more_{name}": {json.dumps(more)}'

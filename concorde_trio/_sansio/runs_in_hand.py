"""The signals that are being processed and their runs, in the lock table: as they are, and as they stand in a store.

The law: a run has one place, its position, from when it is queued to when it is released; a table that is built anew out of
what is stored is the one that was lost (REC-3).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from concorde_trio._sansio.live import LiveRun, LiveSignal
from concorde_trio._sansio.lock_table import LockTable
from concorde_trio._sansio.run_tags import RunTags
from concorde_trio.records import RunState, SignalPhase, Unfinished


class RunsInHand:
    """What a worker has in hand. ``running`` counts those that take a place under ``max_running``, offered ones too."""

    def __init__(self) -> None:
        self.table: LockTable[str, str] = LockTable()
        self.tags: RunTags[str] = RunTags()
        self.live: dict[str, LiveSignal] = {}
        self.runs: dict[str, LiveRun] = {}
        self.running = 0
        self.offered: set[str] = set()
        self._ready: list[tuple[int, str]] = []
        self._ready_ids: set[str] = set()

    @property
    def waiting(self) -> int:
        """How many runs are queued and not started (CLM-2)."""
        return self.table.waiting + len(self._ready_ids) + len(self.offered)

    def rebuild(self, unfinished: Iterable[Unfinished]) -> None:
        """Take the rows as they stand and settle nothing: for looking at a queue from outside its worker."""
        placed: list[LiveRun] = []
        for entry in unfinished:
            signal = self._revive(entry, holds=entry.signal.holds)
            signal.phase = entry.signal.phase or SignalPhase.RUNNING
            placed += signal.unreleased
        self._place(placed)

    def _revive(self, entry: Unfinished, *, holds: bool) -> LiveSignal:
        signal = self.live[entry.signal.id] = LiveSignal.revive(entry, holds=holds)
        return signal

    def _place(self, placed: list[LiveRun]) -> None:
        """Give each run its old place. One that has ended is held again for its signal's post (REC-3)."""
        placed.sort(key=lambda live: live.run.position)
        for live in placed:
            run = live.run
            permitted = self.table.enqueue(run.id, run.signal_id, session=run.session, resources=run.resources)
            if live.outcome is not None:
                self.table.end(run.id, hold=True)
                continue
            self.runs[run.id] = live
            if run.tag is not None:
                self.tags.expect(run.tag)
            if live.state is RunState.RUNNING:
                self.running += 1
            else:
                self._permit(permitted)

    def _permit(self, run_ids: Iterable[str]) -> None:
        for run_id in run_ids:
            self._ready_ids.add(run_id)
            heapq.heappush(self._ready, (self.runs[run_id].run.position, run_id))

"""The one heartbeat of all sessions: when each next has to be looked at, one sleep, and a word to those that are due (SES-4).

The law: it decides nothing and touches no lock. A session that waits for nothing is not in it; one that does is looked at
every ``heartbeat`` seconds or at its next deadline, whichever is sooner.
"""

from __future__ import annotations

import heapq
import math
from typing import Protocol

import trio


class Beating(Protocol):
    """A session's loop, as the heartbeat sees it."""

    beat_at: float
    """When it is to be looked at next, infinity for not at all. The heartbeat's own note."""

    def beat(self, now: float) -> float:
        """It is time: sweep if need be; when to look again, infinity for not at all."""
        ...


class Heartbeat:
    """A heap of due times. Entries that are not true any more are passed over when they come up."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Beating]] = []
        self._count = 0
        self._sleep = trio.CancelScope()
        self._until = math.inf

    def look_at(self, session: Beating, due: float) -> None:
        """Look at this session at ``due``, on Trio's clock, unless it is to be looked at before; infinity: not at all."""
        if due == math.inf:
            session.beat_at = math.inf
        elif due < session.beat_at:
            session.beat_at = due
            self._count += 1
            heapq.heappush(self._due, (due, self._count, session))
            if due < self._until:
                self._until = due
                self._sleep.deadline = due

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            self._until = self._due[0][0] if self._due else math.inf
            with trio.CancelScope(deadline=self._until) as self._sleep:
                await trio.sleep_forever()
            now = trio.current_time()
            while self._due and self._due[0][0] <= now:
                due, _, session = heapq.heappop(self._due)
                if session.beat_at == due:
                    session.beat_at = math.inf
                    self.look_at(session, session.beat(now))

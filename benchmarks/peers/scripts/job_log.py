"""What every peer's program shares: what it is asked, the log of its jobs, and what it answers.

The law: a job logs its key, its number, and when it began and ended, in memory. Order is checked from that alone: of one key, each job
must begin after the one before it has ended. The time is from the first begin to the last end, so that no peer's own start counts.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from order import out_of_order

ASKED = json.loads(sys.stdin.readline())
JOBS, KEYS, SECONDS = ASKED.get("jobs", 0), ASKED.get("keys", 1), ASKED.get("seconds", 0.0)
TEXT = "x" * 160
"""With key and number, a payload of about 200 bytes."""


class Log:
    """``complete`` is set when all jobs have ended."""

    def __init__(self) -> None:
        self.ran: list[tuple[int, int, float, float]] = []
        self.complete = threading.Event()
        self.emitted = 0.0

    def ended(self, key: int, number: int, begun: float) -> None:
        """A job is over."""
        self.ran.append((key, number, begun, time.perf_counter()))
        if len(self.ran) >= JOBS:
            self.complete.set()

    def answer(self, *, version: str, how: str, fsync: str) -> None:
        """The one line of output."""
        distinct = {number for _, number, _, _ in self.ran}
        seconds = max(each[3] for each in self.ran) - min(each[2] for each in self.ran)
        found = {
            "jobs": len(distinct),
            "ran": len(self.ran),
            "seconds": seconds,
            "emit_seconds": self.emitted,
            "out_of_order": out_of_order(self.ran),
            "version": version,
            "how": how,
            "fsync": fsync,
        }
        print(json.dumps(found), flush=True)


def jobs() -> list[tuple[int, int]]:
    """Key and number of each job, in the order of their emission: the keys in turn."""
    return [(number % KEYS, number) for number in range(JOBS)]

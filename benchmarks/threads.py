"""How much processor time each thread of this process has used: Linux counts it for every thread, to the nanosecond."""

from __future__ import annotations

import os
import time
from pathlib import Path

import attrs

TASKS = Path("/proc/self/task")


@attrs.frozen
class Spent:
    """Seconds of the processor: of the main thread, and of all others that live or have ended meanwhile."""

    main: float
    others: float

    def since(self, before: Spent) -> Spent:
        """What was spent between the two."""
        return Spent(self.main - before.main, self.others - before.others)


def spent() -> Spent | None:
    """Until now; None where the system does not count it by thread."""
    try:
        main = int((TASKS / str(os.getpid()) / "schedstat").read_text().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return None
    return Spent(main, max(0.0, time.process_time() - main))  # the whole process: threads that have ended are in it

"""Waiting until the programs of an earlier worker on this machine are dead (REC-6).

The law: a guard holds the file, shared, until the last process of its program is dead. Who can lock it alone knows that
none is left.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

import trio

from concorde_trio.processes.fork_safety import close_lock
from concorde_trio.stores.sqlite_turnstile import open_lock_file, try_lock

POLL = 0.05
"""Seconds between two looks at a lock that is held."""


def no_programs(lock: Path) -> bool:
    """Whether no guard holds ``lock`` now; the file need not be there."""
    if not lock.exists():
        return True
    programs = open_lock_file(lock)
    try:
        if not try_lock(programs):
            return False
        fcntl.flock(programs, fcntl.LOCK_UN)
        return True
    finally:
        close_lock(programs)


async def programs_dead(lock: Path, name: str, waiting: Callable[[str], None] | None) -> None:
    """Return once nobody holds ``lock``; ``waiting`` is told what is waited for, with the queue's ``name``."""
    programs = open_lock_file(lock)
    try:
        told = False
        while not try_lock(programs):
            if waiting is not None and not told:
                waiting(f"programs of an earlier worker of {name} still run; waiting until they have ended")
                told = True
            await trio.sleep(POLL)
        fcntl.flock(programs, fcntl.LOCK_UN)
    finally:
        close_lock(programs)

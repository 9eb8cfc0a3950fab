"""Who serves a SQLite queue: one worker at a time, and none before an earlier one's programs are dead.

The law: both are flocks, which the system lets go when their holder dies, so a crash leaves nothing to be cleaned
up; what is written in the file only says who it is (REC-1, REC-6).
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime

import trio

from concorde_trio.errors import QueueTaken
from concorde_trio.processes.fork_safety import close_lock
from concorde_trio.stores.programs import programs_dead
from concorde_trio.stores.sqlite_place import Place
from concorde_trio.stores.sqlite_turnstile import open_lock_file, try_lock

POLL = 0.05
"""Seconds between two looks at a lock that is held."""


@asynccontextmanager
async def own(place: Place, *, wait: bool, waiting: Callable[[str], None] | None) -> AsyncIterator[None]:
    """Be the one worker of the queue; QueueTaken if there is one, unless ``wait``."""
    lock = open_lock_file(place.worker_lock)
    try:
        await trio.lowlevel.checkpoint()
        told = False
        while not try_lock(lock):
            sentence = f"the queue {place.database} is served by another worker, {_holder(lock)}"
            if not wait:
                raise QueueTaken(f"{sentence}; stop it, or wait for it (serve --wait, or wait_for_queue=True)")
            if waiting is not None and not told:
                waiting(f"{sentence}; waiting for it to stop")
                told = True
            await trio.sleep(POLL)
        await programs_dead(place.programs_lock, str(place.database), waiting)
        _write_holder(lock, {"pid": os.getpid(), "host": socket.gethostname(), "since": _now()})
        try:
            yield
        finally:
            _write_holder(lock, None)
    finally:
        close_lock(lock)


def _write_holder(lock: int, holder: dict[str, object] | None) -> None:
    with suppress(OSError):  # It only says who it is; a file of another user's, or a full disk, is no reason to stop.
        os.ftruncate(lock, 0)
        if holder is not None:
            os.pwrite(lock, json.dumps(holder).encode(), 0)


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")


def _holder(lock: int) -> str:
    try:
        known = json.loads(os.pread(lock, 4096, 0))
        since = datetime.fromisoformat(known["since"]).astimezone()
        return f"process {known['pid']} on {known['host']} since {since:%Y-%m-%d %H:%M:%S}"
    except (ValueError, KeyError, TypeError):
        return "which has not said yet who it is"

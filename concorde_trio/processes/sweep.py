"""Ends processes by the marker in their environment: what a guard that was itself killed could not end (REC-6).

Every process of a run carries ``CONCORDE_RUN_ID=<queue>.<32 hex digits>`` unless it cleared its environment.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

import attrs
import trio

from concorde_trio.errors import ProgramError, UsageError
from concorde_trio.processes import guard

_QUEUE = re.compile(r"[!-~]{1,200}")
_RANDOM = re.compile(rb"[0-9a-f]{32}")


@attrs.frozen
class Swept:
    """A process that was ended, or is still there: its pid, and its name without arguments ("?" if not known)."""

    pid: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} ({self.pid})"


def new_marker(queue: str) -> str:
    """A value of CONCORDE_RUN_ID that no other run has. ``queue`` is printable ASCII without spaces."""
    return f"{_checked(queue)}.{secrets.token_hex(16)}"


async def sweep_queue(queue: str, *, time_limit: float = 10.0) -> list[Swept]:
    """End every process that a run of ``queue`` left, and tell which. Its programs lock must be free first (REC-6).

    ``queue`` matches only itself, not a queue whose name begins with it. ProgramError when some are still there
    after ``time_limit`` seconds.
    """
    prefix = f"{_checked(queue)}.".encode()
    return await _sweep(
        lambda value: value.startswith(prefix) and _RANDOM.fullmatch(value[len(prefix) :]) is not None, time_limit
    )


async def sweep_marker(marker: str, *, time_limit: float = 10.0) -> list[Swept]:
    """End every process of one run, by its marker; otherwise as ``sweep_queue``."""
    exact = marker.encode()
    return await _sweep(lambda value: value == exact, time_limit)


async def _sweep(matches: Callable[[bytes], bool], time_limit: float) -> list[Swept]:
    killed: dict[tuple[int, int], str] = {}
    deadline = trio.current_time() + time_limit
    pause = 0.001
    clean = 0
    while True:
        found = await trio.to_thread.run_sync(_kill_marked, matches)
        clean = 0 if found else clean + 1
        if clean == 2:  # one scan can miss a process that is just being replaced by another program
            return [Swept(pid, name) for (pid, _), name in killed.items()]
        if found and trio.current_time() > deadline:
            left = ", ".join(str(Swept(pid, name)) for (pid, _), name in found.items())
            raise ProgramError(
                f"processes of an ended run are still there after {time_limit:g} s, though killed: {left}. "
                "Look at what they wait for, or end them by hand, before starting again."
            )
        killed.update(found)
        await trio.sleep(pause)
        pause = min(pause * 2, 0.25)


def _kill_marked(matches: Callable[[bytes], bool]) -> dict[tuple[int, int], str]:
    found = {one: guard.name_of(one[0]) for one in guard.marked(matches)}
    for pid, started in found:
        guard.kill(pid, started)
    return found


def _checked(queue: str) -> str:
    if not _QUEUE.fullmatch(queue):
        raise UsageError(f"a queue's name is 1 to 200 printable ASCII characters without spaces, not {queue!r:.80}")
    return queue

"""Watches what a program left running after its own end, until it ends by itself (SES-8).

The law: it only looks. What is to end it is the end of the program's block.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable

import trio

from concorde_trio.processes import guard
from concorde_trio.processes.program import Program
from concorde_trio.processes.sweep import Swept

LISTED = 50
"""How many processes are listed of one program, one after another."""
_LONGEST_PAUSE = 1.0  # seconds between two looks at the process table


class Background:
    """``list_one`` is told of each process, and gives the function to call when that one has ended."""

    def __init__(self, program: Program, list_one: Callable[[Swept], Callable[[], None]]) -> None:
        self._program = program
        self._list_one = list_one
        self._listed: dict[int, Callable[[], None]] = {}
        self._count = 0

    def add(self, running: Iterable[Swept]) -> None:
        """List those that are new."""
        for one in running:
            if one.pid not in self._listed and self._count < LISTED:
                self._count += 1
                self._listed[one.pid] = self._list_one(one)

    async def all_ended(self) -> None:
        """Until nothing of the program's tree lives any more; what it starts meanwhile is listed too."""
        pause = 0.01
        while alive := await trio.to_thread.run_sync(self._alive):
            self.add(alive)
            pids = {one.pid for one in alive}
            for pid in [pid for pid in self._listed if pid not in pids]:
                self._listed.pop(pid)()
            await _until_one_ends(list(pids)[:LISTED])
            await trio.sleep(pause)  # one that respawns all the time must not cost more than this
            pause = min(2 * pause, _LONGEST_PAUSE)
        self.close()

    def close(self) -> None:
        """All of it is known to have ended."""
        while self._listed:
            self._listed.popitem()[1]()

    def _alive(self) -> list[Swept]:
        return [Swept(pid, guard.name_of(pid)) for pid, _ in guard.descendants(self._program.guard_pid)]


async def _until_one_ends(pids: list[int]) -> None:
    """Until one of the processes has ended; at most a minute, and a second where the system cannot tell."""
    with contextlib.ExitStack() as stack, trio.move_on_after(60) as patience:
        handles = []
        for pid in pids:
            try:
                handles.append(os.pidfd_open(pid))
            except ProcessLookupError:
                return
            except OSError:  # no pidfds here, or no file descriptor left
                patience.deadline = trio.current_time() + _LONGEST_PAUSE
                break
            stack.callback(os.close, handles[-1])
        async with trio.open_nursery() as nursery:
            for handle in handles:
                nursery.start_soon(_readable, handle, nursery.cancel_scope)
            await trio.sleep_forever()


async def _readable(handle: int, found: trio.CancelScope) -> None:
    await trio.lowlevel.wait_readable(handle)
    found.cancel()

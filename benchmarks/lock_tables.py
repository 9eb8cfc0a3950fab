"""What the lock table is compared with: the least that it could cost, and what one writes first.

``Bare`` keeps a deque a lock and a count a run: the dict operations that no lock table can avoid. It holds nothing for a post,
keeps the names of two spaces in one, can neither withdraw nor explain, and checks nothing. ``Rescan`` keeps one list of what waits, and looks
through it from the head at every end, as the seed of this project did.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol


class Table(Protocol):
    """What is measured: ``LockTable`` and these two."""

    def enqueue(self, run: int, signal: int, *, session: str, resources: Sequence[str] = ()) -> tuple[int, ...]: ...

    def end(self, run: int) -> tuple[int, ...]: ...


class Bare:
    """For each lock a deque of runs; for each run its locks, and at how many of them it is not first."""

    def __init__(self) -> None:
        self.locks: dict[int, tuple[str, ...]] = {}
        self.missing: dict[int, int] = {}
        self.lines: dict[str, deque[int]] = {}

    def enqueue(self, run: int, signal: int, *, session: str, resources: Sequence[str] = ()) -> tuple[int, ...]:
        names = (session, *resources)
        self.locks[run] = names
        missing = 0
        for name in names:
            line = self.lines.get(name)
            if line is None:
                self.lines[name] = deque((run,))
            else:
                line.append(run)
                missing += 1
        if missing:
            self.missing[run] = missing
            return ()
        return (run,)

    def end(self, run: int) -> tuple[int, ...]:
        free: tuple[int, ...] = ()
        for name in self.locks.pop(run):
            line = self.lines[name]
            line.popleft()
            if not line:
                del self.lines[name]
                continue
            first = line[0]
            missing = self.missing[first] - 1
            if missing:
                self.missing[first] = missing
            else:
                del self.missing[first]
                free += (first,)
        return free


class Rescan:
    """One list of what waits, in order, and the locks that are held. ``filling``: only take what comes, to be quick."""

    def __init__(self) -> None:
        self.filling = False
        self.running: dict[int, tuple[str, ...]] = {}
        self.waiting: dict[int, tuple[str, ...]] = {}
        self.held: set[str] = set()

    def enqueue(self, run: int, signal: int, *, session: str, resources: Sequence[str] = ()) -> tuple[int, ...]:
        self.waiting[run] = (session, *resources)
        return () if self.filling else self._start()

    def filled(self) -> None:
        """Begin to work."""
        self.filling = False
        self._start()

    def end(self, run: int) -> tuple[int, ...]:
        self.held.difference_update(self.running.pop(run))
        return self._start()

    def _start(self) -> tuple[int, ...]:
        taken, started = set(self.held), []
        for run, names in self.waiting.items():
            if taken.isdisjoint(names):
                started.append(run)
            taken.update(names)
        for run in started:
            self.running[run] = names = self.waiting.pop(run)
            self.held.update(names)
        return tuple(started)

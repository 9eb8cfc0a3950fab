"""The lease under which the programs of a process live, where another machine may take over their runs (REC-6).

The law: a program that was started under a lease is dead when the lease is over, whatever became of the process that
started it: stopped (SIGSTOP), cut off from its database, blocked. Its guard keeps the time, on the machine's monotonic
clock, so it needs nobody's word to end the tree; what it needs word of is every renewal. A renewal that comes too late
changes nothing for programs that run, and nothing is started under a lease that is over.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
import time
from collections.abc import Callable, Iterator

_current: contextvars.ContextVar[ProgramsLease | None] = contextvars.ContextVar("programs_lease", default=None)


class ProgramsLease:
    """One holder's lease; all calls on Trio's thread, none waits.

    ``until``: when it is over, in seconds of ``time.monotonic()`` (which is not Trio's clock). A new one is over until
    it is renewed.
    """

    def __init__(self) -> None:
        self.until = -math.inf
        self._tellers: set[Callable[[float], None]] = set()

    @property
    def is_over(self) -> bool:
        """Whether nothing may be started under it now."""
        return time.monotonic() >= self.until

    def renew(self, until: float) -> None:
        """The holder is known to be alive until then, and every guard is told.

        Count from before the renewal was *sent*: ``begun = time.monotonic()``, then the renewal, and once it is confirmed
        ``renew(begun + lease - margin)``. The trees are killed at that moment, and first asked to end half a second
        before (of a lease under two seconds: when a quarter of it is left). An earlier time than is already known changes nothing.
        """
        if until <= self.until:
            return
        self.until = until
        for tell in tuple(self._tellers):
            tell(until)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Programs that this task, or a task started from here on in the block, opens live under this lease."""
        with living_under(self):
            yield

    @contextlib.contextmanager
    def told(self, tell: Callable[[float], None]) -> Iterator[None]:
        """``tell`` is called at each renewal within the block; it must not raise."""
        self._tellers.add(tell)
        try:
            yield
        finally:
            self._tellers.discard(tell)


def current_lease() -> ProgramsLease | None:
    """The lease that programs opened by this task live under; None for programs that live as long as this process."""
    return _current.get()


@contextlib.contextmanager
def living_under(lease: ProgramsLease | None) -> Iterator[None]:
    """As ``ProgramsLease.held``, or under no lease: for whoever starts tasks on the behalf of others, who may have another."""
    token = _current.set(lease)
    try:
        yield
    finally:
        _current.reset(token)

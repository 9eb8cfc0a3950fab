"""A clock that is told what time it is, and a lease that must be there, for the tests of the session lock."""

from __future__ import annotations

from typing import Any

from concorde_trio import SessionLock


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.readings = 0

    def __call__(self) -> float:
        self.readings += 1
        return self.now


def acquired(lock: SessionLock, *arguments: Any, **named: Any) -> int:
    """The epoch of a new lease for a model request."""
    epoch = lock.try_acquire_llm(*arguments, **named)
    assert epoch is not None
    return epoch

"""How long to wait before something that a lock or a connection was in the way of is tried again."""

from __future__ import annotations

from collections.abc import Iterator


def pauses(longest: float = 0.05) -> Iterator[float]:
    """How long to wait before each next try, in seconds: quick at first, since most locks are short."""
    pause = 0.001
    while True:
        yield pause
        pause = min(pause * 1.5, longest)

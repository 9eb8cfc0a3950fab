"""Descriptors that a forked child must not keep: a flock lives as long as any copy of its descriptor.

A handler may fork (``multiprocessing`` does, by default, on Linux), and its child would then hold the worker's locks
after the worker is gone. So each descriptor of a lock is registered here while it is open, and a child closes its copy.
Imports nothing but the standard library: every command comes by.
"""

from __future__ import annotations

import os
from contextlib import suppress

_locks: set[int] = set()


def keep_from_forks(descriptor: int) -> int:
    """``descriptor`` itself, which a child forked from now on closes at once."""
    _locks.add(descriptor)
    return descriptor


def close_lock(descriptor: int) -> None:
    """Close a descriptor that was given to ``keep_from_forks``."""
    _locks.discard(descriptor)
    os.close(descriptor)


def forget_lock(descriptor: int) -> None:
    """A descriptor that was given to ``keep_from_forks`` is about to be closed by whoever has opened it."""
    _locks.discard(descriptor)


def _close_all() -> None:
    for descriptor in _locks:
        with suppress(OSError):
            os.close(descriptor)
    _locks.clear()


os.register_at_fork(after_in_child=_close_all)

"""One play: Trio on a virtual clock, and nothing of it in the log.

The law of this module: a play takes no time, and what fails in it comes out as itself, not in a group of one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import trio
import trio.testing

from concorde_trio.failures import alone

T = TypeVar("T")

_LOGGERS = ("concorde_trio.worker", "concorde_trio.sessions")


def run_virtually(play: Callable[[], Awaitable[T]]) -> T:
    """What ``play`` gives, run by Trio on a clock that jumps whenever everything waits for time."""
    try:
        with _silent():
            result: T = trio.run(play, clock=trio.testing.MockClock(autojump_threshold=0))
    except BaseExceptionGroup as group:
        single = alone(group)
        if single is None:
            raise
        raise single from None
    return result


@contextmanager
def _silent() -> Iterator[None]:
    """Keep scripted failures out of the log: they are no news. What other threads log passes."""
    this_thread = threading.get_ident()

    def elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != this_thread

    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(elsewhere)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(elsewhere)

"""A thread that looks at Trio's from outside: when that does not come back, it says where it stands (F-28).

The law: it decides nothing and touches nothing of a session. It asks Trio's thread for a sign of life, logs once per
blockage where that thread stands, and has it told as an event once it is back. It ends when it is told to, and is a daemon,
so that no program waits for it. Under any clock but Trio's own there is none: virtual seconds say nothing of real ones.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import trio

from concorde_trio.errors import UsageError
from concorde_trio.events import Event, LoopBlocked

logger = logging.getLogger("concorde_trio.sessions")

LIMIT = 1.0
"""Seconds without a sign of life that are logged, unless set."""

Publish = Callable[[Sequence[Event]], None]


def check_watchdog(seconds: float) -> float:
    """The seconds; UsageError unless they are 0 (none) or more."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds < 1e9:
        raise UsageError(
            f"watchdog is how many seconds the event loop may be blocked before it is logged, or 0 for no watchdog, not {seconds!r:.80}"
        )
    return float(seconds)


@contextmanager
def watching(limit: float, publish: Publish, wall_clock: Callable[[], float]) -> Iterator[None]:
    """Watch this thread until the block is left. ``limit``: seconds, 0 for not at all."""
    clock = type(trio.lowlevel.current_clock())
    if not limit or (clock.__name__, clock.__module__.split(".")[0]) != ("SystemClock", "trio"):
        yield
        return
    watchdog = _Watchdog(limit, publish, wall_clock)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()


class _Watchdog:
    """``_stop``: it is to end. ``_alive``: Trio's thread has given the sign that was asked for, or nobody waits for it."""

    def __init__(self, limit: float, publish: Publish, wall_clock: Callable[[], float]) -> None:
        self._limit = limit
        self._publish = publish
        self._wall_clock = wall_clock
        self._token = trio.lowlevel.current_trio_token()
        self._watched = threading.get_ident()
        self._stop = threading.Event()
        self._alive = threading.Event()

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._run, name="concorde-trio watchdog", daemon=True).start()

    def stop(self) -> None:
        """End, without waiting for it."""
        self._stop.set()
        self._alive.set()

    def _run(self) -> None:
        # A sign is asked for four times in a limit, so what lasts a quarter longer than that is always seen.
        while not self._stop.wait(self._limit / 4):
            self._alive.clear()
            asked = time.monotonic()
            if self._stop.is_set() or not self._call(self._alive.set):
                return
            if not self._wait(asked):
                where = self._tell(time.monotonic() - asked)
                self._alive.wait()
                blocked = time.monotonic() - asked
                if self._stop.is_set() or not self._call(partial(self._told, blocked, where)):
                    return

    def _wait(self, asked: float) -> bool:
        """Whether the sign came in time. Where this thread was held up too (the process was stopped), it waits anew."""
        while not self._alive.wait(self._limit):
            now = time.monotonic()
            if now - asked < 1.5 * self._limit:
                return False
            asked = now
        return True

    def _tell(self, seconds: float) -> str:
        frame = sys._current_frames().get(self._watched)
        stack = traceback.extract_stack(frame) if frame is not None else traceback.StackSummary()
        del frame
        logger.warning(
            "the event loop has not come back for %.1f s; until it does, no session goes on and no limit is kept. It stands at:\n%s",
            seconds,
            "".join(stack.format()),
        )
        return f"{stack[-1].filename}:{stack[-1].lineno} in {stack[-1].name}" if stack else "not known"

    def _told(self, blocked: float, where: str) -> None:
        """In Trio's thread."""
        if self._stop.is_set():
            return
        try:
            self._publish([LoopBlocked(at=self._wall_clock(), seconds=blocked, where=where)])
        except Exception:
            logger.exception("an event could not be published")

    def _call(self, function: Callable[[], object]) -> bool:
        """Have Trio's thread call it; False if Trio is over."""
        try:
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            return False
        return True

"""A thread that looks at Trio's from outside: when that does not come back, it says who holds it up, and where it stands (F-28).

The law: it decides nothing and touches nothing of a session or a run. It asks Trio's thread for a sign of life, logs once per
blockage where that thread stands, and once it is back, for how long; and has it told as an event. It ends when it is told to, and
is a daemon, so that no program waits for it. There is one for a Trio thread, however many ask for it. Under any clock but
Trio's own there is none: virtual seconds say nothing of real ones.
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
from types import CodeType, FrameType
from typing import Any, TypeVar

import trio

from concorde_trio.errors import UsageError
from concorde_trio.events import Event, LoopBlocked

logger = logging.getLogger("concorde_trio.watchdog")

LIMIT = 1.0
"""Seconds without a sign of life that are logged, unless set."""

Publish = Callable[[Sequence[Event]], None]
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_works: dict[CodeType, Callable[[dict[str, Any]], str]] = {}
_watching: dict[int, _Watchdog] = {}


def named_work(say: Callable[[dict[str, Any]], str]) -> Callable[[FunctionT], FunctionT]:
    """Decorate a function that calls other people's code: ``say`` makes of its local variables what a blockage is put down to."""

    def register(function: FunctionT) -> FunctionT:
        _works[function.__code__] = say
        return function

    return register


def check_watchdog(seconds: float) -> float:
    """The seconds; UsageError unless they are 0 (none) or more."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds < 1e9:
        raise UsageError(
            f"watchdog is how many seconds the event loop may be blocked before it is logged, or 0 for no watchdog, not {seconds!r:.80}"
        )
    return float(seconds)


@contextmanager
def watching(
    limit: float,
    publish: Publish,
    wall_clock: Callable[[], float],
    *,
    mask: Callable[[str], str] = str,
    lag: Callable[[float], None] | None = None,
) -> Iterator[None]:
    """Watch this thread until the block is left. ``limit``: seconds, 0 for not at all.

    Where it is watched already, the smaller limit counts. ``mask`` hides live tags in what is logged. ``lag`` is told, in this
    thread and four times in a limit, how many seconds the event loop took to come to it.
    """
    clock = type(trio.lowlevel.current_clock())
    if not limit or (clock.__name__, clock.__module__.split(".")[0]) != ("SystemClock", "trio"):
        yield
        return
    outer = _watching.get(threading.get_ident())
    if outer is not None:
        before, outer.limit = outer.limit, min(outer.limit, limit)
        try:
            yield
        finally:
            outer.limit = before
        return
    watchdog = _watching[threading.get_ident()] = _Watchdog(limit, publish, wall_clock, mask, lag)
    watchdog.start()
    try:
        yield
    finally:
        del _watching[threading.get_ident()]
        watchdog.stop()


class _Watchdog:
    """``_stop``: it is to end. ``_alive``: Trio's thread has given the sign that was asked for, or nobody waits for it."""

    def __init__(
        self,
        limit: float,
        publish: Publish,
        wall_clock: Callable[[], float],
        mask: Callable[[str], str],
        lag: Callable[[float], None] | None,
    ) -> None:
        self.limit = limit
        self._publish = publish
        self._wall_clock = wall_clock
        self._mask = mask
        self._lag = lag
        self._token = trio.lowlevel.current_trio_token()
        self._watched = threading.get_ident()
        self._stop = threading.Event()
        self._alive = threading.Event()
        self._suspect: str | None = None

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._run, name="concorde-trio watchdog", daemon=True).start()

    def stop(self) -> None:
        """End, without waiting for it."""
        self._stop.set()
        self._alive.set()

    def _run(self) -> None:
        # A sign is asked for four times in a limit, so what lasts a quarter longer than that is always seen.
        while not self._stop.wait(self.limit / 4):
            self._alive.clear()
            asked = time.monotonic()
            if self._stop.is_set() or not self._call(partial(self._answer, asked)):
                return
            if not self._wait(asked):
                who, where = self._tell(time.monotonic() - asked)
                self._alive.wait()
                blocked = time.monotonic() - asked
                if self._stop.is_set() or not self._call(partial(self._told, blocked, who, where)):
                    return

    def _answer(self, asked: float) -> None:
        """In Trio's thread: the sign."""
        self._alive.set()
        if self._lag is not None:
            self._lag(time.monotonic() - asked)

    def _wait(self, asked: float) -> bool:
        """Whether the sign came in time. Where this thread was held up too (the process was stopped), it waits anew."""
        limit = self.limit
        while not self._alive.wait(limit / 2):
            # Who is still there at the end has it to answer for; many short things in a row have nobody.
            self._suspect = _who(sys._current_frames().get(self._watched))
            if self._alive.wait(limit / 2):
                break
            now = time.monotonic()
            if now - asked < 1.5 * limit:
                return False
            asked = now
        return True

    def _tell(self, seconds: float) -> tuple[str | None, str]:
        frame = sys._current_frames().get(self._watched)
        stack = traceback.extract_stack(frame) if frame is not None else traceback.StackSummary()
        who = _who(frame)
        if who != self._suspect:
            who = None
        del frame
        logger.warning(
            "the event loop has not come back for %.1f s%s; until it does, no session goes on and no limit is kept. It stands at:\n%s",
            seconds,
            "" if who is None else self._mask(f", held up by {who}"),
            "".join(stack.format()),
        )
        return who, f"{stack[-1].filename}:{stack[-1].lineno} in {stack[-1].name}" if stack else "not known"

    def _told(self, blocked: float, who: str | None, where: str) -> None:
        """In Trio's thread."""
        if self._stop.is_set():
            return
        try:
            logger.warning(
                "%s blocked the event loop for %.1f s, at %s", self._mask(who or "something"), blocked, where
            )
            self._publish([LoopBlocked(at=self._wall_clock(), seconds=blocked, where=where, who=who)])
        except Exception:
            logger.exception("an event could not be published")

    def _call(self, function: Callable[[], object]) -> bool:
        """Have Trio's thread call it; False if Trio is over."""
        try:
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            return False
        return True


def _who(frame: FrameType | None) -> str | None:
    """Whose code runs: the innermost function that says what it works on. It runs on meanwhile, so nothing here may be relied on."""
    while frame is not None:
        say = _works.get(frame.f_code)
        if say is not None:
            try:
                return say(dict(frame.f_locals))
            except Exception:  # noqa: BLE001 - the frame has gone on meanwhile
                return None
        frame = frame.f_back
    return None

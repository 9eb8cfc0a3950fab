"""Plain functions in threads that Trio cannot stop (SES-13, F-31). The law:

- A cancelled call returns at once. Its thread is listed (``ToolContext.left``) until it is seen to end, its late result is
  kept on that record only. A thread that had not begun runs nothing.
- Threads are bounded: at most 40 at once in a Trio run, abandoned ones included, and further calls wait. When all that
  the process may have are abandoned ones, a call is refused instead.
- ``trio.from_thread`` works in them, ``check_cancelled`` above all.
- An exit that is asked for in such a thread ends the call and not the program: Ctrl-C never arrives there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar, cast

import attrs
import trio

from concorde_trio.errors import TooManyThreads, UsageError
from concorde_trio.failures import describe
from concorde_trio.sessions.tool import Leftover, LeftWork, ToolContext

T = TypeVar("T")


class _Process:
    """What this process has: abandoned threads may outlive the Trio run that they came from."""

    lock = threading.Lock()
    limit = 40
    abandoned = 0


@attrs.define
class _Run:
    """What one Trio run has."""

    busy: int = 0
    waiting: trio.lowlevel.ParkingLot = attrs.Factory(trio.lowlevel.ParkingLot)


_run: trio.lowlevel.RunVar[_Run] = trio.lowlevel.RunVar("concorde_trio.tools.threads")


def limit_tool_threads(count: int) -> None:
    """How many threads plain tools may have at once, abandoned ones included; 40 unless set. Set it before the start."""
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise UsageError(f"the number of threads for plain tools is an integer of at least 1, not {count!r:.80}")
    _Process.limit = count


async def in_thread(
    function: Callable[[], T], context: ToolContext, tool: str, *, tell: Callable[[T], str | None] = lambda _: None
) -> T:
    """What ``function()`` gives, called in a thread of its own. TooManyThreads when it is not called at all.

    ``tool``: its name, for the thread's name and its record. ``tell`` puts a result that came too late into words; it is
    called in the thread.
    """
    return await _Work(function, context, tool, tell).run()


class _Work(Generic[T]):
    """One call; also the limiter that Trio asks for room, which it gives back when the thread has really ended."""

    def __init__(
        self, function: Callable[[], T], context: ToolContext, tool: str, tell: Callable[[T], str | None]
    ) -> None:
        self._function = function
        self._context = context
        self._tool = tool
        self._tell = tell
        self._number: int | None = None  # the thread, once the function is about to be called
        self._over = False  # and nobody had gone away before
        self._gone = False  # whoever waited
        self._late: str | None = None
        self._left: LeftWork | None = None
        self._room = _Run()

    async def run(self) -> T:
        try:
            box = await trio.to_thread.run_sync(
                self._call,
                thread_name=f"{self._tool} of {self._context.session}",
                abandon_on_cancel=True,
                limiter=cast("trio.CapacityLimiter", self),
            )
        except trio.Cancelled:
            self._abandon()
            raise
        return box[0]

    def _call(self) -> tuple[T]:
        """In the thread. The result is in a tuple: Trio would refuse a coroutine."""
        with _Process.lock:
            if self._gone:
                raise RuntimeError("nobody waits for this call any more; it was not begun")
            self._number = threading.get_native_id()
        try:
            value = self._function()
        except (SystemExit, KeyboardInterrupt) as error:  # as of argparse in the function
            self._failed(error)
            raise RuntimeError(f"the function asked for an exit: {describe(error)}") from error
        except BaseException as error:
            self._failed(error)
            raise
        if self._is_late():
            self._end(self._told(value))
        return (value,)

    def _failed(self, error: BaseException) -> None:
        if self._is_late():
            self._end(None if isinstance(error, trio.Cancelled) else describe(error))

    def _is_late(self) -> bool:
        with _Process.lock:
            self._over = not self._gone
            return self._gone

    def _told(self, value: T) -> str | None:
        try:
            return self._tell(value)
        except Exception as error:  # noqa: BLE001 - nobody waits for it; the record says what became of it
            return describe(error)

    def _end(self, late: str | None) -> None:
        self._late = late
        with _Process.lock:
            _Process.abandoned -= 1

    def _abandon(self) -> None:
        """Nobody waits any more: list the thread, if there is one at work."""
        with _Process.lock:
            self._gone = not self._over
            listed = self._gone and self._number is not None
            _Process.abandoned += listed
        if listed:
            assert self._number is not None
            about = f"the thread of the tool {self._tool}, which Python cannot stop"
            self._left = self._context.left(Leftover("thread", self._number, about))
            if _Process.abandoned >= _Process.limit:
                self._room.waiting.unpark_all()  # to be refused

    # --- what Trio asks of a limiter ------------------------------------------------------------------------

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        """Wait for room. TooManyThreads when there will be none."""
        try:
            room = _run.get()
        except LookupError:
            _run.set(room := _Run())
        while True:
            if _Process.abandoned >= _Process.limit:
                raise TooManyThreads(
                    f"The tool {self._tool} was not run: {_Process.abandoned} earlier calls of plain tools were given up "
                    f"and their threads still run, and no more than {_Process.limit} threads are allowed. "
                    "Try again when they have ended."
                )
            if room.busy < _Process.limit:
                break
            await room.waiting.park()
        room.busy += 1
        self._room = room

    def release_on_behalf_of(self, borrower: object) -> None:
        """The thread has ended. Called by Trio in its own thread, and not at all when the run is over."""
        self._room.busy -= 1
        self._room.waiting.unpark()
        if self._left is not None:
            self._left.ended(self._late)

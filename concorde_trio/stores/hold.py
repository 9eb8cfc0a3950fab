"""A transaction of the user's while it holds the writer: commands come in, and its time runs (SIG-2).

The law: it ends once, by commit, rollback or time, and whoever comes after that is told so. The writer's thread serves
nothing else meanwhile; that is what "others wait" means.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs
import trio
from outcome import Error, Outcome, Value, capture

from concorde_trio.errors import TransactionOver

GRACE = 0.2
"""Seconds after its time limit in which the Trio side, which has the better words, ends it first."""

Call = Callable[[Any], Any]
"""What runs on the connection of the database in hand."""

Reply = Callable[[Sequence[tuple[trio.lowlevel.Task, Outcome[Any]]], bool], None]


class Held(Protocol):
    """The writer, held for one transaction."""

    @property
    def over(self) -> bool:
        """True once it has ended."""
        ...

    async def call(self, call: Call) -> Any:
        """Run ``call`` on the connection."""
        ...

    async def end(self, *, commit: bool) -> None:
        """Commit or roll back."""
        ...

    def wake_on_commit(self) -> None:
        """It has added what a worker waits for."""
        ...


class HeldSession(Protocol):
    """What is asked of a writer's connection while it is held."""

    @property
    def connection(self) -> Any:
        """What calls are given."""
        ...

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open."""
        ...

    def end_statements_if(self, unwanted: Callable[[], bool] | None) -> None:
        """End a statement that runs once ``unwanted`` says so; None: none."""
        ...

    def commit(self) -> None:
        """Commit."""
        ...

    def roll_back(self) -> None:
        """Roll back, if anything is open."""
        ...


@attrs.define(eq=False)
class _Command:
    """``call`` runs on the connection; None ends the hold, with a commit if ``commit``."""

    task: trio.lowlevel.Task
    call: Call | None
    commit: bool = False
    unwanted: bool = False


class Hold:
    """The writer, held."""

    def __init__(self, time_limit: float, interrupt: Callable[[], None] | None = None) -> None:
        """``interrupt``: told in the Trio thread when the statement that runs is not wanted any more."""
        self.time_limit = time_limit
        self._interrupt = interrupt
        self._commands: queue.SimpleQueue[_Command] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._over = False
        self._running: _Command | None = None
        self._until = math.inf
        self._wakes = False

    @property
    def over(self) -> bool:
        """True once it has ended."""
        return self._over

    def wake_on_commit(self) -> None:
        """It has added what a worker waits for."""
        self._wakes = True

    async def call(self, call: Call) -> Any:
        """Run ``call`` on the connection, inside the transaction; a cancellation ends its statement."""
        try:
            return await self._send(_Command(trio.lowlevel.current_task(), call))
        except Exception:
            await trio.lowlevel.checkpoint_if_cancelled()  # noqa: ASYNC120  A cancellation is why it failed.
            raise

    async def end(self, *, commit: bool) -> None:
        """Commit or roll back; whatever happens it is over then. Not cancelled: a commit is never abandoned."""
        await self._send(_Command(trio.lowlevel.current_task(), None, commit))

    async def _send(self, command: _Command) -> Any:
        with self._lock:
            if self._over:
                raise TransactionOver(over_message(self.time_limit))
            self._commands.put(command)

        def abort(_: object) -> trio.lowlevel.Abort:
            command.unwanted = True
            if self._interrupt is not None and command.call is not None:
                self._interrupt()
            return trio.lowlevel.Abort.FAILED

        return await trio.lowlevel.wait_task_rescheduled(abort)

    # --- the writer's thread --------------------------------------------------------------------------------

    def serve(self, session: HeldSession, reply: Reply, stopped: Callable[[], bool]) -> None:
        """Run commands until it ends; the transaction has begun, and is over after."""
        self._until = time.monotonic() + self.time_limit + GRACE
        session.end_statements_if(self._end_statement)
        last: list[tuple[trio.lowlevel.Task, Outcome[Any]]] = []
        wake = False
        try:
            while True:
                left = self._until - time.monotonic()
                if left <= 0 or stopped():
                    return
                try:
                    command = self._commands.get(timeout=min(left, 0.25))
                except queue.Empty:
                    continue
                if command.call is None:
                    result = capture(session.commit if command.commit else session.roll_back)
                    wake = self._wakes and command.commit and isinstance(result, Value)
                    last = [(command.task, result)]
                    return
                self._running = command
                result = capture(_run, command, session)
                if not session.in_transaction:
                    over = TransactionOver(
                        "this transaction was ended by an error of the database; nothing of it is stored"
                    )
                    over.__cause__ = result.error if isinstance(result, Error) else None
                    last = [(command.task, Error(over))]
                    return
                reply([(command.task, result)], False)
        finally:
            with self._lock:
                self._over = True
            session.end_statements_if(None)
            session.roll_back()
            late = Error(TransactionOver(over_message(self.time_limit)))
            while not self._commands.empty():
                last.append((self._commands.get_nowait().task, late))
            reply(last, wake)

    def _end_statement(self) -> bool:
        """Asked while a statement runs, where the database asks: true ends it."""
        return time.monotonic() > self._until or (self._running is not None and self._running.unwanted)


def _run(command: _Command, session: HeldSession) -> Any:
    if command.unwanted:
        raise TransactionOver("the task that asked for this statement was cancelled before it began")
    assert command.call is not None
    return command.call(session.connection)


def over_message(time_limit: float) -> str:
    """What whoever uses a transaction too late is told."""
    return (
        f"this transaction is over: it committed, rolled back, or passed its time_limit of {time_limit:g} s; "
        "use it inside its `async with` block only"
    )

"""The one task that calls handlers: one signal at a time, in the order it was given them (CLM-1).

It reports what each made and what it left untouched; the driver decides what that means.
"""

from __future__ import annotations

import logging
import time
from typing import Protocol

import trio

from concorde_trio._sansio.dispatch import Dispatcher
from concorde_trio._sansio.reports import Handled, StopMode
from concorde_trio.events import HandleBlocked
from concorde_trio.failures import describe, travels
from concorde_trio.log_context import note_signal
from concorde_trio.records import Prompt, SignalRecord
from concorde_trio.signals.handlers import Handlers
from concorde_trio.signals.options import WorkerOptions
from concorde_trio.signals.stopper import Stopper
from concorde_trio.watchdog import named_work

logger = logging.getLogger("concorde_trio.worker")

BLOCKED = 0.1
"""Seconds after which a plain handler is reported for keeping the event loop from running."""

SLICE = 0.001
"""Seconds of plain handlers after which other tasks get their turn."""


class HandleReports(Protocol):
    """Where the handling task reports to: the driver."""

    def handled(self, handled: Handled) -> None:
        """One handle is over."""
        ...

    def handling_over(self, left: list[SignalRecord]) -> None:
        """The task is free again; these signals it did not touch."""
        ...

    def log_failure(self, what: str, error: BaseException) -> None:
        """Keep the traceback of somebody else's exception."""
        ...

    def handle_blocked(self, event: HandleBlocked) -> None:
        """A plain handler held up everything else."""
        ...


class HandlingTask:
    """Calls handle of what it is given."""

    def __init__(self, core: Dispatcher, handlers: Handlers, options: WorkerOptions, reports: HandleReports) -> None:
        self._core = core
        self._handlers = handlers
        self._options = options
        self._reports = reports
        self._batch: tuple[SignalRecord, ...] = ()
        self._given = trio.Event()
        self._current: tuple[str, Stopper] | None = None

    def give(self, batch: tuple[SignalRecord, ...]) -> None:
        """Handle these, in order."""
        self._batch = batch
        self._given.set()

    def cancel(self, signal_id: str, reason: str) -> None:
        """End the handle of this signal if it is the one being called."""
        if self._current is not None and self._current[0] == signal_id:
            self._current[1].stop(reason)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._given.wait()
            self._given = trio.Event()
            self._reports.handling_over(await self._handle_all(self._batch))

    async def _handle_all(self, batch: tuple[SignalRecord, ...]) -> list[SignalRecord]:
        budget, made = self._core.handle_budget, 0
        sliced = time.perf_counter()
        left: list[SignalRecord] = []
        for place, record in enumerate(batch):
            strict = not self._handlers[record.kind].repeatable
            over = self._core.stop_mode is not None or self._core.resigning
            stopping = self._core.stop_mode is StopMode.CANCEL if strict else over
            if stopping and strict:
                self._reports.handled(Handled(record, error="the worker was stopped before handle was called"))
                continue
            # CLM-2, decided again for each: what the batch has made counts as waiting until the driver knows better.
            if stopping or (place and budget is not None and made > budget):
                return [*left, *batch[place:]]
            if self._core.is_doomed(record.id):
                if strict:
                    self._reports.handled(Handled(record, error="cancelled before it was handled"))
                else:
                    left.append(record)  # It is pending still, so it fails as a pending one does: there is no post.
                continue
            handled = await self._handle(record)
            if handled is None:
                return [*left, *batch[place:]]
            made += len(handled.prompts)
            self._reports.handled(handled)
            if place + 1 < len(batch) and time.perf_counter() - sliced > SLICE:
                await trio.lowlevel.checkpoint()
                sliced = time.perf_counter()
        return left

    @named_work(lambda here: f"handle of signal {here['record'].id} ({here['record'].kind})")
    async def _handle(self, record: SignalRecord) -> Handled | None:
        """None: cancelled by a stop and to be run again, because its handler is repeatable (CLM-6)."""
        handler = self._handlers[record.kind]
        note_signal(record.id)
        try:
            if not handler.is_async:
                before = time.perf_counter()
                found = handler.call(record.signal)
                blocked = time.perf_counter() - before
                if blocked > BLOCKED:
                    self._reports.handle_blocked(
                        HandleBlocked(
                            at=self._options.wall_clock(), signal_id=record.id, kind=record.kind, seconds=blocked
                        )
                    )
                if isinstance(found, tuple):
                    return Handled(record, found)
                awaited = found
            else:
                awaited = handler.prompts(record.signal)
            stopper, limit = Stopper(), self._options.handle_time_limit
            if limit is not None:
                stopper.scope.deadline = trio.current_time() + limit
            self._current = (record.id, stopper)
            prompts: tuple[Prompt, ...] = ()
            try:
                with stopper.scope:
                    prompts = await awaited
            finally:
                self._current = None
        except BaseException as error:  # noqa: ASYNC103  A cancellation does travel.
            if travels(error):
                if not isinstance(error, trio.Cancelled):
                    logger.error(
                        "handle of signal %s (%s) raised %s, which stops the worker; if it comes again at each start, "
                        "cancel the signal",
                        record.id,
                        record.kind,
                        type(error).__name__,
                    )
                raise
            # It fails this signal alone (CLM-5).
            self._reports.log_failure(f"handle of signal {record.id}", error)
            return Handled(record, error=describe(error))  # noqa: ASYNC104  What travels was raised.
        if not stopper.scope.cancelled_caught:
            return Handled(record, prompts)
        if stopper.reason is None:
            return Handled(record, error=f"handle took longer than handle_time_limit, {limit:g} s")
        if handler.repeatable and self._core.stop_mode is StopMode.CANCEL and not self._core.is_doomed(record.id):
            return None
        return Handled(record, error=stopper.reason)

"""One signal's nursery: its runs are the child tasks, and its post phase follows them (RUN-3, PST-1).

The law: these tasks only report, synchronously; nothing is written from them, so that none of it can be half done
when they are cancelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import trio

from concorde_trio._sansio.live import LiveRun
from concorde_trio._sansio.session_changes import EmitSignals, LinkInputs
from concorde_trio.failures import describe, travels
from concorde_trio.log_context import note_signal
from concorde_trio.records import PostOutcome, RunOutcome, Signal
from concorde_trio.signals.execution import execute, tell_end
from concorde_trio.signals.handlers import SignalHandler
from concorde_trio.signals.runtime import Runtime
from concorde_trio.signals.stopper import Stopper
from concorde_trio.watchdog import named_work


class Reports(Protocol):
    """Where the tasks of a signal report to: the driver."""

    def run_over(self, run_id: str, outcome: RunOutcome, with_end: Sequence[EmitSignals | LinkInputs]) -> None:
        """The Runtime has returned or raised, and everything of the run is over; see Execution for ``with_end``."""
        ...

    def post_over(self, signal_id: str, error: str | None) -> None:
        """The post phase has returned, or raised ``error``."""
        ...

    def log_failure(self, what: str, error: BaseException) -> None:
        """Keep the traceback of somebody else's exception for the people who can mend it."""
        ...


class SignalTask:
    """The task of one signal. ``start`` and ``finish`` are called by the driver, once their marks are stored."""

    def __init__(
        self,
        runtime: Runtime,
        handler: SignalHandler | None,
        reports: Reports,
        post_time_limit: float | None,
        *,
        holds: bool,
    ) -> None:
        self._runtime = runtime
        self._handler = handler
        self._reports = reports
        self._post_time_limit = post_time_limit
        self._nursery: trio.Nursery | None = None
        self._early: list[tuple[LiveRun, Stopper]] = []
        self._complete = False
        self._completed: trio.Event | None = None  # made where it is waited for: most signals have one run
        self._over = trio.Event() if holds else None
        self._post: tuple[Signal, PostOutcome] | None = None
        self._post_stopper: Stopper | None = None

    def start(self, live: LiveRun, stopper: Stopper) -> None:
        """A run may be executed now."""
        if self._nursery is None:
            self._early.append((live, stopper))
        else:
            self._nursery.start_soon(self._execute, live, stopper)
        if not live.signal.unstarted:
            self._complete_now()

    def _complete_now(self) -> None:
        """No run is still to start: the nursery ends with those it has."""
        self._complete = True
        if self._completed is not None:
            self._completed.set()

    def finish(self, post: tuple[Signal, PostOutcome] | None) -> None:
        """All runs have ended; ``post`` is what the post phase is to be called with, if it is to be called."""
        if post is not None:
            self._post, self._post_stopper = post, Stopper()
        self._complete_now()
        if self._over is not None:
            self._over.set()

    def stop_post(self, reason: str) -> None:
        """End the post phase, if it was to be called."""
        if self._post_stopper is not None:
            self._post_stopper.stop(reason)

    async def run(self) -> None:
        """The signal's life from its first run to the end of its post phase."""
        if self._early:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                for live, stopper in self._early:
                    nursery.start_soon(self._execute, live, stopper)
                self._early.clear()
                if not self._complete:
                    self._completed = trio.Event()
                    await self._completed.wait()
        if self._over is not None:
            await self._over.wait()
        if self._post is not None and self._post_stopper is not None:
            await self._run_post(*self._post, self._post_stopper)

    async def _execute(self, live: LiveRun, stopper: Stopper) -> None:
        ended, execution = await execute(
            self._runtime, live.run, live.signal.record.kind, stopper, self._reports.log_failure
        )
        self._reports.run_over(live.run.id, ended, execution.with_end)

    @named_work(lambda here: f"post of signal {here['signal'].id}")
    async def _run_post(self, signal: Signal, outcome: PostOutcome, stopper: Stopper) -> None:
        error: str | None = None
        note_signal(signal.id)
        limit = self._post_time_limit
        if limit is not None:
            stopper.scope.deadline = trio.current_time() + limit
        try:
            with stopper.scope:
                if self._handler is not None:
                    await self._handler.run_post(signal, outcome)
        except BaseException as raised:  # noqa: ASYNC103  A cancellation does travel.
            if travels(raised):
                tell_end(f"post of signal {signal.id}", raised)
                raise
            error = describe(raised)  # It fails this signal alone.
            self._reports.log_failure(f"post of signal {signal.id}", raised)
        if stopper.scope.cancelled_caught:
            error = stopper.reason or f"it took longer than post_time_limit, {limit:g} s"
        self._reports.post_over(signal.id, error)

"""A member's half of a fleet that executes: it takes what is offered, runs it, and writes how it ended.

The law: a run is called once its start mark is stored, in this process alone, and its outcome is written under the member's lease or
not at all. Tags are of this process: a request is attributed where its run executes (TAG-3).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import attrs
import trio

from concorde_trio._sansio.run_tags import RunTags
from concorde_trio.errors import LeaseLost, StoreBusy, StoreError
from concorde_trio.failures import traceback_of
from concorde_trio.records import RunInfo, RunOutcome, RunState
from concorde_trio.signals.execution import execute
from concorde_trio.signals.fleet import Execution, Finished, Membership
from concorde_trio.signals.options import WorkerOptions
from concorde_trio.signals.runtime import Runtime
from concorde_trio.signals.stopper import Stopper

logger = logging.getLogger("concorde_trio.worker")

AT_ONCE = 64
"""Runs taken in one commit, so that who has no bound leaves something to others."""


@attrs.define(eq=False)
class _Running:
    taken: Execution
    stopper: Stopper
    stored: list[Callable[[], None]] = attrs.field(factory=list)


class Executor:
    """Executes runs of one member. ``may_take``: whether it takes new ones now."""

    def __init__(
        self,
        member: Membership,
        runtime: Runtime,
        options: WorkerOptions,
        capacity: int | None,
        may_take: Callable[[], bool],
    ) -> None:
        self.tags: RunTags[str] = RunTags()
        self._member = member
        self._runtime = runtime
        self._options = options
        self._capacity = capacity
        self._may_take = may_take
        self._runs: dict[str, _Running] = {}
        self._ended: list[Finished] = []
        self._offers, self._stops, self._over = trio.Event(), trio.Event(), trio.Event()
        self._idle = trio.Event()
        self._idle.set()
        self._taking = self._asked = False
        self._stopped: str | None = None
        self._nursery: trio.Nursery | None = None

    # --- what others ask ------------------------------------------------------------------------------------

    def heard(self, word: str) -> None:
        """The leader offers, or asks for an end; or something may have been missed."""
        if word in ("offer", "gap"):
            self._offers.set()
        if word in ("stop", "gap"):
            self._asked = True
            self._stops.set()

    def attribute(self, values: Sequence[str]) -> RunInfo | None:
        """The run that a request with these tag header values comes from (TAG-3)."""
        run_id = self.tags.lookup(values)
        running = None if run_id is None else self._runs.get(run_id)
        if running is None:
            return None
        run = running.taken.run
        return RunInfo(id=run.id, signal_id=run.signal_id, session=run.session, context=run.context)

    def stop_all(self, reason: str) -> None:
        """End every run, and what is being taken at this moment."""
        self._stopped = reason
        for running in self._runs.values():
            running.stopper.stop(reason)

    async def wait_idle(self) -> None:
        """Until nothing runs or is being taken, and all of it is written."""
        await self._idle.wait()

    # --- its tasks ------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._write_ends)
                nursery.start_soon(self._heed_stops)
                await self._take_offers(nursery)
        finally:
            for end in self._ended:
                self._refused(end.run_id)

    async def _take_offers(self, nursery: trio.Nursery) -> None:
        while True:
            await self._offers.wait()
            self._offers = trio.Event()
            while self._may_take() and (room := self._room()) > 0:
                taken = await self._take(room)
                for each in taken:
                    self._begin(nursery, each)
                if self._asked:
                    self._stops.set()  # It may have been about one of these, which nobody here knew yet.
                if not self._runs:
                    self._idle.set()
                if len(taken) < room:
                    break

    async def _take(self, room: int) -> list[Execution]:
        """What is taken is this member's from the commit on, before it is known here."""
        if self._idle.is_set():
            self._idle = trio.Event()
        self._taking, self._asked = True, False
        try:
            return await self._member.take(room, self._options.wall_clock())
        finally:
            self._taking = False

    def _room(self) -> int:
        return AT_ONCE if self._capacity is None else min(AT_ONCE, self._capacity - len(self._runs))

    def _begin(self, nursery: trio.Nursery, taken: Execution) -> None:
        run = taken.run
        if run.tag is not None:
            self.tags.expect(run.tag)
            self.tags.claim(run.tag, run.id)
        running = self._runs[run.id] = _Running(taken, Stopper())
        if self._stopped is not None:
            running.stopper.stop(self._stopped)
        nursery.start_soon(self._execute, running)

    async def _execute(self, running: _Running) -> None:
        run, stopper = running.taken.run, running.stopper
        async with trio.open_nursery() as timing:
            if run.time_limit is not None:
                timing.start_soon(self._time_is_up, run.time_limit, stopper)
            outcome, execution = await execute(self._runtime, run, running.taken.kind, stopper, self._log_failure)
            timing.cancel_scope.cancel()
        if run.tag is not None:
            self.tags.release(run.tag, run.id)  # from this moment no request is attributed to it (TAG-1)
        running.stored = execution.stored
        self._ended.append(Finished(run.id, outcome, tuple(execution.with_end)))
        self._over.set()

    async def _time_is_up(self, limit: float, stopper: Stopper) -> None:
        await trio.sleep(limit)
        stopper.stop(f"it reached its time limit of {limit:g} s and was stopped", RunState.FAILED)

    async def _heed_stops(self) -> None:
        while True:
            await self._stops.wait()
            self._stops = trio.Event()
            if self._runs:
                for asked in await self._member.stops():
                    if asked.run_id in self._runs:
                        self._runs[asked.run_id].stopper.stop(asked.reason, asked.state)

    async def _write_ends(self) -> None:
        while True:
            await self._over.wait()
            self._over = trio.Event()
            ends = list(self._ended)
            # What has more to write with its end is by itself: if that cannot be written, it fails alone.
            together = [end for end in ends if not end.with_end]
            async with trio.open_nursery() as nursery:
                for part in [together, *([end] for end in ends if end.with_end)]:
                    if part:
                        nursery.start_soon(self._write, part)

    async def _write(self, ends: list[Finished]) -> None:
        try:
            written = await self._member.finish(ends)
        except StoreError as error:
            if isinstance(error, LeaseLost | StoreBusy) or not ends[0].with_end:
                raise
            logger.warning("what was to be stored with the end of run %s cannot be: %s", ends[0].run_id, error)
            outcome = RunOutcome.failed(f"what was to be stored with its end cannot be stored: {error}")
            written = await self._member.finish([Finished(ends[0].run_id, outcome, ())])
        for end in ends:
            self._ended.remove(end)
            running = self._runs.pop(end.run_id)
            tag = running.taken.run.tag
            if tag is not None:
                self.tags.forget(tag)
            if end.run_id not in written:
                self._refused(end.run_id, running.taken.epoch)
            for call in running.stored:
                call()
        if not (self._runs or self._taking):
            self._idle.set()
        self._offers.set()

    def _refused(self, run_id: str, epoch: int | None = None) -> None:
        if epoch is None:
            epoch = self._runs[run_id].taken.epoch
        logger.warning("late result of epoch %d refused: run %s is not this process's any more", epoch, run_id)

    def _log_failure(self, what: str, error: BaseException) -> None:
        """Somebody else's exception, with its traceback and without live tags (TAG-4)."""
        logger.warning("%s raised:\n%s", what, self.tags.mask(traceback_of(error)))

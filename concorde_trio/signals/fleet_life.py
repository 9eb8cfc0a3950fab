"""A worker's life on a store of a fleet: it joins, executes what is offered, leads where nobody does, and leaves.

The law: what runs under a lease is over before the process joins again. A stop leaves to others what others can do: a leader lays the
lead down at once, and drains like a lone worker only where it is alone.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import trio

from concorde_trio import events
from concorde_trio._sansio.dispatch import Dispatcher
from concorde_trio._sansio.reports import KindInfo, StopMode
from concorde_trio._sansio.run_tags import RunTags
from concorde_trio.errors import LeaseLost, StoreBusy, StoreError
from concorde_trio.failures import alone, describe, not_cancelled
from concorde_trio.records import RunInfo
from concorde_trio.signals.driver import HANGING, Driver, masked
from concorde_trio.signals.event_bus import EventBus
from concorde_trio.signals.executor import Executor
from concorde_trio.signals.fleet import FleetStore, LeaderSeen, Leadership, Membership
from concorde_trio.signals.handlers import Handlers
from concorde_trio.signals.lone_life import LifeReports
from concorde_trio.signals.options import WorkerOptions
from concorde_trio.signals.runtime import OpenableRuntime, Runtime, RuntimeContext
from concorde_trio.signals.schedules import Schedules

logger = logging.getLogger("concorde_trio.worker")

LOOK = 0.5
"""Seconds between two looks at who leads, at most, and at who is dead."""

STOPPED = "the worker was stopped"


class FleetLife:
    """One process in a fleet. ``core`` and ``driver`` are there while it leads."""

    def __init__(
        self,
        store: FleetStore,
        runtime: Runtime,
        handlers: Handlers,
        options: WorkerOptions,
        bus: EventBus,
        schedules: Schedules,
    ) -> None:
        self.core: Dispatcher | None = None
        self.driver: Driver | None = None
        self.executor: Executor | None = None
        self._store = store
        self._runtime = runtime
        self._handlers = handlers
        self._options = options
        self._bus = bus
        self._schedules = schedules
        self._reports: LifeReports | None = None
        self._mode: StopMode | None = None
        self._stopping = trio.Event()
        self._stricter = trio.Event()
        self._news = trio.Event()
        self._bound = trio.CancelScope()
        self._told: StopMode | None = None
        self._over = False
        self._joining = trio.CancelScope()
        self._member: Membership | None = None
        self._alone = False
        self._seen: RunTags[str] = RunTags()

    def stop(self, mode: StopMode) -> None:
        """Leave the fleet, or more strictly (STP-4)."""
        if self._mode is not None and mode <= self._mode:
            return
        self._mode = mode
        self._stopping.set()
        self._stricter.set()
        if self._member is None:
            self._joining.cancel("a stop was asked for")
        if self.driver is None:
            self._tell_stopping()
        if mode is StopMode.CANCEL:
            self._bound.deadline = min(self._bound.deadline, trio.current_time() + self._options.stop_grace + HANGING)

    def _tell_stopping(self) -> None:
        """Where no driver drains: what runs here takes nothing new (SES-21)."""
        if self._mode is not None and self._mode is not self._told and not self._over:
            self._told = self._mode
            self.publish([events.WorkerStopping(at=self._options.wall_clock(), mode=self._mode.name.lower())])

    def attribute(self, values: Sequence[str]) -> RunInfo | None:
        """The run that a request with these tag header values comes from (TAG-3)."""
        return None if self.executor is None else self.executor.attribute(values)

    def mask(self, text: str) -> str:
        """TAG-4, of all tags that this process knows."""
        for tags in self._tags():
            text = tags.mask(text)
        return text

    def mask_json(self, value: Any) -> Any:
        """The same in every string."""
        for tags in self._tags():
            value = tags.mask_json(value)
        return value

    def _tags(self) -> Iterator[RunTags[str]]:
        """Of runs here, of all runs if this one leads, and of all that there were when somebody looked."""
        if self.executor is not None:
            yield self.executor.tags
        if self.core is not None:
            yield self.core.tags
        else:
            yield self._seen

    async def learn_tags(self) -> None:
        """Look for all tags that are live, unless this one leads and knows."""
        if self.core is None and self._member is not None:
            seen: RunTags[str] = RunTags()
            for tag in await self._store.tags():
                seen.expect(tag)
            self._seen = seen

    async def leader(self) -> LeaderSeen | None:
        """Who leads, as far as is known."""
        return None if self._member is None else await self._member.leader()

    @property
    def leads(self) -> bool:
        """Whether the lock table is in this process."""
        return self.core is not None

    def publish(self, told: Iterable[events.Event]) -> None:
        """Tell of events, with live tags masked (TAG-4)."""
        self._bus.publish([masked(event, self.mask) for event in told])

    async def run(self, kinds: Mapping[str, KindInfo], url: str | None, reports: LifeReports) -> None:
        """Until stopped. It has recovered when somebody leads."""
        self._reports = reports
        try:
            await self._run(kinds, url, reports)
        except BaseException as error:
            reports.closing(error)
            raise
        reports.recovered()

    async def _run(self, kinds: Mapping[str, KindInfo], url: str | None, reports: LifeReports) -> None:
        first = True
        with self._bound:
            while True:
                self._joining = trio.CancelScope()
                if self._stopping.is_set() and not first:
                    break
                try:
                    with self._joining:
                        async with self._store.enrol(url=url, capacity=self._options.capacity) as member:
                            self._member = member
                            await self._live(member, kinds, url, reports)
                    break
                except BaseException as error:  # noqa: ASYNC103  Raised again, but for a lost lease.
                    if not self._is_lost(error) and (first or not isinstance(error, StoreBusy)):
                        raise
                    logger.warning("%s; joining again", describe(not_cancelled(error) or error))
                finally:
                    self._member = None
                first = False
        if self._bound.cancelled_caught:
            logger.warning("stop_grace is over; what is still running is left to others")

    def _is_lost(self, error: BaseException) -> bool:
        """Whether all of this is about a lease that is over: then the process joins again."""
        rest = not_cancelled(error)
        single = alone(rest) if isinstance(rest, BaseExceptionGroup) else rest
        if isinstance(single, LeaseLost):
            return True
        if not isinstance(rest, BaseExceptionGroup):
            return False
        # What runs under it may fail in its own way for it; but somebody must have said that it is over.
        lost, others = rest.split(LeaseLost)
        return lost is not None and (others is None or others.split(StoreError)[1] is None)

    # --- as a member ----------------------------------------------------------------------------------------

    async def _live(
        self,
        member: Membership,
        kinds: Mapping[str, KindInfo],
        url: str | None,
        reports: LifeReports,
    ) -> None:
        options = self._options
        async with AsyncExitStack() as stack:
            if isinstance(self._runtime, OpenableRuntime):
                context = RuntimeContext(
                    queue=member.marker,
                    agent_server_url=url,
                    programs_lock=member.programs_lock,
                    store=self._store,
                    bus=self._bus,
                    publish=self.publish,
                    fleet=True,
                )
                await stack.enter_async_context(self._runtime.open(context))
            reports.opened()
            executor = Executor(member, self._runtime, options, options.capacity, self._may_take)
            self.executor = executor
            try:
                await stack.enter_async_context(member.on_fleet(self._heard))
                await stack.enter_async_context(self._store.on_change(self._new))
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(executor.run)
                    self._heard("gap", None)  # what happened before it listened
                    if options.sweep is not None:
                        nursery.start_soon(self._sweep, options.sweep)
                    leading = trio.Event()
                    nursery.start_soon(self._lead_when_free, member, kinds, reports, leading)
                    nursery.start_soon(self._escalate, executor)
                    await self._stopping.wait()
                    await member.drain()
                    await leading.wait()
                    await executor.wait_idle()
                    self._over = True
                    reports.closing(None)
                    await reports.over()
                    nursery.cancel_scope.cancel("everything is over")
            finally:
                self.executor = None

    def _may_take(self) -> bool:
        return self._mode is None or (self._mode is StopMode.DRAIN and self._alone)

    def _heard(self, word: str, about: Any) -> None:
        if self.executor is not None:
            self.executor.heard(word)
        if self.driver is not None:
            self.driver.heard(word, about)
        if word in ("settled", "gap") and self._reports is not None:
            self._reports.settled(about)
        if word in ("leader", "gap"):
            self._news.set()

    def _new(self) -> None:
        if self.driver is not None:
            self.driver.changed()

    async def _sweep(self, every: float) -> None:
        while True:
            await trio.sleep(every)
            if self.driver is not None:
                self.driver.sweep()
            self._heard("gap", None)

    async def _escalate(self, executor: Executor) -> None:
        """A stop becomes stricter by time (STP-4); a cancelling one ends what runs here."""
        options = self._options
        await self._stopping.wait()
        for mode, seconds in ((StopMode.DRAIN, options.drain_for), (StopMode.PARK, options.park_for)):
            while self._mode is mode:
                self._stricter = trio.Event()
                with trio.move_on_after(math.inf if seconds is None else seconds) as waited:
                    await self._stricter.wait()
                if waited.cancelled_caught:
                    self.stop(StopMode(mode + 1))
        executor.stop_all(STOPPED)

    # --- as the leader --------------------------------------------------------------------------------------

    async def _lead_when_free(
        self, member: Membership, kinds: Mapping[str, KindInfo], reports: LifeReports, over: trio.Event
    ) -> None:
        while not self._stopping.is_set():
            self._news = trio.Event()
            try:
                async with member.lead() as lead:
                    if lead is not None:
                        await self._lead(lead, kinds, reports)
                        continue
            except BaseException as error:  # noqa: ASYNC103  Raised again, but for a lost lead.
                if not self._is_lost(error) or member.over is not None:
                    raise
                logger.warning("this process does not lead any more: %s", describe(not_cancelled(error) or error))
            if await member.leader() is not None:
                reports.recovered()
            with trio.move_on_after(LOOK):
                await self._news.wait()
        over.set()

    async def _lead(self, lead: Leadership, kinds: Mapping[str, KindInfo], reports: LifeReports) -> None:
        options = self._options
        core = Dispatcher(
            kinds,
            claim_ahead=options.claim_ahead,
            max_running=options.max_running,
            position=await self._store.last_position(),
            time_limit=options.time_limit,
            offers=True,
        )
        driver = Driver(core, self._store, self._runtime, self._handlers, options, self._bus, self._schedules, lead)
        logger.info("this process leads, in epoch %d", lead.epoch)
        self.core, self.driver = core, driver
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch_over, lead, driver)
                await driver.run(nursery, reports.recovered)
                nursery.cancel_scope.cancel("the lead is laid down")
        finally:
            self.core = self.driver = None
            self._alone = False

    async def _watch_over(self, lead: Leadership, driver: Driver) -> None:
        """See to who is dead, and to a stop: where others live, the lead is theirs."""
        asked: StopMode | None = None
        while True:
            with trio.move_on_after(LOOK):
                await (self._stopping if self._mode is None else self._stricter).wait()
            driver.heard("gap")
            mode = self._mode
            if mode is None:
                continue
            self._stricter = trio.Event() if self._stricter.is_set() else self._stricter
            if await lead.others():
                self._tell_stopping()
                driver.resign(cut=mode is StopMode.CANCEL)
                await trio.sleep(LOOK)
            elif asked is not mode:
                asked, self._alone = mode, True
                driver.stop(mode)

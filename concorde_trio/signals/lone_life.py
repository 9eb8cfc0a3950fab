"""A worker's life on a queue of its own: it recovers, claims, handles and executes all of it, until a stop is done.

The law: what it opens is closed in reverse, and only once nothing of the driver's is left.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

import trio

from concorde_trio import events
from concorde_trio._sansio.dispatch import Dispatcher
from concorde_trio._sansio.reports import KindInfo, StopMode
from concorde_trio.records import RunInfo
from concorde_trio.signals.driver import Driver
from concorde_trio.signals.event_bus import EventBus
from concorde_trio.signals.fleet import LeaderSeen, for_fleet
from concorde_trio.signals.handlers import Handlers
from concorde_trio.signals.options import WorkerOptions
from concorde_trio.signals.runtime import OpenableRuntime, Runtime, RuntimeContext
from concorde_trio.signals.schedules import Schedules
from concorde_trio.signals.store import SignalStore

logger = logging.getLogger("concorde_trio.worker")


class LifeReports(Protocol):
    """What a life tells its worker."""

    def opened(self) -> None:
        """The runtime is open: from here on a stop has something to end."""
        ...

    def recovered(self) -> None:
        """The queue is served."""
        ...

    def closing(self, error: BaseException | None) -> None:
        """It is over, for ``error`` if there is one; what was opened is closed from here on."""
        ...

    async def over(self) -> None:
        """The same without an error: whoever waits for a signal may look a last time."""
        ...

    def settled(self, signal_ids: Iterable[str] | None) -> None:
        """These signals have settled (None: any may have), and no event of this process may tell of it."""
        ...


def kinds_of(runtime: Runtime, handlers: Handlers) -> dict[str, KindInfo]:
    """What there are handlers for, the runtime's own among them; from here on there are no others."""
    for kind, handler in getattr(runtime, "builtin_handlers", {}).items():
        if kind not in handlers:  # a handler of the user's takes the place of a built-in one (SES-20)
            handlers.add(kind, handler)
    handlers.freeze()
    return {
        kind: KindInfo(holds=handler.post is not None, repeatable=handler.repeatable)
        for kind, handler in handlers.items()
    }


@asynccontextmanager
async def owned(store: SignalStore, options: WorkerOptions) -> AsyncIterator[None]:
    """Be the queue's one worker (REC-1), where there is one; a fleet's worker is one of its members instead."""
    if for_fleet(store):
        yield
        return
    async with store.own(wait=options.wait_for_queue, waiting=logger.warning):
        yield


class LoneLife:
    """One worker alone. ``core`` and ``driver`` are there from when it runs."""

    leads = True

    def __init__(
        self,
        store: SignalStore,
        runtime: Runtime,
        handlers: Handlers,
        options: WorkerOptions,
        bus: EventBus,
        schedules: Schedules,
    ) -> None:
        self.core: Dispatcher | None = None
        self.driver: Driver | None = None
        self._store = store
        self._runtime = runtime
        self._handlers = handlers
        self._options = options
        self._bus = bus
        self._schedules = schedules
        self._asked: StopMode | None = None

    def stop(self, mode: StopMode) -> None:
        """Stop, or more strictly (STP-4)."""
        self._asked = mode
        if self.driver is not None:
            self.driver.stop(mode)

    def publish(self, told: Iterable[events.Event]) -> None:
        """Tell of events, with live tags masked (TAG-4)."""
        if self.driver is not None:
            self.driver.publish(told)

    def attribute(self, values: Sequence[str]) -> RunInfo | None:
        """The run that a request with these tag header values comes from (TAG-3)."""
        if self.core is None:
            return None
        run_id = self.core.tags.lookup(values)
        live = None if run_id is None else self.core.runs.get(run_id)
        return None if live is None else live.info

    def mask(self, text: str) -> str:
        """TAG-4."""
        return text if self.core is None else self.core.tags.mask(text)

    def mask_json(self, value: Any) -> Any:
        """The same in every string."""
        return value if self.core is None else self.core.tags.mask_json(value)

    async def leader(self) -> LeaderSeen | None:
        """There is no fleet."""
        await trio.lowlevel.checkpoint()
        return None

    async def learn_tags(self) -> None:
        """All are known."""

    async def run(self, kinds: Mapping[str, KindInfo], url: str | None, reports: LifeReports) -> None:
        """Until stopped."""
        options = self._options
        core = self.core = Dispatcher(
            kinds,
            claim_ahead=options.claim_ahead,
            max_running=options.max_running,
            position=await self._store.last_position(),
            time_limit=options.time_limit,
        )
        driver = self.driver = Driver(
            core, self._store, self._runtime, self._handlers, options, self._bus, self._schedules
        )
        async with AsyncExitStack() as stack:
            if isinstance(self._runtime, OpenableRuntime):
                context = RuntimeContext(
                    queue=self._store.queue,
                    agent_server_url=url,
                    programs_lock=self._store.programs_lock,
                    store=self._store,
                    bus=self._bus,
                    publish=driver.publish,
                )
                await stack.enter_async_context(self._runtime.open(context))
            await stack.enter_async_context(self._store.on_change(driver.changed))
            if self._asked is not None:
                driver.stop(self._asked)
            reports.opened()
            try:
                await self._drive(driver, reports)
            except BaseException as error:
                reports.closing(error)
                raise

    async def _drive(self, driver: Driver, reports: LifeReports) -> None:
        async with trio.open_nursery() as nursery:
            if self._options.sweep is not None:
                nursery.start_soon(self._sweep, driver, self._options.sweep)
            try:
                await driver.run(nursery, reports.recovered)
            finally:
                reports.closing(None)
            await reports.over()
            nursery.cancel_scope.cancel()

    async def _sweep(self, driver: Driver, every: float) -> None:
        while True:
            await trio.sleep(every)
            driver.sweep()

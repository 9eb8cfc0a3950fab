"""The signal worker's public door: emit, wait, cancel, retry, stop, and look at what runs and waits.

One worker serves a queue at a time (REC-1). Everything that people do to a queue also works from other processes,
because it is rows; what only this process knows (live tags, the lock table) is asked here.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast

import trio

from concorde_trio import events
from concorde_trio._sansio.dispatch import Dispatcher
from concorde_trio._sansio.reports import StopMode
from concorde_trio.errors import InsideTransaction, UnknownId, UsageError, WrongState
from concorde_trio.failures import alone, describe, not_cancelled
from concorde_trio.records import (
    JSON,
    NewSignal,
    RequestKind,
    Run,
    RunInfo,
    RunState,
    SignalRecord,
    SignalState,
)
from concorde_trio.signals.driver import Driver
from concorde_trio.signals.emit import new_signal
from concorde_trio.signals.event_bus import EventBus
from concorde_trio.signals.fleet import LeaderSeen, for_fleet
from concorde_trio.signals.fleet_life import FleetLife
from concorde_trio.signals.handlers import Handlers, as_handlers
from concorde_trio.signals.in_hand import InHand
from concorde_trio.signals.lone_life import LoneLife, kinds_of, owned
from concorde_trio.signals.options import WorkerOptions, worker_options
from concorde_trio.signals.prompts import PROMPT_LIMIT
from concorde_trio.signals.runtime import Runtime
from concorde_trio.signals.schedule import Schedule
from concorde_trio.signals.schedules import Schedules
from concorde_trio.signals.store import Pruned, RunFilter, SignalStore, Transaction
from concorde_trio.signals.views import LockView, LockViews, WaitView
from concorde_trio.watchdog import watching

logger = logging.getLogger("concorde_trio.worker")

SETTLED = (SignalState.DONE, SignalState.FAILED)


class SignalWorker:
    """Serves one queue. Made by ``open_worker`` or ``Gateway``.

    ``status`` is starting, running, stopping or stopped; ``last_error`` says why it ended by itself, if it did.
    """

    def __init__(
        self, store: SignalStore, runtime: Runtime, handlers: Handlers | dict[str, Any], options: WorkerOptions
    ) -> None:
        self.store = store
        self.handlers = as_handlers(handlers)
        self.options = options
        self.status = "starting"
        self.last_error: str | None = None
        self.stopped = trio.Event()
        self._runtime = runtime
        self._bus = EventBus()
        self._bus.call(self._note)
        self.schedules = Schedules(store, options, lambda told: (self._life or self._bus).publish(told))
        self._waiters: dict[str, list[trio.Event]] = {}
        self._waiter_left = trio.Event()
        self._shield = trio.CancelScope(shield=True)
        self._let_go = False  # it was cancelled while it opened
        self._begun = self._opening = False
        self._over = False
        self._failure: BaseException | None = None
        self._asked: StopMode | None = None
        self._life: LoneLife | FleetLife | None = None
        if not callable(getattr(runtime, "run", None)):
            raise UsageError(
                f"a runtime must have `async def run(self, prompt)`, {type(runtime).__name__} has none; "
                "an async function becomes one by FunctionRuntime(function)"
            )

    # --- signals ------------------------------------------------------------------------------------------------

    async def emit(
        self, kind: str, payload: JSON = None, *, key: str | None = None, tx: Transaction | None = None
    ) -> str:
        """Record that something happened; its id, once it is committed (SIG-1), or at once with ``tx`` (SIG-2).

        ``payload`` is any JSON value (SIG-5: InvalidValue names the place otherwise). With ``key``, a second emit of
        the same kind and key gives the first one's id and stores nothing (SIG-7).
        """
        signal = self.new_signal(kind, payload, key=key)
        return (await self.store.emit([signal], tx=tx))[0]

    async def schedule(self, name: str, kind: str, payload: JSON = None, **when: Any) -> bool:
        """Emit a signal by ``cron=`` and ``zone=``, or ``at=`` an instant; see ``Schedule`` and ``Schedules.put`` (SCH-1)."""
        return await self.schedules.put(Schedule(name, kind, payload, **when))

    @property
    def runtime(self) -> Runtime:
        """What executes its runs."""
        return self._runtime

    @property
    def max_payload(self) -> int:
        """Bytes that the JSON text of a payload may have (SIG-5)."""
        return self.options.max_payload

    def new_signal(
        self, kind: str, payload: JSON = None, *, key: str | None = None, retry_of: str | None = None
    ) -> NewSignal:
        """A signal to be emitted, checked by this worker's bound and dated by its clock; see ``emit`` for the errors."""
        options = self.options
        return new_signal(
            kind,
            payload,
            key=key,
            retry_of=retry_of,
            emitted_at=options.wall_clock(),
            max_payload=options.max_payload,
        )

    async def wait_settled(self, signal_id: str) -> SignalRecord:
        """Wait until this signal is done or failed, and give its record. UnknownId if there is none.

        Raises InsideTransaction where it would wait for ever, and WrongState when the worker stops before.
        """
        if self.store.in_transaction():
            raise InsideTransaction(
                "wait_settled inside a transaction waits for what the transaction keeps from happening; "
                "leave the `async with` block first"
            )
        while True:
            with self._waiting_for(signal_id) as changed:
                record = await self._signal(signal_id)
                if record.state in SETTLED:
                    return record
                if not self._over and not self._left_pending(record):
                    await changed.wait()
                    if not self.stopped.is_set():
                        continue
                    # Where a failed worker cancels this task, that is what it is told, and no second error.
                    await trio.lowlevel.checkpoint()
                raise WrongState(
                    f"the worker {'is stopping' if self._left_pending(record) else 'stopped'} while signal {signal_id} "
                    f"was {record.state}; the next one takes it up"
                )

    async def runs(self, signal_id: str) -> list[Run]:
        """The runs of a signal in the order of its prompts; ``text`` is what the agent answered. UnknownId if there is no signal."""
        await self._signal(signal_id)
        return (await self.store.runs(RunFilter(signal_id=signal_id, limit=PROMPT_LIMIT)))[::-1]

    @contextmanager
    def _waiting_for(self, signal_id: str) -> Iterator[trio.Event]:
        """An event that is set when something becomes of this signal, or of the worker."""
        changed = trio.Event()
        self._waiters.setdefault(signal_id, []).append(changed)
        try:
            yield changed
        finally:
            waiters = self._waiters[signal_id]
            waiters.remove(changed)
            if not waiters:
                del self._waiters[signal_id]
            self._waiter_left.set()

    def _left_pending(self, record: SignalRecord) -> bool:
        """Whether a stop leaves this signal to the next worker: a run that waited for it would wait for ever (STP-1)."""
        if self._core is None or self._core.stop_mode is None or record.state is not SignalState.PENDING:
            return False
        return not self._core.is_here(record.id)

    async def retry(self, signal_id: str) -> str:
        """Emit a settled signal's kind and payload again, at the tail, linked to it; the new id (PST-5)."""
        record = await self._signal(signal_id)
        if record.state not in SETTLED:
            raise WrongState(
                f"signal {signal_id} is {record.state}; only a signal that is done or failed can be retried, "
                "so cancel it first or wait"
            )
        signal = self.new_signal(record.kind, record.payload, retry_of=record.id)
        return (await self.store.emit([signal]))[0]

    async def cancel_signal(self, signal_id: str) -> None:
        """Ask for a pending or processing signal to be cancelled, with all its runs (RUN-6). WrongState if it settled."""
        record = await self._signal(signal_id)
        if record.state in SETTLED:
            raise WrongState(f"signal {signal_id} is {record.state} already; there is nothing left to cancel")
        await self.store.request(RequestKind.CANCEL_SIGNAL, signal_id)

    async def cancel_run(self, run_id: str) -> None:
        """Ask for a waiting or running run to be cancelled (RUN-6). WrongState if it has ended."""
        run = await self.store.run(run_id)
        if run is None:
            raise UnknownId(f"there is no run {run_id!r:.80}")
        if run.state not in (RunState.PENDING, RunState.RUNNING):
            raise WrongState(f"run {run_id} is {run.state} already; there is nothing left to cancel")
        await self.store.request(RequestKind.CANCEL_RUN, run_id)

    async def prune(self, older_than: float) -> Pruned:
        """Remove signals that settled more than ``older_than`` seconds ago, with their runs (STP-5).

        And sessions that were last saved before that, but those that a run or a queued input still needs.
        """
        if not isinstance(older_than, int | float) or isinstance(older_than, bool) or not 0 <= older_than < 1e12:
            raise UsageError(f"older_than must be seconds of at least 0, not {older_than!r:.80}")
        pruned = await self.store.prune(self.options.wall_clock() - older_than)
        if pruned.signals or pruned.sessions:
            now = self.options.wall_clock()
            removed = events.Pruned(at=now, signals=pruned.signals, runs=pruned.runs, sessions=pruned.sessions)
            self._bus.publish([removed])
        return pruned

    # --- a fleet ------------------------------------------------------------------------------------------------

    @property
    def leads(self) -> bool:
        """Whether the lock table is here: always, but for a member of a fleet that another one leads."""
        return self._life is None or self._life.leads

    async def leader(self) -> LeaderSeen | None:
        """Who leads the fleet that this worker is a member of; None if nobody does, or there is none."""
        return None if self._life is None else await self._life.leader()

    @property
    def _core(self) -> Dispatcher | None:
        return None if self._life is None else self._life.core

    @property
    def _driver(self) -> Driver | None:
        return None if self._life is None else self._life.driver

    async def learn_tags(self) -> None:
        """In a fleet: know every tag that is live anywhere, so that ``mask`` hides it here too (TAG-4)."""
        if self._life is not None:
            await self._life.learn_tags()

    # --- looking ------------------------------------------------------------------------------------------------

    @property
    def stop_mode(self) -> str | None:
        """drain, park or cancel, once a stop was asked for; it may have become stricter by itself (STP-4)."""
        mode = self._asked
        if self._core is not None and self._core.stop_mode is not None:
            mode = max(self._core.stop_mode, mode or self._core.stop_mode)
        return None if mode is None else mode.name.lower()

    @property
    def bus(self) -> EventBus:
        """Every event, from now on."""
        return self._bus

    def attribute(self, values: Sequence[str]) -> RunInfo | None:
        """The run a request came from, by the values of its ``concorde-run-tag`` headers (TAG-3)."""
        return None if self._life is None else self._life.attribute(values)

    def mask(self, text: str) -> str:
        """``text`` with every tag that is live, or will be, masked (TAG-4)."""
        return text if self._life is None else self._life.mask(text)

    def mask_json(self, value: JSON) -> JSON:
        """The same in every string of a JSON value."""
        return value if self._life is None else cast("JSON", self._life.mask_json(value))

    def why(self, run_id: str) -> WaitView | None:
        """Why a run waits (LCK-7); None when it is not in the lock table."""
        return None if self._core is None else LockViews(self._core).why(run_id)

    def why_all(self, run_ids: Iterable[str]) -> dict[str, WaitView]:
        """The same for several runs, at hardly more than the cost of one; those not in the table are left out."""
        return {} if self._core is None else LockViews(self._core).why_all(run_ids)

    def locks(self, shown: int | None = None) -> list[LockView]:
        """Every lock that is held or waited for; of those who wait for one, the first ``shown`` are listed (None: all)."""
        return [] if self._core is None else LockViews(self._core).locks(shown)

    def in_hand(self) -> InHand | None:
        """The signals, runs and locks that it has in hand, None before it has any."""
        return None if self._core is None else InHand(self._core, self.stopping)

    def stopping(self, run_id: str) -> float | None:
        """Since when (wall-clock seconds) a running run is being stopped; None when it is not (RUN-6)."""
        stopper = None if self._driver is None else self._driver.stoppers.get(run_id)
        if stopper is None or stopper.reason is None:
            return None
        return self.options.wall_clock() - (trio.current_time() - stopper.since)

    # --- life ---------------------------------------------------------------------------------------------------

    def stop(self, mode: str = "drain") -> None:
        """Ask to stop: drain, park or cancel (STP-1 to STP-3). A later call can only be stricter (STP-4)."""
        try:
            asked = StopMode[mode.upper()]
        except (KeyError, AttributeError):
            raise UsageError(f"a stop is 'drain', 'park' or 'cancel', not {mode!r:.80}") from None
        if self._asked is not None and asked <= self._asked:
            return
        self._asked = asked
        self._bound_opening()
        if self._life is not None:
            self._life.stop(asked)
            if for_fleet(self.store):
                self._note_stopping()

    async def run(
        self,
        *,
        agent_server_url: str | None = None,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Work until stopped. The store is open and owned by the caller; ``started`` means recovered.

        A cancellation of this task is a cancelling stop (STP-4): runs are cancelled and written down, in stop_grace.
        """
        if self._begun:
            raise UsageError("a SignalWorker runs once; make another one to serve the queue again")
        self._begun = self._opening = True
        self._bound_opening()
        try:
            async with trio.open_nursery() as watch:
                watch.start_soon(self._cancel_with, watch.cancel_scope)
                with self._shield:
                    await self._work(agent_server_url, task_status)
                if self._shield.cancelled_caught:
                    if not self._opening:
                        logger.warning("what was to be closed did not close in time; it was cancelled")
                    elif not self._let_go:
                        logger.warning("what was to be opened did not open in time; it was cancelled")
                    if self._failure is not None:
                        raise self._failure
                    if self._opening:
                        task_status.started()
                watch.cancel_scope.cancel()
        except BaseException as error:
            failure = not_cancelled(error)
            if failure is not None:
                self.last_error = describe(failure)
            raise
        finally:
            self.status = "stopped"
            self.stopped.set()
            self._bus.publish([events.WorkerStopped(at=self.options.wall_clock())])
            self._bus.close()
            self._wake_waiters()

    def _bound_opening(self) -> None:
        """STP-3: once it works, the driver sees to it; a runtime that hangs while it opens must not outlast a cancel."""
        if self._opening and self._asked is StopMode.CANCEL:
            self._shield.deadline = trio.current_time() + self.options.stop_grace

    async def _cancel_with(self, watch: trio.CancelScope) -> None:
        try:
            await trio.sleep_forever()
        finally:
            if not watch.cancel_called:
                self.stop("cancel")
                if self._opening:
                    # Nothing was begun that would have to be written down; and opening may take for ever.
                    self._let_go = True
                    self._shield.cancel()

    async def _work(self, agent_server_url: str | None, task_status: trio.TaskStatus[None]) -> None:
        options = self.options
        kinds = kinds_of(self._runtime, self.handlers)
        parts = (self._runtime, self.handlers, options, self._bus, self.schedules)
        await self.schedules.declare()
        life = self._life = FleetLife(self.store, *parts) if for_fleet(self.store) else LoneLife(self.store, *parts)
        if self._asked is not None:
            life.stop(self._asked)
        with watching(options.watchdog, life.publish, options.wall_clock, mask=self.mask, lag=self._lag):
            async with trio.open_nursery() as nursery:
                await life.run(kinds, agent_server_url, _Reports(self, nursery, task_status))
                nursery.cancel_scope.cancel()

    def _lag(self, seconds: float) -> None:
        if self._bus.measured is not None:
            self._bus.measured("lag", seconds)

    def _wake_waiters(self, signal_ids: Iterable[str] | None = None) -> None:
        for signal_id in tuple(self._waiters if signal_ids is None else signal_ids):
            for waiter in self._waiters.get(signal_id, ()):
                waiter.set()

    async def _prune_regularly(self, older_than: float) -> None:
        while True:
            await self.prune(older_than)
            await trio.sleep(self.options.prune_every)

    async def _signal(self, signal_id: str) -> SignalRecord:
        record = await self.store.signal(signal_id)
        if record is None:
            raise UnknownId(f"there is no signal {signal_id!r:.80}")
        return record

    def _note(self, event: events.Event) -> None:
        if isinstance(event, events.SignalSettled):
            for waiter in self._waiters.get(event.signal_id, ()):
                waiter.set()
        elif isinstance(event, events.WorkerStopping):
            self._note_stopping()

    def _note_stopping(self) -> None:
        self.status = "stopping"
        self._wake_waiters()


class _Reports:
    """What a worker's life tells it (LifeReports)."""

    def __init__(self, worker: SignalWorker, nursery: trio.Nursery, task_status: trio.TaskStatus[None]) -> None:
        self._worker = worker
        self._nursery = nursery
        self._task_status: trio.TaskStatus[None] | None = task_status
        self._pruning = False

    def opened(self) -> None:
        worker, every = self._worker, self._worker.options.prune_after
        worker._opening = False
        worker._shield.deadline = float("inf")
        if every is not None and not self._pruning:
            self._pruning = True
            self._nursery.start_soon(worker._prune_regularly, every)

    def recovered(self) -> None:
        if self._task_status is not None:
            task_status, self._task_status = self._task_status, None
            self._worker.status = "running" if self._worker._asked is None else "stopping"
            task_status.started()

    def closing(self, error: BaseException | None) -> None:
        # What closes from here on is bounded: a runtime that hangs on its way out must not hang the program.
        worker = self._worker
        if error is not None:
            # Kept, for if what is closed now hangs and is cancelled, its Cancelled takes the place of this.
            worker._failure = not_cancelled(error)
        worker._shield.deadline = min(worker._shield.deadline, trio.current_time() + worker.options.stop_grace)

    async def over(self) -> None:
        # Whoever waits for a signal reads what became of it while the store is certain to be open.
        worker = self._worker
        worker._over = True
        worker._wake_waiters()
        while worker._waiters:
            worker._waiter_left = trio.Event()
            await worker._waiter_left.wait()

    def settled(self, signal_ids: Iterable[str] | None) -> None:
        self._worker._wake_waiters(signal_ids)


@asynccontextmanager
async def open_worker(
    store: SignalStore, runtime: Runtime, handlers: Handlers | dict[str, Any], **options: Any
) -> AsyncIterator[SignalWorker]:
    """Serve a queue while the block runs, with no server: ``async with open_worker(store, runtime, handlers) as worker``.

    ``handlers`` is a dict of kind to handler, or Handlers. ``options`` are those of WorkerOptions. Leaving the block
    normally drains (STP-1); by an exception or a cancellation cancels (STP-3), and the exception goes on unwrapped.
    Raises QueueTaken when another worker serves the queue (REC-1), StoreError when the database fails for good.
    """
    chosen = worker_options(options)
    worker = SignalWorker(store, runtime, handlers, chosen)
    raised: BaseException | None = None
    try:
        async with store.open(), owned(store, chosen), trio.open_nursery() as nursery:
            await nursery.start(worker.run)
            try:
                yield worker
            except BaseException as error:  # noqa: ASYNC103  Raised again: at once, or below.
                worker.stop("cancel")
                if not_cancelled(error) is not error:
                    raise  # A Cancelled may be this nursery's own, whose worker failed: it must not leave it.
                # Joined below, outside the nursery, so that the caller meets its own exception and no group.
                raised = error
            else:
                worker.stop("drain")
    except BaseExceptionGroup as group:
        if raised is not None:
            raise BaseExceptionGroup(
                "an exception in the block of open_worker, and the worker failed while it stopped", [raised, group]
            ) from None
        raised = alone(group)
        if raised is None:
            raise
    if raised is not None:
        raise raised

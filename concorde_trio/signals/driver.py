"""The one task that owns the cores: it takes what was found together, decides, commits, and only then acts.

The law: other tasks only report to it, synchronously. Everything that a step changed is one ``store.apply``; events
are published and tasks are started after it. So what people see is what is stored, and an order of ties is LCK-5's.
"""

from __future__ import annotations

import heapq
import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import attrs
import trio

from concorde_trio import events, spans
from concorde_trio._sansio.changes import Change, StopExecution
from concorde_trio._sansio.dispatch import Dispatcher
from concorde_trio._sansio.live import LiveRun
from concorde_trio._sansio.reports import CANCELLED_BY_OPERATOR, Cancel, Handled, Inbox, Step, StopMode
from concorde_trio._sansio.session_changes import EmitSignals, LinkInputs
from concorde_trio.failures import traceback_of
from concorde_trio.records import PostOutcome, RunOutcome, RunState, Signal, SignalRecord, SignalState
from concorde_trio.signals.event_bus import EventBus
from concorde_trio.signals.fleet import Leadership
from concorde_trio.signals.handlers import Handlers
from concorde_trio.signals.handling import HandlingTask
from concorde_trio.signals.offers import Offers
from concorde_trio.signals.options import WorkerOptions
from concorde_trio.signals.runtime import Runtime
from concorde_trio.signals.schedules import Schedules
from concorde_trio.signals.signal_task import SignalTask
from concorde_trio.signals.stopper import Stopper
from concorde_trio.signals.store import SignalStore

logger = logging.getLogger("concorde_trio.worker")

LOW_WATER = 64
READ_AHEAD = 256
"""Pending signals are read this many at a time, when fewer than LOW_WATER are at hand."""

HANGING = 1.0
"""How many seconds after stop_grace a commit under way is waited for."""

PORTION = 12
"""So many ends are always applied in one step, if they are there."""

LATE = 1.0
"""A signal this many seconds old that only the sweep found was missed by its notification (SIG-6)."""


class Driver:
    """Drives a Dispatcher: tasks, rows and events out of its decisions."""

    def __init__(
        self,
        core: Dispatcher,
        store: SignalStore,
        runtime: Runtime,
        handlers: Handlers,
        options: WorkerOptions,
        bus: EventBus,
        schedules: Schedules,
        lead: Leadership | None = None,
    ) -> None:
        """``lead``: it leads a fleet, whose members execute what it starts; ``core`` offers it then."""
        self.core = core
        self.offers = None if lead is None else Offers(lead)
        self.stoppers: dict[str, Stopper] = {}
        self._store = store
        self._runtime = runtime
        self._handlers = handlers
        self._options = options
        self._bus = bus
        self._schedules = schedules
        self._handling = HandlingTask(core, handlers, options, self)
        self._tasks: dict[str, SignalTask] = {}
        self._inbox = Inbox()
        self._left: list[tuple[str, RunOutcome]] = []  # ends that were found and are for the next step
        self._woken = trio.Event()
        self._nursery: trio.Nursery | None = None
        self._timers: list[tuple[float, int, str | None, Callable[[], None]]] = []
        self._timer_count = 0
        self._unread = True
        self._unread_requests = True
        self._sweeping = False
        self._giving_up = False
        self._bound = trio.CancelScope()

    # --- what other tasks report --------------------------------------------------------------------------------

    def run_over(self, run_id: str, outcome: RunOutcome, with_end: Sequence[EmitSignals | LinkInputs]) -> None:
        """A Runtime has returned: from this moment no request is attributed to its run (TAG-1)."""
        live = self.core.runs[run_id]
        live.with_end = tuple(with_end)
        tag = live.run.tag
        if tag is not None:
            self.core.tags.release(tag, run_id)
        del self.stoppers[run_id]
        self._inbox.ends.append((run_id, outcome))
        self._woken.set()

    def post_over(self, signal_id: str, error: str | None) -> None:
        """A post phase has returned or raised."""
        del self._tasks[signal_id]
        self._inbox.posts.append((signal_id, error))
        self._woken.set()

    def handled(self, handled: Handled) -> None:
        """A handle has returned or failed."""
        self._inbox.handled.append(handled)
        self._woken.set()

    def handling_over(self, left: list[SignalRecord]) -> None:
        """The handling task can be given more."""
        self._inbox.unhandled = left
        self._woken.set()

    def handle_blocked(self, event: events.HandleBlocked) -> None:
        """A plain handler held up everything else."""
        logger.warning(
            "handle of signal %s (%s) blocked the event loop for %.3f s; make it async",
            event.signal_id,
            event.kind,
            event.seconds,
        )
        self.publish([event])

    def changed(self) -> None:
        """The store has something new: signals or requests."""
        self._unread = self._unread_requests = True
        self._woken.set()

    def sweep(self) -> None:
        """Look into the store, although nothing was heard of it (SIG-6)."""
        self._sweeping = not self._unread
        self.changed()
        self._schedules.look()

    def stop(self, mode: StopMode) -> None:
        """Stop, or stop more strictly (STP-4). Escalates by itself after drain_for and park_for."""
        if self._inbox.stop is None or mode > self._inbox.stop:
            self._inbox.stop = mode
        self._bound.deadline = min(self._bound.deadline, self._latest_end(mode))
        self._woken.set()

    def heard(self, word: str, about: Any = None) -> None:
        """A member of the fleet tells what it did with what was offered."""
        if self.offers is not None:
            self.offers.heard(word, about)
            self._woken.set()

    def resign(self, *, cut: bool = False) -> None:
        """Lay the lead down as soon as no handle and no post is under way; ``cut``: and end these now."""
        self.core.resigning = True
        if cut:
            for signal_id in self.core.handling:
                self._handling.cancel(signal_id, "the worker was stopped")
        self._woken.set()

    def log_failure(self, what: str, error: BaseException) -> None:
        """Somebody else's exception, with its traceback and without live tags (TAG-4)."""
        logger.warning("%s raised:\n%s", what, self.core.tags.mask(traceback_of(error)))

    # --- the loop -------------------------------------------------------------------------------------------------

    async def run(self, nursery: trio.Nursery, recovered: Callable[[], None]) -> None:
        """Recover, tell ``recovered``, and work until a stop has nothing left to wait for.

        ``nursery`` is for the tasks of signals; what is left in it then is the caller's to cancel.
        """
        with self._bound:
            await self._run(nursery, recovered)
        if self._bound.cancelled_caught:
            logger.warning("the store did not take what there was to write in time; it is left to the next start")

    async def _run(self, nursery: trio.Nursery, recovered: Callable[[], None]) -> None:
        self._nursery = nursery
        nursery.start_soon(self._handling.run)
        await self._read_requests()
        adopted = None if self.offers is None else await self.offers.adopt()
        unfinished = await self._store.unfinished()
        asked, self._inbox = self._inbox, Inbox()
        if adopted is not None:
            await self._settle_left(
                None, {run.session for each in unfinished for run in each.runs if run.id in adopted}
            )
        await self._finish(self.core.recover(unfinished, self._options.wall_clock(), asked, adopted))
        recovered()
        nursery.start_soon(self._schedules.run)
        while not (self.core.finished or self._giving_up):
            await self._wait()
            if self._options.settle is not None:
                await self._options.settle()
            if self._unread_requests:
                await self._read_requests()
            if self._unread and self.core.stop_mode is None and self.core.pending < LOW_WATER:
                await self._read_pending()
            if self.offers is not None:
                await self.offers.look(self.core, self._inbox)
            inbox, self._inbox, self._woken = self._inbox, Inbox(), trio.Event()
            if self.offers is None:  # Those of a fleet are found again until they are applied.
                inbox.ends = self._portion_of(inbox.ends, everything=inbox.stop is not None)
            self._fire_timers(inbox)
            if inbox.lost:
                # Before their ends release the sessions: until then no other run of these can start.
                await self._settle_left({self.core.runs[run_id].run.session for run_id in inbox.lost}, ())
            if self.offers is not None:
                for run_id in (*(run_id for run_id, _ in inbox.ends), *inbox.lost):
                    self.stoppers.pop(run_id, None)
            await self._finish(self.core.step(inbox, self._options.wall_clock()))

    def _portion_of(self, ends: list[tuple[str, RunOutcome]], *, everything: bool) -> list[tuple[str, RunOutcome]]:
        """The ends that this step applies: first found first, in run order where found together; the next one takes the rest.

        What ended together would else start, and end, together for ever: the agents idle while the store writes, and the
        store while they work.
        """
        if everything or self._options.settle is not None or self.core.stop_mode is StopMode.CANCEL:
            most = len(self._left) + len(ends)
        else:
            most = max(PORTION, self.core.running // 4)
        if len(ends) > 1:
            ends.sort(key=lambda end: self.core.runs[end[0]].run.position)
        if self._left:
            ends = self._left + ends
        self._left = ends[most:]
        if self._left:
            self._woken.set()
        return ends[:most]

    async def _wait(self) -> None:
        if self._unread_requests or (self.offers is not None and self.offers.due(self.core)):
            return
        if self._unread and self.core.stop_mode is None and self.core.pending < LOW_WATER:
            return
        if self._woken.is_set():
            # What it has started runs while the next commit is at the disk, and not before it is given to the writer.
            await trio.lowlevel.checkpoint_if_cancelled()
        elif self._timers:
            with trio.move_on_at(self._timers[0][0]):
                await self._woken.wait()
        else:
            await self._woken.wait()

    async def _read_requests(self) -> None:
        self._unread_requests = False
        for request in await self._store.requests():
            pending = None
            if request.target not in self.core.runs and request.target not in self.core.live:
                found = await self._store.signal(request.target)
                pending = found if found is not None and found.state is SignalState.PENDING else None
            self._inbox.cancels.append(Cancel(request.target, request.id, pending))

    async def _read_pending(self) -> None:
        sweeping, self._sweeping, self._unread = self._sweeping, False, False
        limit = self.core.known + READ_AHEAD
        found = await self._store.pending(limit)
        new = self.core.offer(found)
        if len(found) == limit:
            # The rest is known to be there: a sweep that came during the read will have found nothing by it.
            self._unread, self._sweeping = True, False
        if sweeping and new:
            self._tell_missed(new)

    def _tell_missed(self, found: list[SignalRecord]) -> None:
        now = self._options.wall_clock()
        missed = sum(now - signal.emitted_at > LATE for signal in found)
        if missed:
            logger.warning("a sweep found %d signals that no notification had told of", missed)
            self.publish([events.WakeMissed(at=now)])

    async def _settle_left(self, sessions: Collection[str] | None, but: Collection[str]) -> None:
        """Have the runtime put right what a process of the fleet left in these sessions (None: in all ``but`` those)."""
        settle = getattr(self._runtime, "settle_left", None)
        if settle is not None:
            await settle(sessions, but)

    async def _apply(self, changes: Sequence[Change]) -> None:
        await (self._store if self.offers is None else self.offers.lead).apply(changes)

    async def _finish(self, step: Step) -> None:
        """Commit a step, tell of it, and do what it decided."""
        if step.handle and step.handle_repeatable:
            # CLM-6: no mark has to be stored before these, so they are made while the commit is at the disk.
            self._handling.give(step.handle)
        reason = CANCELLED_BY_OPERATOR if self.core.stop_mode is not StopMode.CANCEL else "the worker was stopped"
        stopping: list[str] = []
        if self.offers is not None:
            # In the commit that finishes the request: a leader that dies after it must not have lost what was asked.
            stopping = [each for each in step.cancel_runs if self._ask_stop(each, reason, RunState.CANCELLED)]
            step.changes += [StopExecution(run_id, reason, RunState.CANCELLED) for run_id in stopping]
        if step.changes:
            began = time.perf_counter()
            await self._apply(step.changes)
            if self._bus.measured is not None:
                self._bus.measured("commit", time.perf_counter() - began)
        self.publish(step.events)
        spans.told(step.events)
        for live in step.starts:
            self._start(live)
        posts = {signal.id: (signal, outcome) for signal, outcome in step.posts}
        for signal_id in step.runs_over:
            self._runs_over(signal_id, posts.get(signal_id))
        for run_id in stopping:
            self._tell_stopping(run_id, reason)
        if self.offers is None:
            for run_id in step.cancel_runs:
                self._stop_run(run_id, reason, RunState.CANCELLED)
        for signal_id in step.cancel_posts:
            if signal_id in self._tasks:
                self._tasks[signal_id].stop_post(CANCELLED_BY_OPERATOR)
        for signal_id in step.cancel_handles:
            stopped = self.core.stop_mode is StopMode.CANCEL
            self._handling.cancel(signal_id, "the worker was stopped" if stopped else CANCELLED_BY_OPERATOR)
        if step.handle and not step.handle_repeatable:
            self._handling.give(step.handle)
        for event in step.events:
            if isinstance(event, events.WorkerStopping):
                self._escalate()

    def publish(self, told: Iterable[events.Event]) -> None:
        """Tell of events that are true already, with live tags masked (TAG-4)."""
        if self.core.tags.known:
            told = [masked(event, self.core.tags.mask) for event in told]
        self._bus.publish(told)

    # --- doing what was decided -----------------------------------------------------------------------------------

    def _start(self, live: LiveRun) -> None:
        run = live.run
        stopper = self.stoppers[run.id] = Stopper()
        task = self._tasks.get(run.signal_id)
        if task is None:
            task = self._open_task(live.signal.record.id, live.signal.record.kind, holds=live.signal.holds)
        task.start(live, stopper)
        if run.time_limit is not None:
            limit, run_id = run.time_limit, run.id
            self._at(trio.current_time() + limit, lambda: self._time_is_up(run_id, limit), run_id)

    def _open_task(self, signal_id: str, kind: str, *, holds: bool) -> SignalTask:
        assert self._nursery is not None
        task = SignalTask(self._runtime, self._handlers.get(kind), self, self._options.post_time_limit, holds=holds)
        self._tasks[signal_id] = task
        self._nursery.start_soon(task.run)
        return task

    def _runs_over(self, signal_id: str, post: tuple[Signal, PostOutcome] | None) -> None:
        task = self._tasks.get(signal_id)
        if task is None and post is not None:
            task = self._open_task(signal_id, post[0].kind, holds=True)
        if task is not None:
            task.finish(post)
            if post is None:
                del self._tasks[signal_id]

    def _stop_run(self, run_id: str, reason: str, state: RunState) -> None:
        if self._ask_stop(run_id, reason, state):
            self._tell_stopping(run_id, reason)

    def _ask_stop(self, run_id: str, reason: str, state: RunState) -> bool:
        """Whether it was not asked before."""
        stopper = self.stoppers.get(run_id)
        if self.offers is not None and stopper is None:
            stopper = self.stoppers[run_id] = Stopper()  # of a run elsewhere: what was asked, and since when
        return stopper is not None and stopper.stop(reason, state)

    def _tell_stopping(self, run_id: str, reason: str) -> None:
        signal_id = self.core.runs[run_id].run.signal_id
        self.publish(
            [events.RunStopping(at=self._options.wall_clock(), run_id=run_id, signal_id=signal_id, reason=reason)]
        )

    # --- timers: one heap and one deadline, whatever the number of limits --------------------------------------------

    def _at(self, when: float, call: Callable[[], None], run_id: str | None = None) -> None:
        self._timer_count += 1
        heapq.heappush(self._timers, (when, self._timer_count, run_id, call))
        if len(self._timers) > 2 * len(self.stoppers) + LOW_WATER:
            # Most belong to runs that ended long before their limit: what is kept grows with what runs.
            self._timers = [timer for timer in self._timers if timer[2] is None or timer[2] in self.stoppers]
            heapq.heapify(self._timers)

    def _fire_timers(self, inbox: Inbox) -> None:
        now = trio.current_time()
        while self._timers and self._timers[0][0] <= now:
            heapq.heappop(self._timers)[3]()
        # A stop that a timer asked for belongs to what this step finds.
        if self._inbox.stop is not None:
            inbox.stop = max(inbox.stop or self._inbox.stop, self._inbox.stop)
            self._inbox.stop = None

    def _time_is_up(self, run_id: str, limit: float) -> None:
        # RUN-6: a run whose end is already in the inbox has no stopper any more, so its outcome counts.
        self._stop_run(run_id, f"it reached its time limit of {limit:g} s and was stopped", RunState.FAILED)

    def _escalate(self) -> None:
        mode, options, now = self.core.stop_mode, self._options, trio.current_time()
        if mode is StopMode.DRAIN and options.drain_for is not None:
            self._at(now + options.drain_for, lambda: self.stop(StopMode.PARK))
        if mode is StopMode.PARK and options.park_for is not None:
            self._at(now + options.park_for, lambda: self.stop(StopMode.CANCEL))
        if mode is StopMode.CANCEL:
            self._at(now + options.stop_grace, self._give_up)

    def _latest_end(self, mode: StopMode) -> float:
        """When a stop must be over even if the store hangs, so that no timer of this task is looked at."""
        options, end = self._options, trio.current_time() + self._options.stop_grace + HANGING
        for milder, seconds in ((StopMode.DRAIN, options.drain_for), (StopMode.PARK, options.park_for)):
            if mode <= milder:
                end += float("inf") if seconds is None else seconds
        return end

    def _give_up(self) -> None:
        """STP-3: what has not ended by now is left to recovery."""
        self._giving_up = True
        logger.warning("stop_grace is over; what is still running is left to the next start")


def masked(event: events.Event, mask: Callable[[str], str]) -> events.Event:
    """TAG-4: an error may quote the tag of another run, which is live; and so may a name."""
    shown: dict[str, Any] = {}
    for field in ("error", "session", "waits_for", "reason", "who", "schedule"):
        text = getattr(event, field, None)
        if text and (hidden := mask(text)) != text:
            shown[field] = hidden
    return attrs.evolve(event, **shown) if shown else event

"""One session's event loop: takes events one at a time, and does what its machine decides (SES-1).

The law: only this task changes the session's transcript and lock, but that a hold whose time is up is taken by whoever
sees it first, at once; what that leads to is the loop's. Everybody else puts an event into its inbox, which never waits,
and is answered once what it led to is committed. A step is done in the order of its fields: what is to be stopped
is stopped at once, then one commit, then events, then what is to start (SES-9: a reply is stored before its calls start).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import attrs
import trio
from outcome import Error, Outcome, capture

from concorde_trio import spans
from concorde_trio._sansio.model_events import ModelEvent, Purpose
from concorde_trio._sansio.session_changes import AddMessage
from concorde_trio._sansio.session_machine import SessionMachine
from concorde_trio._sansio.session_terms import (
    CallReport,
    RequestFailure,
    StartRequest,
    Step,
    StopRequest,
    TurnResult,
)
from concorde_trio.errors import UsageError, WrongState
from concorde_trio.events import Event, InputSettled
from concorde_trio.log_context import note_session
from concorde_trio.messages import InputState, ToolCall
from concorde_trio.sessions.heartbeat import Heartbeat
from concorde_trio.sessions.host import Host, Work
from concorde_trio.sessions.kept import KeptWork
from concorde_trio.sessions.live import Watchers
from concorde_trio.sessions.store import SessionStore
from concorde_trio.sessions.tool import Leftover

T = TypeVar("T")


@attrs.define(eq=False)
class _Asked:
    """An event somebody waits for the answer of. ``before`` is awaited first, by the loop itself, ``after`` called last."""

    act: Callable[[], Any]
    before: Callable[[], Awaitable[None]] | None = None
    after: Callable[[], None] | None = None
    done: trio.Event = attrs.field(factory=trio.Event)
    answer: Outcome[Any] | None = None


class SessionLoop:
    """The loop of one session. Made and run by a SessionHarness."""

    def __init__(
        self,
        machine: SessionMachine,
        *,
        store: SessionStore,
        host: Host,
        heartbeat: Heartbeat,
        publish: Callable[[Sequence[Event]], None],
        nursery: trio.Nursery,
    ) -> None:
        self.machine = machine
        self.name = machine.name
        self.beat_at = math.inf
        self.over = False
        self.watchers = Watchers()
        self.kept = KeptWork(nursery, self.name)
        self.used_at = trio.current_time()
        self.stored_messages = 0
        self._store = store
        self._host = host
        self._heartbeat = heartbeat
        self._publish = publish
        self._inbox: deque[Any] = deque()
        self._task: trio.lowlevel.Task | None = None  # the loop's, while it sleeps
        self._requests: dict[int, Work] = {}
        self._calls: dict[int, Work] = {}
        self._due = math.inf  # what the machine said after its latest step
        self._period = machine.terms.settings.heartbeat
        self._moved: Any = None  # the lease whose deadline its work was last given
        self._turns: dict[str, list[TurnWaiter]] = {}
        self._changed: trio.Event | None = None  # made by whoever waits for a step

    # --- the task -------------------------------------------------------------------------------------------

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take events until ``close`` has been taken."""
        note_session(self.name)
        try:
            await self._do_step()
            task_status.started()
            while not self.over or self._inbox:
                if not self._inbox:
                    await self._sleep()
                while self._inbox:
                    await self._take(self._inbox.popleft())
        finally:
            self.over = True
            self._refuse_rest()
            self._heartbeat.look_at(self, math.inf)

    async def _take(self, event: Any) -> None:
        machine = self.machine
        if type(event) is tuple:
            epoch, purpose, came = event
            if machine.progress(epoch, purpose, came):
                purpose = purpose or machine.purpose_out
                self._extend(purpose)
                if purpose is Purpose.TURN:
                    self.watchers.stream(came)
            await self._do_step()
            return
        if isinstance(event, _Asked):
            try:
                if event.before is not None:
                    await event.before()
                answer = capture(event.act)
                await self._do_step()
                event.answer = answer
            finally:
                if event.answer is None:
                    event.answer = Error(self._closed())
                if event.after is not None:
                    event.after()
                event.done.set()
            return
        event()
        await self._do_step()

    def _extend(self, purpose: Purpose | None) -> None:
        lock = self.machine.books.lock
        lease = lock.summarizing if purpose is Purpose.SUMMARY else lock.llm
        if lease is not None and lease is not self._moved:
            self._moved = lease
            work = self._requests.get(lease.epoch)
            if work is not None:
                work.extend(lease.deadline)

    async def _do_step(self) -> None:
        """Do what the machine asks for, and set the timer."""
        while (step := self.machine.take_step()) is not None:
            await self._do(step)
        due = self._due = self.machine.next_due()
        if due < self.beat_at:
            self._heartbeat.look_at(self, min(due, self._next_tick(trio.current_time())))

    async def _do(self, step: Step) -> None:
        for stop in step.stops:
            works, number = (
                (self._requests, stop.epoch) if isinstance(stop, StopRequest) else (self._calls, stop.registration)
            )
            work = works.get(number)
            if work is not None:
                work.stop(stop.reason)
        if step.changes:
            # Whatever keeps this from being written ends the loop, as a crash would have: what is stored is whole.
            await self._store.apply(step.changes)
            self.stored_messages += sum(type(change) is AddMessage for change in step.changes)
        self._publish(step.events)
        spans.told(step.events)
        self.watchers.events(step.events)
        for event in step.events:
            if type(event) is InputSettled and event.state is InputState.CANCELLED:
                for waiter in self._turns.pop(event.input_id, ()):
                    waiter.done.set()
        for start in step.starts:
            if isinstance(start, StartRequest):
                self._requests[start.epoch] = self._host.request(self, start)
            else:
                self._calls[start.registration] = self._host.execute(self, start)
        for turn in step.turns:
            self._turn_over(turn)
        self._has_changed()

    def _turn_over(self, turn: TurnResult) -> None:
        for input_id in turn.input_ids:
            for waiter in self._turns.pop(input_id, ()):
                waiter.result = turn
                waiter.done.set()
        if self.machine.run is None and self.machine.terms.signal_for is None and self.machine.idle:
            self.kept.stop()

    async def _sleep(self) -> None:
        """Until something is put into the inbox. By hand: ten thousand of these are woken at one instant."""
        self._task = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _abort(self, raise_cancel: Any) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _wake(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    def _has_changed(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    def _put(self, event: Any) -> None:
        if not self.over:
            self._inbox.append(event)
            self._wake()

    def _closed(self) -> WrongState:
        return WrongState(f"session {self.name!r} was closed; open it again")

    def _refuse_rest(self) -> None:
        while self._inbox:
            event = self._inbox.popleft()
            if isinstance(event, _Asked) and not event.done.is_set():
                event.answer = Error(self._closed())
                event.done.set()
        for waiters in self._turns.values():
            for waiter in waiters:
                waiter.done.set()
        self._turns.clear()
        self.watchers.close()
        self._has_changed()

    # --- what hosts report (Port) ---------------------------------------------------------------------------

    def progress(self, epoch: int | None, purpose: Purpose | None, event: ModelEvent) -> None:
        """Something of a stream came."""
        self._put((epoch, purpose, event))

    def request_over(self, epoch: int | None, purpose: Purpose | None, failure: RequestFailure | None = None) -> None:
        """A request has ended."""
        self._put(partial(self._request_over, epoch, purpose, failure))

    def _request_over(self, epoch: int | None, purpose: Purpose | None, failure: RequestFailure | None) -> None:
        over = self.machine.epoch_out(purpose) if epoch is None else epoch
        if over is not None:
            self._requests.pop(over, None)
        self.machine.request_over(epoch, purpose, failure)

    def request_stopped(self, epoch: int) -> None:
        """A request's work is over, as it was asked to be."""
        self._requests.pop(epoch, None)

    def request_fired(self, epoch: int) -> None:
        """A request's work was ended by its deadline: before anything that is queued (SES-3).

        Of ten thousand that expire together, all are taken before the first is settled.
        """
        self._requests.pop(epoch, None)
        if not self.over and self.machine.take_expired(epoch):
            self._due = math.inf
            self._put(self.machine.timer)

    def call_over(
        self, call_id: str | None, registration: int | None, report: CallReport, *, fired: bool = False
    ) -> None:
        """A call's work is over."""
        self._put(partial(self._call_over, call_id, registration, report, fired))

    def _call_over(self, call_id: str | None, registration: int | None, report: CallReport, fired: bool) -> None:
        over = self.machine.calls.registration_of(call_id) if registration is None else registration
        if over is not None:
            self._calls.pop(over, None)
        self.machine.call_over(call_id, registration, report, fired=fired)

    def left(self, registration: int, call: ToolCall, leftover: Leftover) -> _Left:
        """A call leaves work behind. UsageError for what is no Leftover."""
        if not isinstance(leftover, Leftover):
            raise UsageError(f"what a call leaves is told by a Leftover, not by {leftover!r:.80}")
        left = _Left(self)
        self._put(partial(left.begin, registration, call, leftover))
        return left

    def beat(self, now: float) -> float:
        """The heartbeat: an event for the loop if something is due; when to look again."""
        due = self._due
        if due <= now:
            self._due = math.inf
            self.machine.take_expired()
            if not self._inbox:  # else it is awake, settles before what it takes next, and sets the timer after it
                self._put(self.machine.timer)
        if due == math.inf or due <= now:
            return math.inf
        return min(due, self._next_tick(now))

    def _next_tick(self, now: float) -> float:
        """The next beat of all sessions with this period: on one beat, so that a thousand of them are one wake-up."""
        period = self._period
        return (now // period + 1.0) * period

    # --- what people ask ------------------------------------------------------------------------------------

    async def ask(
        self,
        act: Callable[[], T],
        *,
        before: Callable[[], Awaitable[None]] | None = None,
        after: Callable[[], None] | None = None,
    ) -> T:
        """Have the loop do this, between two events; its answer, once what it led to is committed.

        The loop awaits ``before`` first, and then calls ``after`` whatever came of it; neither if it is closed before.
        """
        if self.over:
            raise self._closed()
        asked = _Asked(act, before, after)
        self._put(asked)
        await asked.done.wait()
        if self.over:
            # Where the harness failed, this task is cancelled: that error is what is told, and no second one.
            await trio.lowlevel.checkpoint()
        assert asked.answer is not None
        answer: T = asked.answer.unwrap()
        return answer

    @contextmanager
    def awaiting_turn(self, input_id: str) -> Iterator[TurnWaiter]:
        """A waiter for the turn that takes this input; enter it before the input is submitted."""
        waiter = TurnWaiter()
        self._turns.setdefault(input_id, []).append(waiter)
        try:
            yield waiter
        finally:
            waiters = self._turns.get(input_id, [])
            if waiter in waiters:
                waiters.remove(waiter)
                if not waiters:
                    del self._turns[input_id]

    async def wait_until(self, true: Callable[[], bool]) -> None:
        """Wait until this is true of the machine, looking after each step; WrongState if the loop ends first."""
        while not true():
            if self.over:
                await trio.lowlevel.checkpoint()  # as in ``ask``
                raise self._closed()
            if self._changed is None:
                self._changed = trio.Event()
            await self._changed.wait()

    @property
    def unused(self) -> bool:
        """Whether nobody would miss it: nothing held, queued, running, waited for or watched."""
        machine = self.machine
        return not (
            self._task is None  # awake: what it decided last may not be stored yet
            or self._inbox
            or not machine.idle
            or machine.run is not None
            or self._turns
            or self._requests
            or self._calls
            or self.watchers
            or self.kept
            or machine.linked
            or any(each.ended is None for each in machine.calls.abandoned)
        )

    async def forget_pruned(self) -> None:
        """Where this session was pruned while it was idle, it begins anew (STP-5). For whoever is inside the loop (``ask``)."""
        machine = self.machine
        if machine.idle and len(machine.books.transcript):
            record = await self._store.session(self.name)
            if record is None or not record.messages:
                machine.forget()

    def tell(self, act: Callable[[], object]) -> None:
        """Have the loop do this between two events; nobody waits for it."""
        self._put(act)

    def look(self) -> None:
        """Something of the machine was changed from outside: store it and go on."""
        self._put(self.machine.timer)

    def wait_for_turn(self, input_ids: Sequence[str]) -> TurnWaiter:
        """A waiter for the turn that takes these inputs, for whoever is inside the loop (``ask``)."""
        waiter = TurnWaiter()
        for input_id in input_ids:
            self._turns.setdefault(input_id, []).append(waiter)
        return waiter

    def close(self) -> None:
        """End the loop, once what is in the inbox is taken."""
        self.over = True
        self._wake()


@attrs.define(eq=False)
class TurnWaiter:
    """Waits for the end of the turn that took an input; ``result`` None: it was cancelled, or the loop ended, first."""

    done: trio.Event = attrs.field(factory=trio.Event)
    result: TurnResult | None = None


class _Left:
    """A LeftWork: the record of work that outlives its call, which may end before the loop has listed it."""

    def __init__(self, loop: SessionLoop) -> None:
        self._loop = loop
        self._work: int | None = None

    def begin(self, registration: int, call: ToolCall, leftover: Leftover) -> None:
        """List it (in the loop)."""
        self._work = self._loop.machine.left(registration, call, leftover.what, leftover.number, leftover.about)

    def ended(self, result: str | None = None, /) -> None:
        """It was seen to end."""
        self._loop._put(partial(self._end, None if result is None else str(result)))

    def _end(self, result: str | None) -> None:
        if self._work is not None:
            self._loop.machine.left_ended(self._work, result)

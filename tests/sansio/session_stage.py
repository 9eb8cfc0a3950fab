"""A session machine with a world around it: a clock, a store that checks, and a list of the work that is out.

The law: what is out is known from the steps and from what was handed back, never from the machine's own words.
"""

from __future__ import annotations

import json
from typing import Any

from concorde_trio import events
from concorde_trio._sansio.message_shape import message_shape
from concorde_trio._sansio.model_events import ModelEvent, Purpose, ToolSpec, UsageReport
from concorde_trio._sansio.session_books import added
from concorde_trio._sansio.session_machine import SessionMachine
from concorde_trio._sansio.session_terms import (
    Linked,
    SessionSettings,
    SessionTerms,
    StartCall,
    StartRequest,
    Step,
    StopRequest,
    ToolTerms,
    TurnResult,
)
from concorde_trio.messages import Input, InputState, Role, ToolCall
from concorde_trio.records import NewSignal, Usage
from tests.sansio.session_clock import Clock
from tests.sansio.session_store_model import StoreModel

SETTINGS: dict[str, Any] = {
    "llm_timeout": 10.0,
    "llm_ceiling": 25.0,
    "summarizing_timeout": 6.0,
    "summarizing_ceiling": 9.0,
    "approval_timeout": 20.0,
    "stop_wait": 3.0,
    "summarize_over": 30,
    "truncate_to": 10,
    "max_queue": 3,
    "max_tries": 3,
    "backoff": 1.0,
    "backoff_cap": 4.0,
    "max_backoff": 30.0,
    "compact_at": 0.5,
}


def tool(name: str, timeout: float, *, concurrent: bool = False, stoppable: bool = True) -> ToolTerms:
    spec = ToolSpec(name=name, description="", parameters={"type": "object"})
    return ToolTerms(spec=spec, timeout=timeout, concurrent=concurrent, stoppable=stoppable)


TOOLS = {
    each.spec.name: each
    for each in (tool("look", 5, concurrent=True), tool("peek", 7, concurrent=True), tool("shell", 8), tool("stuck", 4))
}
TOOLS["stuck"] = tool("stuck", 4, stoppable=False)


def policy(call: ToolCall, kind: str) -> Any:
    """What the call's own arguments say; a policy may also fail, or say what is no answer."""
    said = json.loads(call.arguments).get("p", "allow")
    if said == "raise":
        raise RuntimeError("the policy is broken")
    return said


class World:
    """One session: its machine, what is stored of it, what is out for it."""

    def __init__(self, *, gated: bool = False, **settings: Any) -> None:
        self.clock = Clock()
        self.gated = gated
        self.store = StoreModel()
        self.requests: dict[int, StartRequest] = {}  # those that are out, by epoch
        self.calls: dict[int, StartCall] = {}  # those that run
        self.stopping: dict[int, StartCall] = {}  # those that were told to stop, and have not ended
        self.asked: set[str] = set()
        self.reported: Usage | None = None
        self.used = Usage()
        self.registrations = 0
        self.turns: list[TurnResult] = []
        self.events: list[events.Event] = []
        self.signals = 0
        self.turn_open = False
        self.terms = SessionTerms(
            clock=self.clock,
            wall_clock=lambda: 5e8 + self.clock.now,
            jitter=lambda: 0.5,
            tools=lambda: TOOLS,
            policy=policy,
            settings=SessionSettings(**{**SETTINGS, **settings}),
            context_window=200,
            signal_for=self.signal_for if gated else None,
        )
        self.machine = SessionMachine("s", self.terms)
        self.pump()

    def signal_for(self, session: str, given: Input) -> NewSignal:
        self.signals += 1
        return NewSignal(id=f"sig{self.signals}", kind="session.input", payload="{}", emitted_at=given.at)

    # --- the driver ---------------------------------------------------------------------------------------------

    def pump(self, *, over: int | None = None, call_over: int | None = None) -> list[Step]:
        """Do what the machine asks for, as its loop does. ``over``: a request has just come back; ``call_over``: a call."""
        steps = []
        while (step := self.machine.take_step()) is not None:
            steps.append(step)
            for stop in step.stops:
                if isinstance(stop, StopRequest):
                    self._left(stop.epoch)
                elif stop.registration in self.calls:
                    self.stopping[stop.registration] = self.calls.pop(stop.registration)
            if over is not None:
                self._left(over)
            if call_over is not None:
                self.calls.pop(call_over, None)
                self.stopping.pop(call_over, None)
            over = call_over = None
            self.store.apply(step.changes)
            for event in step.events:
                self._note(event)
            for start in step.starts:
                if isinstance(start, StartRequest):
                    self._started(start)
                else:
                    self._called(start)
            for turn in step.turns:
                assert not turn.input_ids or not set(turn.input_ids) & {
                    one for each in self.turns for one in each.input_ids
                }, "an input in two turns"
                assert all(self.store.inputs[each].state is InputState.DELIVERED for each in turn.input_ids)
                self.turns.append(turn)
        assert over is None, "a request came back, and nothing came of it"
        if call_over is not None:
            self.calls.pop(call_over, None)
            self.stopping.pop(call_over, None)
        return steps

    def _left(self, epoch: int) -> None:
        if self.requests.pop(epoch, None) is not None:
            self.used = added(self.used, self.reported or Usage())
            self.reported = None

    def _note(self, event: events.Event) -> None:
        self.events.append(event)
        if isinstance(event, events.TurnStarted | events.TurnEnded):
            assert self.turn_open is isinstance(event, events.TurnEnded)
            self.turn_open = not self.turn_open
        if isinstance(event, events.ApprovalAsked):
            self.asked.add(event.call_id)
        elif isinstance(event, events.ApprovalAnswered | events.CallEnded):
            self.asked.discard(event.call_id)
        assert not isinstance(event, events.SettleFailed), event

    def _started(self, start: StartRequest) -> None:
        request, row = start.request, self.store.row
        assert not self.requests, "LSE-4, SES-9: two requests out"
        wrong = message_shape(request.messages)
        assert wrong is None, f"SES-9: {wrong}"
        assert row is not None and row.last_epoch == start.epoch, "LSE-5: stored before it is sent"
        assert start.deadline > self.clock.now
        loaded = tuple(self.store.loaded())
        if request.purpose is Purpose.TURN:
            assert request.messages == loaded, "SES-9, SES-17: all that is asked is stored, as it would be loaded"
            assert loaded[-1].role is not Role.ASSISTANT
        elif request.purpose is not Purpose.SUMMARY:
            assert {each.seq for each in request.messages[:-1]} <= {each.seq for each in loaded}
        if request.purpose is not Purpose.SUMMARY:
            assert not self.store.open_calls(), "SES-9: a request before a result"
        self.requests[start.epoch] = start

    def _called(self, start: StartCall) -> None:
        row = self.store.row
        assert start.call in self.store.open_calls().values(), "SES-9: a call of no stored reply, or with a result"
        assert start.call.refused is None, "SES-13"
        assert row is not None and self.registrations < start.registration <= row.last_registration
        self.registrations = start.registration
        running = [*self.calls.values(), start]
        assert len(running) == 1 or all(TOOLS[each.call.name].concurrent for each in running), "SES-13: together"
        self.calls[start.registration] = start

    def tick(self) -> None:
        """The timer."""
        self.machine.timer()
        self.pump()

    def feed(self, epoch: int | None, purpose: Purpose | None, event: ModelEvent) -> bool:
        """Something of a stream."""
        if epoch is None:
            self.tick()  # what names nothing belongs to what is out now
        waited_for = self.machine.progress(epoch, purpose, event)
        if waited_for:
            (out,) = self.requests.values()
            assert epoch in (None, out.epoch) and purpose in (None, out.request.purpose), "SES-2"
            if isinstance(event, UsageReport):
                self.reported = event.usage
        self.pump()
        return waited_for

    # --- a crash ------------------------------------------------------------------------------------------------

    def crash(self) -> None:
        """The process dies; a new one makes the machine of what is stored, as a harness does."""
        self.requests.clear()
        self.calls.clear()
        self.stopping.clear()
        self.asked.clear()
        self.reported = None
        self.turn_open = False
        row, rows = self.store.row, self.store.inputs.values()
        self.clock.now += 50.0
        self.used = Usage() if row is None else row.usage
        self.registrations = 0 if row is None else row.last_registration
        if row is None:
            self.machine = SessionMachine("s", self.terms)
        else:
            waiting = [each for each in rows if each.state is InputState.QUEUED]
            self.machine = SessionMachine(
                "s",
                self.terms,
                messages=self.store.loaded(),
                last_seq=max((each.seq for each in self.store.messages), default=0),
                last_epoch=row.last_epoch,
                last_registration=row.last_registration,
                usage=row.usage,
                queued=[each.input for each in waiting if each.signal_id is None and not each.prompt],
                linked={each.input.id: Linked(each.input, each.signal_id) for each in waiting if each.signal_id},
                held=row.held,
                order=[each.input.id for each in waiting],
            )
            self.machine.close_prompts([each.input for each in waiting if each.signal_id is None and each.prompt])
            if self.gated:
                self.machine.route()
            self.machine.timer()
        self.pump()
        assert not self.store.open_calls(), "SES-17: a call that was cut off has its result at load"

    # --- judging ------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """SES-12a, SES-10b, SES-16, LSE-1: what the machine says agrees with what is out and what is stored."""
        machine, store = self.machine, self.store
        waited_for = {id(call) for call in store.open_calls().values()}
        working = [each for each in (*self.calls.values(), *self.stopping.values()) if id(each.call) in waited_for]
        assert len(self.requests) <= 1
        purposes = [each.request.purpose for each in self.requests.values()]
        expected = {
            "model": purposes == [Purpose.TURN],
            "compacting": purposes not in ([], [Purpose.TURN], [Purpose.SUMMARY]),
        }
        status, waiting = machine.status, machine.waiting_on()
        for word, true in expected.items():
            assert (status == word) is true, (status, purposes)
        if not any(expected.values()):
            if working:
                assert status == "tools", (status, working)
            elif self.asked:
                assert status == "approval", status
            elif purposes == [Purpose.SUMMARY]:
                assert status == "summarizing", status
            else:
                assert status in ("waiting_for_input", "backoff")
        same = {"model": "model", "compacting": "compaction", "approval": "approval", "summarizing": "summary"}
        if status in same:
            assert waiting.on == same[status]
        elif status == "tools":
            assert waiting.on in ("tool", "stopping")
        elif status == "backoff":
            assert waiting.on == "backoff" and machine.next_due() < float("inf")
        else:
            assert waiting.on in ("input", "lock")
        locked = bool(self.requests or self.calls or self.asked)
        assert machine.books.lock.is_locked() is locked, "LSE-1"
        assert waiting.as_json()["on"] == waiting.on and machine.holding()
        if machine.idle:
            assert not locked and not store.open_calls() and machine.next_due() == float("inf"), "SES-4"
            if store.queued() and not machine.closed:
                assert (store.row is not None and store.row.held) or self.gated, "SES-10b"
        else:
            assert machine.next_due() < float("inf"), "SES-4: it waits for nothing that ever comes"
        if store.row is not None:
            assert store.row.usage == self.used, "SES-16: each request once"
            assert store.row.held is machine.books.queue.held
        else:
            assert not store.inputs and not store.messages

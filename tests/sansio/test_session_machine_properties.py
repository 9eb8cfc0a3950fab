"""A session in any order of events: whatever comes, what is stored is right, and time alone leads back to idle (SES-9, SES-10)."""

from __future__ import annotations

import pytest
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from concorde_trio import events
from concorde_trio._sansio.model_events import (
    CallDelta,
    CallStarted,
    ModelEvent,
    Ping,
    Purpose,
    ReasoningDelta,
    ReplyEnd,
    StopReason,
    TextDelta,
    TextSnapshot,
    UsageReport,
)
from concorde_trio._sansio.session_terms import CallReport, RequestFailure, StartCall
from concorde_trio.errors import InputConflict
from concorde_trio.messages import Input, InputState
from concorde_trio.records import Usage
from tests.sansio.session_stage import World

SECONDS = st.sampled_from([0.5, 1.0, 3.0, 6.0, 11.0])
IDS = st.sampled_from(["i0", "i1", "i2", "i3", "i4"])
FINE = st.sampled_from(['{"a":1}', "{}", "", '{"p":"ask"}'])
ODD = st.sampled_from(['{"p":"deny"}', '{"p":"raise"}', '{"p":"odd"}', '{"a', "[1]"])
NAMES = st.sampled_from(["look", "peek", "shell", "stuck"])
GOOD_CALLS = st.lists(st.tuples(NAMES, FINE), min_size=1, max_size=3).map(
    lambda calls: [("abc"[at], *call) for at, call in enumerate(calls)]
)
CALLS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), NAMES | st.just("nobody"), FINE | ODD), min_size=1, max_size=3
)
USAGES = st.none() | st.builds(Usage, input_tokens=st.integers(0, 90), output_tokens=st.integers(0, 20))
REASONS = st.sampled_from([StopReason.STOP, StopReason.CALLS, StopReason.CALLS, StopReason.LENGTH])
EVENTS = st.one_of(
    st.builds(TextDelta, st.sampled_from(["", "hm", "a longer text than others"])),
    st.builds(TextSnapshot, st.sampled_from(["", "so", "so far so good"])),
    st.builds(ReasoningDelta, st.sampled_from(["", "…"])),
    st.builds(CallStarted, st.integers(0, 1), st.sampled_from(["a", "b", ""]), st.sampled_from(["look", "shell"])),
    st.builds(CallDelta, st.integers(0, 2), st.sampled_from(["", "{", "}", '"a":1'])),
    st.builds(UsageReport, USAGES.filter(bool)),
    st.just(Ping()),
)
FAILURES = st.sampled_from(
    [
        RequestFailure("busy", status=429, retry_after=2.0),
        RequestFailure("busy for long", status=429, retry_after=100.0),
        RequestFailure("overloaded", status=529),
        RequestFailure("no connection", connection=True),
        RequestFailure("bad request", status=400),
        RequestFailure("strange"),
        None,  # over without ReplyEnd
    ]
)
REPORTS = st.sampled_from(
    [
        CallReport("found"),
        CallReport(""),
        CallReport("it failed", error=True),
        CallReport("a very long output " * 4),
        CallReport("a very long error " * 4, error=True, path="/outputs/1"),
        CallReport(None),
    ]
)


class Sessions(RuleBasedStateMachine):
    """One session by itself (SES-22)."""

    gated = False

    @initialize(on_interrupt=st.sampled_from(["run_queue", "hold_queue"]), limit=st.sampled_from([None, None, 150]))
    def a_new_session(self, on_interrupt: str, limit: int | None) -> None:
        self.world = World(gated=self.gated, on_interrupt=on_interrupt, usage_limit=limit)
        self.past: list[int] = [0]  # registrations of calls that are over, or were never made
        self.left: list[int] = []

    # --- input ----------------------------------------------------------------------------------------------

    @rule(input_id=IDS, text=st.sampled_from(["hello", "hello", "other"]))
    def submit(self, input_id: str, text: str) -> None:
        world, store = self.world, self.world.store
        given, known = Input(id=input_id, text=text, at=1.0), store.inputs.get(input_id)
        if known is not None and known.state is not InputState.QUEUED:
            return  # settled ids are the ledger's to know (see SessionHarness.submit)
        before, waiting = dict(store.inputs), self.waiting()
        if known is not None and known.input.text != text:
            with pytest.raises(InputConflict):
                world.machine.submit(given)
            world.pump()
            return
        receipt = world.machine.submit(given)
        world.pump()
        assert receipt.accepted is (known is not None or waiting < world.terms.settings.max_queue)
        assert (input_id in store.inputs) is receipt.accepted, "SES-10a: stored before it is accepted"
        if not receipt.accepted or known is not None:
            assert store.inputs.keys() == before.keys()

    def waiting(self) -> int:
        """How many inputs the session knows that wait."""
        return len(self.world.store.queued()) + len(self.world.store.queued(linked=True))

    @rule(input_id=IDS)
    def cancel_input(self, input_id: str) -> None:
        row = self.world.store.inputs.get(input_id)
        queued = row is not None and row.state is InputState.QUEUED and row.signal_id is None
        assert self.world.machine.cancel_input(input_id) is queued
        self.world.pump()
        assert not queued or row is None or row.state is InputState.CANCELLED

    @rule()
    def resume(self) -> None:
        held = self.world.machine.books.queue.held
        assert self.world.machine.resume() is held
        self.world.pump()

    # --- models ---------------------------------------------------------------------------------------------

    def out(self) -> tuple[int, Purpose] | None:
        for epoch, start in self.world.requests.items():
            return epoch, start.request.purpose
        return None

    @precondition(lambda self: self.world.requests)
    @rule(came=st.lists(EVENTS, min_size=1, max_size=4), name_it=st.booleans())
    def a_stream_brings(self, came: list[ModelEvent], name_it: bool) -> None:
        out = self.out()
        assert out is not None
        for event in came:
            self.world.feed(*(out if name_it else (None, None)), event)

    @precondition(lambda self: self.world.requests)
    @rule(
        text=st.sampled_from(["", "done", "a longer answer than the others are"]),
        calls=st.one_of(st.just([]), CALLS, GOOD_CALLS),
        reason=REASONS,
        usage=USAGES,
        name_it=st.booleans(),
    )
    def a_model_replies(
        self, text: str, calls: list[tuple[str, str, str]], reason: StopReason, usage: Usage | None, name_it: bool
    ) -> None:
        out = self.out()
        assert out is not None
        epoch, purpose = (out[0] if name_it else None), out[1]
        came: list[ModelEvent] = [TextDelta(text)]
        if purpose is Purpose.TURN:
            came += [CallStarted(at, *call) for at, call in enumerate(calls)]
        if usage is not None:
            came.append(UsageReport(usage))
        for event in [*came, ReplyEnd(reason)]:
            self.world.feed(epoch, purpose, event)
        self.request_over(epoch, purpose, None)

    @precondition(lambda self: not self.world.requests or self.world.turn_open)
    @rule(calls=GOOD_CALLS, usage=USAGES)
    def a_turn_comes_to_its_calls(self, calls: list[tuple[str, str, str]], usage: Usage | None) -> None:
        """The way there, in one step: most of what can go wrong lies behind it."""
        if self.world.machine.idle:
            self.submit(f"a{len(self.world.store.inputs)}", "go")
        if (out := self.out()) is not None and out[1] is Purpose.TURN:
            self.a_model_replies("on it", calls, StopReason.CALLS, usage, True)

    @precondition(lambda self: self.world.calls)
    @rule(lengths=st.lists(st.booleans(), min_size=1, max_size=3))
    def calls_end_well(self, lengths: list[bool]) -> None:
        for start, long in zip(list(self.world.calls.values()), lengths, strict=False):
            self.call_over(start, CallReport("a very long output " * 4 if long else "found"))

    @precondition(lambda self: self.world.requests)
    @rule(failure=FAILURES, name_it=st.booleans())
    def a_request_fails(self, failure: RequestFailure | None, name_it: bool) -> None:
        out = self.out()
        assert out is not None
        self.request_over(*(out if name_it else (None, None)), failure)

    def request_over(self, epoch: int | None, purpose: Purpose | None, failure: RequestFailure | None) -> None:
        out = self.out()
        # What it names may have been given up in the meantime: then another request may be out, which is not over.
        meant = out is not None and epoch in (None, out[0]) and purpose in (None, out[1])
        self.world.machine.request_over(epoch, purpose, failure)
        self.world.pump(over=out[0] if out is not None and meant else None)

    @precondition(lambda self: len(self.world.store.messages) % 3 == 0)
    @rule(back=st.integers(1, 3), purpose=st.sampled_from(list(Purpose)), failure=FAILURES)
    def a_reply_comes_that_nobody_waits_for(self, back: int, purpose: Purpose, failure: RequestFailure | None) -> None:
        """SES-2: of an epoch that is over or never was, or of another kind; it changes nothing, and is told once."""
        world = self.world
        world.tick()
        out, last = self.out(), world.machine.books.lock.last_epoch
        epoch = last - back if back < 3 else last + 1
        if out is not None and purpose is not out[1] and back == 1:
            epoch = out[0]
        assume(out != (epoch, purpose))
        assert not world.feed(epoch, purpose, TextDelta("late"))
        world.machine.request_over(epoch, purpose, failure)
        (step,) = world.pump()
        assert not step.changes and not step.starts and not step.stops and not step.turns
        assert [type(event) for event in step.events] == [events.ReplyDropped]

    @precondition(lambda self: self.world.requests)
    @rule(then=st.sampled_from(["timer", "submit", "compact", "reply"]))
    def a_request_is_ended_by_its_scope(self, then: str) -> None:
        """SES-3: its lease is taken at once; what that leads to is decided before whatever the loop takes next."""
        out, machine = self.out(), self.world.machine
        assert out is not None
        assert machine.take_expired(out[0])
        assert not machine.idle and machine.next_due() <= self.world.clock.now, "SES-4: it waits to be settled"
        if then == "submit":
            self.submit(f"f{len(self.world.store.inputs)}", "go")
        elif then == "compact":
            self.somebody_wants_a_compaction()
        elif then == "reply":
            machine.request_over(*out, None)
            self.world.pump()
        else:
            machine.timer()
            self.world.pump()
        assert out[0] not in self.world.requests, "SES-3"

    @rule()
    def somebody_else_sees_that_time_is_up(self) -> None:
        """SES-4: a heartbeat takes what is expired; the loop settles it."""
        expected = bool(self.world.machine.books.lock.next_deadline() <= self.world.clock.now)
        assert self.world.machine.take_expired() is expected
        if expected:
            self.world.tick()

    # --- calls ----------------------------------------------------------------------------------------------

    @precondition(lambda self: self.world.calls or self.world.stopping)
    @rule(report=REPORTS, data=st.data(), fired=st.booleans(), name_it=st.booleans())
    def a_call_is_over(self, report: CallReport, data: st.DataObject, fired: bool, name_it: bool) -> None:
        world = self.world
        start = data.draw(st.sampled_from([*world.calls.values(), *world.stopping.values()]))
        if fired:
            report = CallReport(None)
        if start.registration in world.stopping:
            name_it = True  # its id alone may by now name another call
        self.call_over(start, report, fired=fired and name_it, name_it=name_it)

    def call_over(self, start: StartCall, report: CallReport, *, fired: bool = False, name_it: bool = True) -> None:
        self.world.machine.call_over(start.call.id, start.registration if name_it else None, report, fired=fired)
        self.world.pump(call_over=start.registration)
        self.past.append(start.registration)

    @precondition(lambda self: len(self.world.store.messages) % 3 == 0)
    @rule(data=st.data(), call_id=st.sampled_from(["a", "zz"]), report=REPORTS)
    def a_result_comes_that_nobody_waits_for(self, data: st.DataObject, call_id: str, report: CallReport) -> None:
        """SES-13, SES-7: never a second result."""
        world = self.world
        world.tick()
        registration = data.draw(st.sampled_from([*self.past, 9999]))
        assume(registration not in world.calls and registration not in world.stopping)
        before = list(world.store.messages)
        world.machine.call_over(call_id, registration, report)
        for step in world.pump():
            assert not step.changes and not step.starts and not step.turns
        assert world.store.messages == before

    @precondition(lambda self: self.world.calls)
    @rule(data=st.data(), what=st.sampled_from(["process", "thread"]))
    def a_call_leaves_work_behind(self, data: st.DataObject, what: str) -> None:
        start = data.draw(st.sampled_from([*self.world.calls.values()]))
        self.left.append(self.world.machine.left(start.registration, start.call, what, 77, "a server"))
        self.world.pump()

    @precondition(lambda self: self.left)
    @rule(result=st.sampled_from([None, "late"]))
    def that_work_ends(self, result: str | None) -> None:
        self.world.machine.left_ended(self.left.pop(0), result)
        self.world.pump()

    # --- time and people ------------------------------------------------------------------------------------

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: float) -> None:
        self.world.clock.now += seconds

    @rule()
    def the_timer_fires(self) -> None:
        self.world.tick()

    @rule()
    def time_reaches_what_is_due(self) -> None:
        if (due := self.world.machine.next_due()) < float("inf"):
            self.world.clock.now = max(self.world.clock.now, due)
            self.world.tick()

    @rule()
    def a_person_interrupts(self) -> None:
        """SES-12: false if and only if nothing was in flight; afterwards no request of that turn is out."""
        world = self.world
        world.tick()
        before, busy = list(world.requests), world.turn_open or bool(world.requests)
        assert world.machine.interrupt() is busy
        world.pump()
        assert not set(before) & set(world.requests) and not world.calls or not busy
        if busy and world.terms.settings.on_interrupt == "hold_queue" and world.store.queued():
            assert world.store.row is not None and world.store.row.held
            assert not any(each.request.purpose is Purpose.TURN for each in world.requests.values())

    @rule(call_id=st.sampled_from(["a", "b", "c"]), allowed=st.booleans())
    def a_person_answers(self, call_id: str, allowed: bool) -> None:
        """SES-18: for a call that is asked about, and for no other."""
        world = self.world
        world.tick()
        asked = call_id in world.asked
        assert world.machine.answer(call_id, allowed) is asked
        world.pump()
        if asked and allowed:
            assert call_id in [each.call.id for each in world.calls.values()]

    @rule()
    def somebody_wants_a_compaction(self) -> None:
        self.world.machine.compact()
        self.world.pump()

    @rule(lost=st.sampled_from(["no", "no", "no", "nothing", "interrupt", "submit", "timer"]))
    def the_process_dies(self, lost: str) -> None:
        """SES-17: also with a step that was decided and never stored."""
        if lost == "no":
            return
        world, machine = self.world, self.world.machine
        if lost == "interrupt":
            machine.interrupt()
        elif lost == "submit":
            machine.submit(Input(id="lost", text="lost", at=0.0))
        elif lost == "timer":
            machine.timer()
        self.past += [*world.calls, *world.stopping]
        self.left.clear()
        world.crash()

    # --- always ---------------------------------------------------------------------------------------------

    @invariant()
    def all_is_well(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def come_to_rest(self) -> None:
        """SES-4: at the times it says itself, with nobody answering any more, until it waits for nothing."""
        world = self.world
        for _ in range(200):
            due = world.machine.next_due()
            if due == float("inf"):
                break
            world.clock.now = max(world.clock.now, due)
            world.tick()
            world.check()
        assert world.machine.idle and not world.machine.books.lock.is_locked()
        assert not world.requests and not world.calls and not world.asked and not world.store.open_calls()
        assert world.machine.status == "waiting_for_input"

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.come_to_rest()
        self.goes_on()

    def goes_on(self, input_id: str = "next") -> None:
        """SES-5, SES-10b, SES-22: whatever happened, the next input starts a turn at once, with all that was held."""
        world, store = self.world, self.world.store
        assert not store.queued() or (store.row is not None and store.row.held)
        receipt = world.machine.submit(Input(id=input_id, text="and now?", at=9.0))
        world.pump()
        if receipt.accepted:
            assert store.inputs[input_id].state is InputState.DELIVERED
        assert not store.queued() and world.turn_open
        world.check()
        self.come_to_rest()
        assert len(store.inputs) == sum(each.state is not InputState.QUEUED for each in store.inputs.values())


class ClosingSessions(Sessions):
    """One that is closed at some moment: its turn ends, and none begins any more."""

    @rule()
    @precondition(lambda self: not self.world.machine.closed and len(self.world.events) > 20)
    def it_is_closed(self) -> None:
        self.world.machine.close()
        self.world.pump()

    def goes_on(self, input_id: str = "next") -> None:
        """SES-10a: what comes after that waits; once it is opened again, it runs."""
        world = self.world
        if not world.machine.closed:
            world.machine.close()
            world.pump()
        self.come_to_rest()
        world.machine.submit(Input(id=input_id, text="and now?", at=9.0))
        world.pump()
        assert not world.requests and world.machine.idle
        world.crash()
        self.come_to_rest()
        super().goes_on("the one after")


TestSessions = Sessions.TestCase
TestClosingSessions = ClosingSessions.TestCase

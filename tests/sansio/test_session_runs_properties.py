"""A session whose turns begin only inside runs, in any order of events: nothing runs without one, nothing is lost between two (SES-20, SES-21)."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from concorde_trio._sansio.model_events import Purpose, StopReason
from concorde_trio._sansio.session_changes import AddInput, EmitSignals
from concorde_trio.messages import Input, InputState
from concorde_trio.records import Usage
from tests.sansio.test_session_machine_properties import GOOD_CALLS, USAGES, Sessions

BETWEEN = st.sampled_from(["nothing", "submit", "cancel", "crash", "resume"])


class RunsOfSessions(Sessions):
    """The same events, and a worker that begins and ends runs as ``run_turns`` does."""

    gated = True
    prompts = 0
    signal_id: str | None = None

    def next_linked(self) -> str | None:
        """The input of the oldest signal: runs of one session go in the order of their signals (LCK-2)."""
        inputs = self.world.store.inputs
        linked = self.world.store.queued(linked=True)
        return min(linked, key=lambda each: int((inputs[each].signal_id or "")[3:]), default=None)

    def waiting(self) -> int:
        """What another process wrote is not heard of before the next begin or end of a run."""
        known = self.world.machine.linked
        return len(self.world.store.queued()) + sum(each in known for each in self.world.store.queued(linked=True))

    def hears(self) -> None:
        """What is stored, told to the machine, as at the begin and the end of a run."""
        rows = self.world.store.inputs.values()
        self.world.machine.heard((each.input, each.signal_id) for each in rows if each.state is InputState.QUEUED)

    @precondition(lambda self: self.world.store.row is not None)
    @rule()
    def another_process_sends_something(self) -> None:
        """SES-20: a signal and a row of the ledger; the machine has not heard of it."""
        store = self.world.store
        given = Input(id=f"o{len(store.inputs)}", text="from outside", at=3.0)
        new = self.world.signal_for("s", given)
        store.apply([EmitSignals((new,)), AddInput(session="s", input=given, signal_id=new.id)])

    @precondition(lambda self: self.world.machine.run is None)
    @rule(own=st.booleans(), as_it_was=st.booleans(), limit=st.sampled_from([None, None, 60]))
    def a_run_begins(self, own: bool, as_it_was: bool, limit: int | None) -> None:
        """SES-21: its prompt is taken by a turn at once; where its signal was made of an input, that is delivered."""
        world, store = self.world, self.world.store
        linked = None if own else self.next_linked()
        self.prompts += 1
        given, self.signal_id = Input(id=f"prompt{self.prompts}", text="work", at=2.0), None
        if linked is not None:
            row = store.inputs[linked]
            self.signal_id = row.signal_id
            text = row.input.text if as_it_was else "what a handler made of it"
            given = Input(id=given.id, text=text, at=2.0)
            if not as_it_was:
                store.stood_for.add(linked)
        self.hears()
        world.machine.begin_run(limit)
        taken = world.machine.run_prompt(given, self.signal_id)
        world.pump()
        assert world.turn_open
        assert all(store.inputs[each.id].state is InputState.DELIVERED for each in taken)
        assert linked is None or store.inputs[linked].state is InputState.DELIVERED
        assert not store.queued(), "what waited for this run joins it, or becomes a signal when it ends"

    @precondition(lambda self: self.world.machine.run is not None)
    @rule(between=BETWEEN)
    def a_run_ends(self, between: str) -> None:
        """SES-21: what is queued becomes signals in the commit that ends it, whatever happens until that commit."""
        world, machine = self.world, self.world.machine
        machine.no_more_turns()
        if not machine.idle:
            machine.interrupt("the run was stopped")
            world.pump()
            self.come_to_rest()
        self.hears()
        waiting, changes = world.store.queued(), machine.end_run()
        waiting = [each for each in waiting if each in machine.linked]
        machine.handing_over = bool(changes)
        if between == "crash":
            world.crash()
        else:
            if between == "submit":
                self.submit("i4", "hello")
            elif between == "cancel" and waiting:
                assert not machine.cancel_input(waiting[0])
            elif between == "resume":
                machine.resume()
            world.pump()
            world.store.apply(changes)
            machine.handed_over()
            world.pump()
        self.every_input_has_a_signal_or_a_run_that_comes()
        world.machine.timer()
        if self.signal_id is not None:
            world.machine.signal_settled(self.signal_id)
        world.pump()

    @rule()
    def a_run_leaves_something_and_so_does_another_process(self) -> None:
        """The way there, in one step."""
        if self.world.machine.run is None:
            self.a_run_begins(True, True, None)
        self.submit(f"q{len(self.world.store.inputs)}", "go")
        self.another_process_sends_something()
        self.a_run_ends("nothing")

    @precondition(lambda self: self.world.machine.run is not None)
    @rule()
    def the_worker_stops(self) -> None:
        self.world.machine.no_more_turns()

    @precondition(lambda self: self.world.store.queued(linked=True))
    @rule()
    def a_signal_is_cancelled(self) -> None:
        """SES-10a: its input is cancelled with it, and no other."""
        store = self.world.store
        self.hears()
        queued = store.queued(linked=True)
        self.world.machine.signal_settled(store.inputs[queued[0]].signal_id or "")
        self.world.pump()
        assert store.inputs[queued[0]].state is InputState.CANCELLED
        assert set(queued[1:]) <= set(store.queued(linked=True)), "and what waited for its run is a signal now"

    @rule(calls=GOOD_CALLS, usage=USAGES)
    def a_turn_comes_to_its_calls(self, calls: list[tuple[str, str, str]], usage: Usage | None) -> None:
        """The way there, in one step."""
        if self.world.machine.run is None:
            self.a_run_begins(False, True, None)
        if (out := self.out()) is not None and out[1] is Purpose.TURN:
            self.a_model_replies("on it", calls, StopReason.CALLS, usage, True)

    @invariant()
    def all_is_well(self) -> None:
        super().all_is_well()
        if hasattr(self, "world") and self.world.machine.run is None:
            world = self.world
            assert not world.requests and not world.calls and not world.turn_open, "SES-20: no turn without a run"
            self.every_input_has_a_signal_or_a_run_that_comes()
        if hasattr(self, "world"):
            self.nothing_overtakes_what_waited_in_a_queue()

    def every_input_has_a_signal_or_a_run_that_comes(self) -> None:
        """SES-20, SES-10: whoever is only in the queue came before one that is linked, and runs with it."""
        store = self.world.store
        ids = list(store.inputs)
        last = max((ids.index(each) for each in store.queued(linked=True)), default=-1)
        assert all(ids.index(each) < last for each in store.queued()), "SES-20"
        assert all(each in self.world.machine.books.queue for each in map(self.input_of, store.queued()))

    def input_of(self, input_id: str) -> Input:
        return self.world.store.inputs[input_id].input

    def nothing_overtakes_what_waited_in_a_queue(self) -> None:
        """SES-10: what was accepted later, as a signal, is not delivered before it."""
        store = self.world.store
        places = [each.id for message in store.messages for each in message.inputs]
        for at, (name, row) in enumerate(store.inputs.items()):
            if not row.joined or row.state is InputState.CANCELLED or name in store.stood_for:
                continue
            for other in list(store.inputs)[at + 1 :]:
                if not store.inputs[other].joined and not store.inputs[other].prompt and other in places:
                    assert name in places and places.index(name) < places.index(other), f"{other} overtook {name}"

    def goes_on(self, input_id: str = "next") -> None:
        """SES-10a: each input that waits gets a run, and one that comes to a session without a run becomes a signal."""
        world, store = self.world, self.world.store
        if world.machine.run is not None:
            self.a_run_ends("nothing")
        receipt = world.machine.submit(Input(id=input_id, text="and now?", at=9.0))
        world.pump()
        assert world.machine.idle and (input_id in store.queued(linked=True)) is receipt.accepted
        while store.queued(linked=True) or store.queued():
            self.a_run_begins(False, True, None)
            self.a_run_ends("nothing")
        assert all(each.state is not InputState.QUEUED for each in store.inputs.values())


TestRunsOfSessions = RunsOfSessions.TestCase
TestRunsOfSessions.settings = settings(stateful_step_count=40)

"""The input queue against a slow, obvious model, in any order of operations (SES-10, SES-10a, SES-12)."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from concorde_trio._sansio.input_queue import Delivery, InputQueue, Ledger
from concorde_trio.errors import InputConflict, WrongState
from concorde_trio.messages import Input, InputState
from tests.sansio.input_queue_model import InputQueueModel

IDS = st.sampled_from("abcdefgh")
TEXTS = st.sampled_from(["", "x", "y\n---\nz", "[Multiple inputs received while processing:]"])
ATTACHMENTS = st.sampled_from([(), ("image",)])


class InputQueueMachine(RuleBasedStateMachine):
    """The same calls to both; the answers and everything that can be seen must be equal."""

    def __init__(self) -> None:
        super().__init__()
        self.model = InputQueueModel(3)
        self.queue = InputQueue(bound=3)
        self.at = 0.0
        self.seen: Delivery | None = None
        self.out: list[str] = []  # what was delivered, in order

    @initialize(bound=st.integers(1, 4))
    def a_bound(self, bound: int) -> None:
        self.model = InputQueueModel(bound)
        self.queue = InputQueue(bound=bound)

    @rule(input_id=IDS, text=TEXTS, attachments=ATTACHMENTS)
    def submit(self, input_id: str, text: str, attachments: tuple[str, ...]) -> None:
        self.at += 1
        given = Input(id=input_id, text=text, at=self.at, sender=f"sender {self.at}", attachments=attachments)
        known = input_id in [row[0] for row in self.model.rows]
        expected = self.model.submit(input_id, text, attachments)
        if expected == "conflict":
            with pytest.raises(InputConflict):
                self.queue.answer(given)
            with pytest.raises(InputConflict):
                self.queue.submit(given)
            return
        foreseen = self.queue.answer(given)
        receipt = self.queue.submit(given)
        assert (receipt.id, receipt.state, receipt.accepted) == (input_id, expected, expected == "accepted")
        assert (receipt.reason is None) is receipt.accepted
        assert foreseen == (receipt if known or not receipt.accepted else None)

    @rule()
    def look(self) -> None:
        self.seen = self.queue.ready()

    @rule()
    def drain(self) -> None:
        ids = self.model.ready()
        self.delivered(self.queue.drain(), ids)

    @rule()
    def drain_what_was_seen(self) -> None:
        if self.seen is None:
            return
        ids = [given.id for given in self.seen.inputs]
        if self.model.ready()[: len(ids)] == ids and all(
            any(given is other for other in self.queue) for given in self.seen.inputs
        ):
            self.delivered(self.queue.drain(self.seen), ids)
        else:
            assert self.queue.drain(self.seen) is None

    def delivered(self, delivery: Delivery | None, ids: list[str]) -> None:
        assert ([given.id for given in delivery.inputs] if delivery else []) == ids
        if delivery:
            assert delivery.text == self.model.text(ids)
            assert len(delivery.attachments) == sum(len(given.attachments) for given in delivery.inputs)
            self.out += [f"{given.id} {given.at}" for given in delivery.inputs]
            assert len(set(self.out)) == len(self.out), "an input was delivered twice"
            times = [float(one.split()[1]) for one in self.out]
            assert times == sorted(times), "inputs were delivered out of order"
        self.model.settle(ids, "delivered")

    @rule(input_id=IDS)
    def cancel(self, input_id: str) -> None:
        ids = [one for one in self.model.ids("queued") if one == input_id]
        cancelled = self.queue.cancel(input_id)
        assert ([cancelled.id] if cancelled else []) == ids
        self.model.settle(ids, "cancelled")

    @rule()
    def cancel_all(self) -> None:
        ids = self.model.ids("queued")
        assert [given.id for given in self.queue.cancel_all()] == ids
        self.model.settle(ids, "cancelled")

    @rule()
    def hold(self) -> None:
        self.model.held = bool(self.model.ids("queued"))
        assert self.queue.hold() is self.model.held

    @rule()
    def resume(self) -> None:
        assert self.queue.resume() is self.model.held
        self.model.held = False

    @rule(ids=st.lists(IDS, max_size=3))
    def forget(self, ids: list[str]) -> None:
        settled = {*self.model.ids("delivered"), *self.model.ids("cancelled")}
        if set(ids) <= settled:
            self.queue.forget(ids)
            self.model.rows = [row for row in self.model.rows if row[0] not in ids]
        else:
            with pytest.raises(WrongState):
                self.queue.forget(ids)

    @rule()
    def the_process_dies_and_a_new_one_goes_on(self) -> None:
        """With no more than what a store would have: the inputs in order of acceptance, and their states."""
        waiting = {given.id: given for given in self.queue}
        queue = InputQueue(bound=self.model.bound)
        for input_id, text, attachments, state in self.model.rows:
            stored = Input(id=input_id, text=text, at=0, attachments=attachments)
            queue.restore(waiting.get(input_id, stored), InputState(state))
        self.queue = queue
        self.model.held = False

    @invariant()
    def all_that_can_be_seen_is_equal(self) -> None:
        queue, model = self.queue, self.model
        assert [given.id for given in queue] == model.ids("queued")
        assert len(queue) == len(model.ids("queued"))
        assert queue.held is model.held
        ready = queue.ready()
        assert ([given.id for given in ready.inputs] if ready else []) == model.ready()
        states = {row[0]: row[3] for row in model.rows}
        for input_id in "abcdefgh":
            assert queue.state(input_id) == states.get(input_id)
        counts = {state: len(model.ids(state)) for state in ("delivered", "cancelled", "queued")}
        assert queue.ledger == Ledger(accepted=len(model.rows), **counts)

    @invariant()
    def the_ledger_balances(self) -> None:
        """SES-10a: by the queue's own word, and whatever the model says."""
        ledger = self.queue.ledger
        assert ledger.accepted == ledger.delivered + ledger.cancelled + ledger.queued

    @invariant()
    def nothing_is_held_when_nothing_waits(self) -> None:
        """SES-12: so an input that comes is never held by an interrupt that was before it."""
        assert len(self.queue) or not self.queue.held


TestInputQueue = InputQueueMachine.TestCase

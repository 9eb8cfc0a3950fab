"""The ledger of inputs: accepted once, settled once, in the order in which they came."""

from __future__ import annotations

from typing import Any

import attrs

from concorde_trio._sansio.session_changes import AddInput, LinkInputs, SettleInputs
from concorde_trio.errors import StoreError
from concorde_trio.messages import Input, InputState
from concorde_trio.sessions.store import StoredInput
from concorde_trio.testing.session_store_checks.samples import (
    AT,
    LATER,
    MakeStore,
    QueueStore,
    given,
    opened,
    refused,
    said,
    save,
)

DELIVERED, CANCELLED, QUEUED = InputState.DELIVERED, InputState.CANCELLED, InputState.QUEUED


async def an_input_is_given_back_as_it_was_accepted(make_store: MakeStore) -> None:
    """SES-10a: with its sender, time and attachments; queued until it is settled."""
    spoken = Input(
        id="i",
        text='żółć 🙂 "x"\n',
        at=AT,
        sender="bob",
        attachments=({"type": "image", "data": "aGk="}, [0.1, None], "漢"),
    )
    async with opened(make_store) as store:
        await store.apply([save(), AddInput(session="ann", input=spoken, prompt=True, signal_id="s"), given("j")])
        stored = StoredInput(session="ann", input=spoken, state=QUEUED, prompt=True, signal_id="s")
        assert await store.input("i") == stored
        assert await store.input("j") == StoredInput(session="ann", input=given("j").input, state=QUEUED)
        await store.apply([SettleInputs(("i",), DELIVERED, LATER)])
        assert await store.input("i") == attrs.evolve(stored, state=DELIVERED, settled_at=LATER)
        assert await store.input("nobody") is None


async def inputs_keep_the_order_in_which_they_were_accepted(make_store: MakeStore) -> None:
    """SES-10: not that of their times, their ids or their sessions."""
    async with opened(make_store) as store:
        await store.apply([given("z", at=9.0), given("a", at=1.0)])
        await store.apply([given("m", "bob", at=5.0)])
        await store.apply([given("b", at=0.0), given("y", "bob", at=7.0)])
        assert await _unsettled(store) == ["z", "a", "m", "b", "y"]
        assert await _unsettled(store, "ann") == await _waiting(store, "ann") == ["z", "a", "b"]
        assert await _unsettled(store, "bob") == await _waiting(store, "bob") == ["m", "y"]
        await store.apply([SettleInputs(("a", "y"), CANCELLED, LATER), given("c")])
        assert await _unsettled(store) == ["z", "m", "b", "c"]
        assert await _waiting(store, "ann") == ["z", "b", "c"]


async def an_input_is_accepted_once(make_store: MakeStore) -> None:
    """SES-10a: its id is the queue's, not the session's, and is known after it was settled too."""
    async with opened(make_store) as store:
        await store.apply([given("i"), given("j")])
        await store.apply([SettleInputs(("j",), DELIVERED, LATER)])
        for taken in ("i", "j"):
            await refused(store, given(taken), names=f"input '{taken}'")
            await refused(store, given(taken, "bob"), names=f"input '{taken}'")
            await refused(store, save(at=LATER), said(1), given("new"), given(taken), names=f"input '{taken}'")
        await refused(store, given("new"), given("new", "bob"), names="input 'new'")
        await refused(store, given("new"), SettleInputs(("new",), DELIVERED, AT), given("new"), names="input 'new'")


async def an_input_is_settled_once(make_store: MakeStore) -> None:
    """SES-10a: it ends in exactly one of delivered and cancelled; one that is not queued is refused, by its name."""
    async with opened(make_store) as store:
        await store.apply([given("one"), given("two"), given("left")])
        await refused(store, SettleInputs(("left",), QUEUED, LATER), names="left")
        await refused(store, SettleInputs(("left",), DELIVERED, float("nan")), names="left")
        await refused(store, SettleInputs(("left", "nobody"), DELIVERED, LATER), names="nobody")
        await refused(store, LinkInputs(("left", "nobody"), "s"), names="nobody")
        await refused(store, LinkInputs(("left",), "s\0"), names="left")
        await refused(store, SettleInputs(("left", "left"), DELIVERED, LATER), names="left")
        await store.apply([SettleInputs(("one",), DELIVERED, LATER), SettleInputs(("two",), CANCELLED, LATER)])
        for over in ("one", "two"):
            for state in (DELIVERED, CANCELLED):
                await refused(store, SettleInputs(("left", over), state, LATER), names=over)
                await refused(
                    store, SettleInputs(("left",), state, LATER), SettleInputs((over,), state, AT), names=over
                )
            await refused(store, LinkInputs(("left", over), "s"), names=over)
        await refused(store, SettleInputs(("left",), DELIVERED, LATER), LinkInputs(("left",), "s"), names="left")
        await store.apply([SettleInputs((), DELIVERED, LATER), LinkInputs((), "s")])
        assert await _unsettled(store) == ["left"]
        record = await store.session("ann")
        assert record is not None
        assert record.queued == 1


async def an_input_may_come_and_go_in_one_commit(make_store: MakeStore) -> None:
    """SES-10a: accepted, linked and delivered at once; and an empty ledger is what is left."""
    async with opened(make_store) as store:
        await store.apply(
            [
                given("i"),
                given("j", signal_id="s"),
                LinkInputs(("i", "j"), "t"),
                SettleInputs(("i",), DELIVERED, LATER),
                LinkInputs(("j",), "u"),
            ]
        )
        one, two = await store.input("i"), await store.input("j")
        assert one is not None
        assert two is not None
        assert (one.state, one.signal_id, one.settled_at) == (DELIVERED, "t", LATER)
        assert (two.state, two.signal_id, two.settled_at) == (QUEUED, "u", None)
        assert await _unsettled(store) == ["j"]
        assert await _waiting(store, "ann") == []


async def an_input_that_became_a_signal_is_no_more_of_its_loop(make_store: MakeStore) -> None:
    """SES-20, SES-21: it still counts as queued, keeps its place, and is settled like any other."""
    async with opened(make_store) as store:
        await store.apply([given("a"), given("b"), given("c", signal_id="s1"), given("d")])
        assert await _waiting(store, "ann") == ["a", "b", "d"]
        await store.apply([LinkInputs(("b", "a"), "s2")])
        assert await _waiting(store, "ann") == ["d"]
        assert [(each.input.id, each.signal_id) for each in await store.unsettled_inputs("ann")] == [
            ("a", "s2"),
            ("b", "s2"),
            ("c", "s1"),
            ("d", None),
        ]
        loaded = await store.load_session("ann")
        assert loaded is not None
        assert loaded.record.queued == 4
        await store.apply([SettleInputs(("c", "b"), DELIVERED, LATER)])
        settled = await store.input("c")
        assert settled is not None
        assert (settled.state, settled.signal_id) == (DELIVERED, "s1")
        assert await _unsettled(store) == ["a", "d"]


async def what_was_accepted_can_be_delivered(make_store: MakeStore) -> None:
    """SES-10a: an attachment that is too deep for a message is refused when it comes, not when it is to be delivered."""
    deepest, value = 0, "x"
    async with opened(make_store) as store:
        for depth in range(120):
            spoken = Input(id=f"i{depth}", text="", at=AT, attachments=(value,))
            change = AddInput(session="ann", input=spoken)
            try:
                await store.apply([change])
            except StoreError as error:
                assert f"input 'i{depth}'" in str(error)
                break
            await store.apply([said(depth + 1, inputs=(spoken,)), SettleInputs((spoken.id,), DELIVERED, LATER)])
            deepest, value = depth, [value]  # type: ignore[assignment]
        assert deepest >= 90
        assert [each.inputs[0].id for each in await store.messages("ann", limit=200)] == [
            f"i{depth}" for depth in range(deepest + 1)
        ]


async def a_sessions_queue_is_its_own(make_store: MakeStore) -> None:
    """SES-10: thousands of inputs of others, and of its own that are settled, are none of it."""
    async with opened(make_store) as store:
        changes: list[Any] = [given(f"b{number}", "bob") for number in range(1100)]
        changes += [given(f"a{number}") for number in range(1100)]
        await store.apply(changes)
        await store.apply([SettleInputs(tuple(f"a{number}" for number in range(1098)), DELIVERED, LATER)])
        assert await _waiting(store, "ann") == ["a1098", "a1099"]
        assert len(await _unsettled(store, "bob")) == 1100
        assert len(await _unsettled(store)) == 1102


async def _unsettled(store: QueueStore, session: str | None = None) -> list[str]:
    return [each.input.id for each in await store.unsettled_inputs(session)]


async def _waiting(store: QueueStore, session: str) -> list[str]:
    loaded = await store.load_session(session)
    assert loaded is not None
    return [each.input.id for each in loaded.inputs]

"""One commit for a worker's changes and sessions': all of it or nothing, in order, and heard of afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import permutations

import trio
import trio.testing

from concorde_trio._sansio.changes import Change, ClaimSignal, EndRun, FinishRequest, QueueRuns, SettleSignal, StartRun
from concorde_trio._sansio.session_changes import EmitSignals, LinkInputs, SessionChange, SettleInputs
from concorde_trio.errors import InsideTransaction, StoreError
from concorde_trio.messages import InputState, Role
from concorde_trio.records import RunState, SignalState
from concorde_trio.testing.session_store_checks.samples import (
    AT,
    LATER,
    MakeStore,
    all_of,
    given,
    opened,
    refused,
    said,
    save,
    summed,
)
from concorde_trio.testing.store_checks.samples import emitted, new_run, new_signal, queued
from concorde_trio.testing.store_checks.together import SOON

Changes = list[Change | SessionChange]
DELIVERED = InputState.DELIVERED


async def a_run_ends_and_what_is_queued_becomes_signals_in_one_commit(make_store: MakeStore) -> None:
    """SES-21: the run's end, the end of its prompt, and signals for the inputs that are left."""
    async with opened(make_store) as store:
        run = new_run("s", 1)
        await queued(store, "s", run)
        await store.apply([StartRun(run.id, AT), given("prompt", prompt=True), given("a"), given("b")])
        signals = (new_signal("sa", kind="session.input"), new_signal("sb", kind="session.input"))
        await store.apply(
            [
                EndRun(run.id, RunState.FAILED, LATER, "why"),
                SettleInputs(("prompt",), InputState.CANCELLED, LATER),
                EmitSignals(signals),
                LinkInputs(("a",), "sa"),
                LinkInputs(("b",), "sb"),
                save(at=LATER),
                said(1),
                SettleSignal("s", SignalState.FAILED, LATER, "why"),
            ]
        )
        stored = await store.run(run.id)
        assert stored is not None
        assert stored.state is RunState.FAILED
        assert [(each.input.id, each.signal_id) for each in await store.unsettled_inputs()] == [
            ("a", "sa"),
            ("b", "sb"),
        ]
        assert [each.id for each in await store.pending(10)] == ["sa", "sb"]
        loaded = await store.load_session("ann")
        assert loaded is not None
        assert (len(loaded.messages), loaded.inputs, loaded.record.queued) == (1, (), 2)


async def a_batch_with_one_bad_change_writes_nothing(make_store: MakeStore) -> None:
    """SES-21, RUN-1: wherever in it the bad one stands, and whoever's it is."""
    async with opened(make_store) as store:
        await emitted(store, "s")
        await store.apply([save(), said(1), given("i"), given("over")])
        await store.apply([SettleInputs(("over",), DELIVERED, LATER)])
        good: Changes = [
            ClaimSignal("s", AT),
            save(at=LATER, last_epoch=5),
            said(2),
            given("new"),
            SettleInputs(("i",), DELIVERED, LATER),
            EmitSignals((new_signal("emitted"),)),
        ]
        bad: tuple[tuple[Change | SessionChange, str], ...] = (
            (ClaimSignal("nobody", AT), "nobody"),
            (StartRun("nobody", AT), "nobody"),
            (said(1), "message 1 of session 'ann'"),
            (said(3, "a\0b"), "message 3 of session 'ann'"),
            (given("over"), "over"),
            (SettleInputs(("over",), DELIVERED, LATER), "over"),
            (LinkInputs(("nobody",), "s"), "nobody"),
            (EmitSignals((new_signal("s"),)), "s"),
            (save("bob", last_epoch=-1), "session 'bob'"),
        )
        for change, names in bad:
            for place in range(len(good) + 1):
                await refused(store, *good[:place], change, *good[place:], names=names)
        await store.apply(good)


async def a_batch_is_the_same_as_its_changes_one_by_one(make_store: MakeStore) -> None:
    """SES-21: any cut of a step's changes into commits leaves the same rows."""
    changes: Changes = [
        given("i"),
        said(2, role=Role.ASSISTANT),
        save(at=LATER, last_epoch=4, last_registration=2, held=True),
        EmitSignals((new_signal("t", key="K"), new_signal("u"))),
        said(1),
        given("j", "bob"),
        LinkInputs(("i", "j"), "t"),
        save(at=AT, last_epoch=3, last_registration=9),
        SettleInputs(("i",), DELIVERED, LATER),
        EmitSignals((new_signal("v", key="K"),)),
        summed(3, covers=1),
        save("bob", at=LATER),
    ]
    wholes = []
    for cuts in (0, *(1 << place for place in range(len(changes) - 1)), (1 << len(changes)) - 1):
        async with opened(make_store) as store:
            batch: Changes = []
            for number, change in enumerate(changes):
                batch.append(change)
                if cuts >> number & 1:
                    await store.apply(batch)
                    batch = []
            await store.apply(batch)
            wholes.append(await all_of(store))
    assert [signal.id for signal in wholes[0]["pending"]] == ["t", "u"]
    assert all(whole == wholes[0] for whole in wholes)


async def signals_of_a_batch_are_emitted_as_by_emit(make_store: MakeStore) -> None:
    """SIG-3, SIG-7: in the order of the batch, after all before, and a key once."""
    async with opened(make_store) as store:
        await store.emit([new_signal("first", key="K")])
        await store.apply(
            [
                EmitSignals((new_signal("b", key="L"), new_signal("x", key="K"))),
                save(),
                EmitSignals((new_signal("a"), new_signal("y", key="L"))),
            ]
        )
        await store.emit([new_signal("last"), new_signal("z", key="L")])
        found = await store.pending(10)
        assert [each.id for each in found] == ["first", "b", "a", "last"]
        assert sorted({each.seq for each in found}) == [each.seq for each in found]
        assert await store.signal("x") is await store.signal("y") is None
        for one, two in permutations(("new", "first")):
            await refused(store, EmitSignals((new_signal(one), new_signal(two))), names="first")
        await refused(store, EmitSignals((new_signal("new"),)), EmitSignals((new_signal("new"),)))


async def a_signal_is_not_changed_in_the_commit_that_emits_it(make_store: MakeStore) -> None:
    """SIG-4: whatever the order of the two; it is claimed in a later one."""
    async with opened(make_store) as store:
        emit, claim = EmitSignals((new_signal("t"),)), ClaimSignal("t", AT)
        await refused(store, emit, claim, names="t")
        await refused(store, claim, emit, names="t")
        await refused(store, claim, QueueRuns("t", ()), emit, names="t")
        await store.apply([emit])
        await store.apply([claim])


async def a_commit_with_signals_wakes_as_an_emit_does(make_store: MakeStore) -> None:
    """SIG-6: and the signal is there by then."""
    async with opened(make_store) as store:
        woken = trio.Event()
        async with store.on_change(woken.set):
            await store.apply([save(), EmitSignals((new_signal("a"),)), FinishRequest(1)])
            with trio.fail_after(SOON):
                await woken.wait()
            assert [each.id for each in await store.pending(10)] == ["a"]


async def many_sessions_at_once_and_a_bad_one_fails_alone(make_store: MakeStore) -> None:
    """REC-5: each caller hears of its own."""
    async with opened(make_store) as store:
        await store.apply([given("taken")])
        failed: list[str] = []

        async def step(number: int) -> None:
            name = f"session {number}"
            changes: Changes = [save(name), said(1, session=name), given(f"i{number}", name)]
            if number % 20 == 7:
                changes.append(given("taken", name))
            try:
                await store.apply(changes)
                await store.apply([said(2, session=name), SettleInputs((f"i{number}",), DELIVERED, LATER)])
            except StoreError as error:
                assert "taken" in str(error)
                failed.append(name)

        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(step, number)
        assert sorted(failed) == sorted(f"session {number}" for number in range(7, 100, 20))
        for number in range(100):
            record = await store.session(f"session {number}")
            assert (record is None) == (number % 20 == 7)
            assert record is None or (record.messages, record.queued) == (2, 0)


async def a_cancelled_step_has_written_all_or_nothing(make_store: MakeStore) -> None:
    """SES-10a: at every await an input is in the queue or in the transcript, wherever the cancellation falls."""
    async with opened(make_store) as store:
        for turns in range(10):
            await store.apply([given(f"i{turns}")])
            with trio.CancelScope() as scope:

                async def cancel(scope: trio.CancelScope = scope, turns: int = turns) -> None:
                    for _ in range(turns):
                        await trio.lowlevel.checkpoint()
                    scope.cancel()

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(cancel)
                    await store.apply([said(turns + 1), SettleInputs((f"i{turns}",), DELIVERED, LATER)])
            stored = await store.input(f"i{turns}")
            assert stored is not None
            written = [each.seq for each in await store.messages("ann", limit=100)]
            assert (turns + 1 in written) == (stored.state is DELIVERED)


async def a_transaction_of_the_users_goes_beside_it(make_store: MakeStore) -> None:
    """SIG-2: sessions wait for it and are written after it; inside it they are refused at once."""
    async with opened(make_store) as store:
        order: list[str] = []
        inside = trio.Event()

        async def other() -> None:
            await inside.wait()
            await store.apply([save(), EmitSignals((new_signal("after it"),))])
            order.append("applied")

        writes: list[Callable[[], Awaitable[object]]] = [
            lambda: store.apply([save("bob")]),
            lambda: store.prune_sessions(0.0),
        ]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            async with store.transaction() as tx:
                inside.set()
                await trio.testing.wait_all_tasks_blocked()
                await store.emit([new_signal("in it")], tx=tx)
                assert await store.session("ann") is None
                for write in writes:
                    try:
                        with trio.fail_after(SOON):
                            await write()
                    except InsideTransaction:
                        pass
                    else:
                        raise AssertionError("a write inside a transaction was not refused")
                order.append("left")
        assert order == ["left", "applied"]
        assert [each.id for each in await store.pending(10)] == ["in it", "after it"]
        assert await store.session("bob") is None


async def a_store_that_is_opened_again_has_all_of_it(make_store: MakeStore) -> None:
    """SES-17: what is stored outlasts closing."""
    store = make_store()
    async with store.open():
        await store.apply([save(last_epoch=3), said(1), said(2), given("i"), summed(3, covers=2, keeps=(2,))])
        before = await all_of(store)
    async with store.open():
        assert await all_of(store) == before

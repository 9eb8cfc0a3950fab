"""Emit: one total order, payloads given back equal, once for a key, from any thread, all or nothing."""

from __future__ import annotations

import itertools
from typing import Any

import trio

from concorde_trio.errors import StoreError, UsageError
from concorde_trio.records import NewSignal, SignalState
from concorde_trio.signals.store import SignalFilter
from concorde_trio.testing.store_checks.samples import EMITTED, MakeStore, everything, new_signal, opened

PAYLOADS: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    2**63,
    -(2**200),
    0.1,
    -0.0,
    5e-324,
    1.7976931348623157e308,
    "",
    "null",
    'it\'s "quoted" \\ and\nbroken\t\x01\x7f\u2028',
    "日本語 🙂 \U0010ffff \ufffe",
    [],
    {},
    [[[[]]]],
    {"": {"key": None, "a b": [1, "2", 3.5, False]}, "ключ": "\ud7ff"},
    {"numbers": list(range(300))},
    "x" * 100_000,
)


async def signals_get_rising_seqs_in_the_order_of_the_calls(make_store: MakeStore) -> None:
    """SIG-3, Q-03, Q-07: with one frozen clock for all, 600 emits have no inversion."""
    async with opened(make_store) as store:
        ids = [f"{number * 7919 % 600:03}" for number in range(600)]  # ids that sort otherwise
        for each in ids:
            assert await store.emit([new_signal(each)]) == [each]
        found = await store.pending(600)
        assert [signal.id for signal in found] == ids
        assert all(one.seq < two.seq for one, two in itertools.pairwise(found))
        assert {signal.emitted_at for signal in found} == {EMITTED}


async def signals_of_one_emit_keep_the_order_given(make_store: MakeStore) -> None:
    """SIG-3: hundreds in one emit come out as they went in."""
    async with opened(make_store) as store:
        ids = [f"{number * 7919 % 1300:04}" for number in range(1300)]
        assert await store.emit([new_signal(each) for each in ids]) == ids
        assert [signal.id for signal in await store.pending(2000)] == ids


async def signals_of_many_tasks_have_one_order(make_store: MakeStore) -> None:
    """SIG-3: every task's own signals stand in the order of its calls, and no seq twice."""
    async with opened(make_store) as store:

        async def emit(task: int) -> None:
            for number in range(20):
                await store.emit([new_signal(f"{task}-{number}")])

        async with trio.open_nursery() as nursery:
            for task in range(20):
                nursery.start_soon(emit, task)
        found = await store.pending(500)
        assert len({signal.seq for signal in found}) == 400
        for task in range(20):
            mine = [signal.id for signal in found if signal.id.startswith(f"{task}-")]
            assert mine == [f"{task}-{number}" for number in range(20)]


async def a_signal_comes_back_as_it_was_emitted(make_store: MakeStore) -> None:
    """SIG-4, SIG-5: all its fields, pending."""
    async with opened(make_store) as store:
        new = NewSignal(
            id="one", kind="mail.came", payload='{"a":[1]}', emitted_at=EMITTED, key="k 1", retry_of="an older one"
        )
        await store.emit([new])
        record = await store.signal("one")
        assert record is not None
        assert (record.id, record.kind, record.payload) == ("one", "mail.came", {"a": [1]})
        assert (record.emitted_at, record.key, record.retry_of) == (EMITTED, "k 1", "an older one")
        assert record.state is SignalState.PENDING
        assert (record.phase, record.claimed_at, record.settled_at, record.error) == (None,) * 4
        assert (record.interrupted, record.holds) == (False, False)


async def a_payload_comes_back_equal_and_of_the_same_types(make_store: MakeStore) -> None:
    """SIG-5: null and all that JSON holds."""
    async with opened(make_store) as store:
        for payload in PAYLOADS:
            (id_,) = await store.emit([new_signal(payload=payload)])
            record = await store.signal(id_)
            assert record is not None
            assert record.payload == payload
            assert repr(record.payload) == repr(payload)


async def a_payload_that_was_read_is_the_readers_own(make_store: MakeStore) -> None:
    """SIG-5: who changes what was read changes nothing that is stored."""
    async with opened(make_store) as store:
        await store.emit([new_signal("one", {"list": [1]})])
        record = await store.signal("one")
        assert record is not None
        record.payload["list"].append(2)
        again = await store.signal("one")
        assert again is not None
        assert again.payload == {"list": [1]}


async def a_time_comes_back_to_the_last_bit(make_store: MakeStore) -> None:
    """SIG-5: emitted_at is the same float in every store."""
    async with opened(make_store) as store:
        times = [1_764_451_234 + number / 9973 for number in range(500)]
        await store.emit([NewSignal(id=str(at), kind="k", payload="1", emitted_at=at) for at in times])
        assert [signal.emitted_at for signal in await store.pending(500)] == times


async def a_second_emit_with_a_key_gives_the_first_id(make_store: MakeStore) -> None:
    """SIG-7: and stores nothing; another kind is another signal; without a key all are stored."""
    async with opened(make_store) as store:
        assert await store.emit([new_signal("one", "first", key="K")]) == ["one"]
        assert await store.emit([new_signal("two", "second", key="K")]) == ["one"]
        assert await store.emit([new_signal("three", kind="other", key="K")]) == ["three"]
        again = [new_signal("four", key="L"), new_signal("five", key="L"), new_signal("six", key="K"), new_signal("7")]
        assert await store.emit(again) == ["four", "four", "one", "7"]
        assert [signal.id for signal in await store.pending(10)] == ["one", "three", "four", "7"]
        record = await store.signal("one")
        assert record is not None
        assert record.payload == "first"


async def a_key_raced_for_by_many_tasks_is_stored_once(make_store: MakeStore) -> None:
    """SIG-7: and all of them get the same id."""
    async with opened(make_store) as store:
        ids: list[str] = []

        async def emit(number: int) -> None:
            ids.extend(await store.emit([new_signal(f"{number}", key="K")]))

        async with trio.open_nursery() as nursery:
            for number in range(30):
                nursery.start_soon(emit, number)
        (stored,) = await store.pending(10)
        assert ids == [stored.id] * 30


async def an_id_that_is_stored_is_refused_and_nothing_is_written(make_store: MakeStore) -> None:
    """SIG-1: an emit is one commit, whole or not at all."""
    async with opened(make_store) as store:
        await store.emit([new_signal("one", 1)])
        before = await everything(store)
        for signals in ([new_signal("two"), new_signal("one", 2)], [new_signal("three"), new_signal("three")]):
            try:
                await store.emit(signals)
            except StoreError:
                pass
            else:
                raise AssertionError("an id was stored twice")
        assert await everything(store) == before


async def a_bad_emit_fails_alone_in_a_crowd(make_store: MakeStore) -> None:
    """REC-5: one bad row never fails the commit of others."""
    async with opened(make_store) as store:
        await store.emit([new_signal("taken")])
        failed: list[int] = []

        async def emit(number: int) -> None:
            try:
                await store.emit([new_signal("taken" if number % 10 == 3 else f"{number}")])
            except StoreError:
                failed.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(emit, number)
        assert sorted(failed) == [3, 13, 23, 33, 43]
        assert len(await store.pending(100)) == 46


async def an_emit_of_nothing_gives_nothing(make_store: MakeStore) -> None:
    """SIG-1."""
    async with opened(make_store) as store:
        assert await store.emit([]) == []
        assert await store.pending(10) == []


async def emit_sync_stores_from_any_thread(make_store: MakeStore) -> None:
    """SIG-8: from other threads and from this one, in order, once for a key."""
    async with opened(make_store) as store:
        assert store.emit_sync([new_signal("one"), new_signal("two", key="K")]) == ["one", "two"]

        def emit(thread: int) -> None:
            for number in range(5):
                store.emit_sync([new_signal(f"{thread}-{number}")])
                assert store.emit_sync([new_signal(f"{thread}-{number}-again", key="K")]) == ["two"]

        async with trio.open_nursery() as nursery:
            for thread in range(4):
                nursery.start_soon(trio.to_thread.run_sync, emit, thread)
        found = [signal.id for signal in await store.pending(100)]
        assert found[:2] == ["one", "two"]
        assert len(found) == 22
        for thread in range(4):
            mine = [each for each in found if each.startswith(f"{thread}-")]
            assert mine == [f"{thread}-{number}" for number in range(5)]


async def emit_sync_needs_no_open_store(make_store: MakeStore) -> None:
    """SIG-8: what it stored is there once the store is opened."""
    store = make_store()
    assert await trio.to_thread.run_sync(store.emit_sync, [new_signal("one")]) == ["one"]
    async with store.open():
        assert [signal.id for signal in await store.pending(10)] == ["one"]


async def what_was_stored_is_there_after_opening_again(make_store: MakeStore) -> None:
    """SIG-1: with the queue's name, and seqs go on from where they were."""
    store = make_store()
    async with store.open():
        await store.emit([new_signal("one")])
        before, name = await everything(store), store.queue
    assert name.isascii()
    assert name.isprintable()
    assert " " not in name
    async with store.open():
        assert await everything(store) == before
        assert store.queue == name
        await store.emit([new_signal("two")])
        one, two = await store.pending(10)
        assert one.seq < two.seq


async def a_store_is_opened_once_and_used_while_open(make_store: MakeStore) -> None:
    """The protocol: misuse is loud at once."""
    store = make_store()
    try:
        await store.emit([new_signal("one")])
    except UsageError:
        pass
    else:
        raise AssertionError("emit worked on a store that is not open")
    async with store.open():
        try:
            async with store.open():
                raise AssertionError("a store was opened twice")
        except UsageError:
            pass
        await store.emit([new_signal("two")])
        assert [signal.id for signal in await store.signals(SignalFilter())] == ["two"]


async def a_cancelled_emit_has_stored_all_or_nothing(make_store: MakeStore) -> None:
    """SIG-1, RUN-6: wherever the cancellation falls; and an emit that gave its ids has stored them."""
    async with opened(make_store) as store:
        told: set[str] = set()
        for turns in range(8):
            for number in range(5):
                ids = [f"{turns}-{number}-{each}" for each in range(3)]
                with trio.CancelScope() as scope:

                    async def emit(ids: list[str] = ids) -> None:
                        told.update(await store.emit([new_signal(each) for each in ids]))

                    async def cancel(scope: trio.CancelScope = scope, turns: int = turns) -> None:
                        for _ in range(turns):
                            await trio.lowlevel.checkpoint()
                        scope.cancel()

                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(emit)
                        nursery.start_soon(cancel)
        await store.emit([new_signal("last")])
        stored = [signal.id for signal in await store.pending(1000)]
        assert stored[-1] == "last"
        assert told <= set(stored)
        groups = {each.rsplit("-", 1)[0] for each in stored[:-1]}
        assert stored[:-1] == [f"{group}-{each}" for group in sorted(groups) for each in range(3)]

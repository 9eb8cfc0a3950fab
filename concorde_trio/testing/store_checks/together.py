"""Transactions, wakeups, ownership: what a store does between tasks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio
import trio.testing

from concorde_trio.errors import InsideTransaction, QueueTaken, TransactionOver, UsageError
from concorde_trio.records import RequestKind
from concorde_trio.testing.store_checks.samples import MakeStore, claimed, emitted, new_signal, opened

SOON = 10.0
"""Seconds until a check that waits for something gives up."""


class _Planned(Exception):
    pass


async def a_transaction_stores_its_signals_when_it_commits(make_store: MakeStore) -> None:
    """SIG-2, SIG-3: the ids come at once, the signals with the commit, in the order of the calls."""
    async with opened(make_store) as store:
        async with store.transaction() as tx:
            assert await store.emit([new_signal("b"), new_signal("a", key="K")], tx=tx) == ["b", "a"]
            assert await store.emit([new_signal("x", key="K"), new_signal("c")], tx=tx) == ["a", "c"]
            assert await store.pending(10) == []
        assert [signal.id for signal in await store.pending(10)] == ["b", "a", "c"]
        async with store.transaction() as tx:
            assert await store.emit([new_signal("d", key="K")], tx=tx) == ["a"]
        assert len(await store.pending(10)) == 3


async def a_transaction_that_raises_stores_nothing(make_store: MakeStore) -> None:
    """SIG-2: and the exception travels as it is; the key is free again."""
    async with opened(make_store) as store:
        try:
            async with store.transaction() as tx:
                await store.emit([new_signal("a", key="K")], tx=tx)
                raise _Planned
        except _Planned:
            pass
        assert await store.pending(10) == []
        assert await store.emit([new_signal("b", key="K")]) == ["b"]


async def a_cancelled_transaction_stores_nothing(make_store: MakeStore) -> None:
    """SIG-2."""
    async with opened(make_store) as store:
        with trio.CancelScope() as scope:
            async with store.transaction() as tx:
                await store.emit([new_signal("a")], tx=tx)
                scope.cancel()
                await trio.lowlevel.checkpoint()
        assert await store.pending(10) == []
        await emitted(store, "b")


async def a_rollback_wakes_nobody(make_store: MakeStore) -> None:
    """SIG-2: a commit does."""
    async with opened(make_store) as store:
        woken: list[str] = []
        async with store.on_change(lambda: woken.append("by the rollback")):
            try:
                async with store.transaction() as tx:
                    await store.emit([new_signal("a")], tx=tx)
                    raise _Planned
            except _Planned:
                pass
            await store.apply([])  # what a rollback would have sent comes before this returns
            await trio.testing.wait_all_tasks_blocked()
            assert woken == []
        event = trio.Event()
        async with store.on_change(event.set):
            async with store.transaction() as tx:
                await store.emit([new_signal("a")], tx=tx)
            with trio.fail_after(SOON):
                await event.wait()


async def others_wait_for_a_transaction_and_then_go_on(make_store: MakeStore) -> None:
    """SIG-2: an emit of another task is written after it."""
    async with opened(make_store) as store:
        inside, written = trio.Event(), []

        async def other() -> None:
            await inside.wait()
            written.extend(await store.emit([new_signal("after it")]))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            async with store.transaction() as tx:
                await store.emit([new_signal("in it")], tx=tx)
                inside.set()
                await trio.testing.wait_all_tasks_blocked()
                await store.emit([new_signal("in it too")], tx=tx)
                assert written == []
        assert [signal.id for signal in await store.pending(10)] == ["in it", "in it too", "after it"]


async def what_would_wait_for_itself_is_refused(make_store: MakeStore) -> None:
    """SIG-2: writes without tx inside a transaction, also in tasks that it started, raise at once."""
    async with opened(make_store) as store:
        writes: list[Callable[[], Awaitable[object]]] = [
            lambda: store.emit([new_signal()]),
            lambda: store.apply([]),
            lambda: store.request(RequestKind.CANCEL_RUN, "r"),
            lambda: store.prune(0.0),
            lambda: store.transaction().__aenter__(),
        ]

        async def refused(write: Callable[[], Awaitable[object]]) -> None:
            assert store.in_transaction()
            try:
                with trio.fail_after(SOON):
                    await write()
            except InsideTransaction:
                return
            raise AssertionError("a write inside a transaction was not refused")

        assert not store.in_transaction()
        async with store.transaction() as tx:
            for write in writes:
                await refused(write)
            try:
                store.emit_sync([new_signal()])
            except InsideTransaction:
                pass
            else:
                raise AssertionError("emit_sync inside a transaction was not refused")
            async with trio.open_nursery() as nursery:  # noqa: ASYNC112  A child task is the point.
                nursery.start_soon(refused, writes[0])
            await store.emit([new_signal("a")], tx=tx)
        assert not store.in_transaction()
        assert [signal.id for signal in await store.pending(10)] == ["a"]


async def a_task_of_a_transaction_that_is_over_is_free(make_store: MakeStore) -> None:
    """SIG-2: a task that outlives the transaction it was started in may emit."""
    async with opened(make_store) as store:
        over = trio.Event()

        async def later() -> None:
            await over.wait()
            assert not store.in_transaction()
            await store.emit([new_signal("later")])

        async with trio.open_nursery() as nursery:
            async with store.transaction():
                nursery.start_soon(later)
            over.set()
        assert [signal.id for signal in await store.pending(10)] == ["later"]


async def another_stores_transaction_is_none_of_ours(make_store: MakeStore) -> None:
    """SIG-2: inside it this store can be written; its tx is refused here."""
    async with opened(make_store) as one, opened(make_store) as two, two.transaction() as tx:
        assert not one.in_transaction()
        await one.emit([new_signal("a")])
        try:
            await one.emit([new_signal("b")], tx=tx)
        except UsageError:
            pass
        else:
            raise AssertionError("a transaction of another store was taken")
        assert [signal.id for signal in await one.pending(10)] == ["a"]


async def a_transaction_ends_after_its_time(make_store: MakeStore) -> None:
    """SIG-2: it is rolled back, its body cancelled, and the limit named."""
    async with opened(make_store) as store:
        try:
            async with store.transaction(time_limit=0.05) as tx:
                await store.emit([new_signal("a")], tx=tx)
                await trio.sleep_forever()
        except TransactionOver as error:
            assert "0.05" in str(error)
        else:
            raise AssertionError("a transaction outlived its time")
        assert await store.pending(10) == []
        await emitted(store, "b")


async def a_transaction_that_is_over_is_refused(make_store: MakeStore) -> None:
    """SIG-2: after commit and after rollback."""
    async with opened(make_store) as store:
        async with store.transaction() as tx:
            await store.emit([new_signal("a")], tx=tx)
        try:
            await store.emit([new_signal("b")], tx=tx)
        except TransactionOver:
            pass
        else:
            raise AssertionError("a transaction was used after its commit")
        assert [signal.id for signal in await store.pending(10)] == ["a"]


async def an_emit_wakes_at_once(make_store: MakeStore) -> None:
    """SIG-6: so does one from another thread, and an operator's request; the signal is there by then."""
    async with opened(make_store) as store:
        ways: list[Callable[[], Awaitable[object]]] = [
            lambda: store.emit([new_signal()]),
            lambda: trio.to_thread.run_sync(store.emit_sync, [new_signal()]),
            lambda: store.request(RequestKind.CANCEL_RUN, "r"),
        ]
        for way in ways:
            event = trio.Event()
            async with store.on_change(event.set):
                before = len(await store.pending(100)) + len(await store.requests())
                await way()
                with trio.fail_after(SOON):
                    await event.wait()
                assert len(await store.pending(100)) + len(await store.requests()) == before + 1


async def every_listener_is_woken_until_it_leaves(make_store: MakeStore) -> None:
    """SIG-6."""
    async with opened(make_store) as store:
        one, two, left = trio.Event(), trio.Event(), []
        async with store.on_change(lambda: left.append(1)):
            pass
        async with store.on_change(one.set), store.on_change(two.set):
            await emitted(store, "a")
            with trio.fail_after(SOON):
                await one.wait()
                await two.wait()
        assert left == []


async def a_queue_has_one_worker(make_store: MakeStore) -> None:
    """REC-1: a second one is refused with a sentence that says who has it, until the first has left."""
    async with opened(make_store) as store:
        async with store.own():
            try:
                async with store.own():
                    raise AssertionError("two workers own one queue")
            except QueueTaken as error:
                assert "worker" in str(error)
            await claimed(store, "s")
        async with store.own():
            pass


async def a_second_worker_waits_if_asked_to(make_store: MakeStore) -> None:
    """REC-1: told once what it waits for, and in when the first has left; cancelled, it holds nothing."""
    async with opened(make_store) as store:
        told: list[str] = []
        order: list[str] = []
        waits = trio.Event()

        def waiting(sentence: str) -> None:
            told.append(sentence)
            waits.set()

        async def second() -> None:
            async with store.own(wait=True, waiting=waiting):
                order.append("second")

        with trio.fail_after(SOON):
            async with trio.open_nursery() as nursery, store.own():
                nursery.start_soon(second)
                await waits.wait()
                with trio.move_on_after(0):
                    async with store.own(wait=True):
                        raise AssertionError("two workers own one queue")
                order.append("first")
        assert order == ["first", "second"]
        assert len(told) == 1

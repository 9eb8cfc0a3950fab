"""Schedules are put, listed, removed and advanced; what they emit is stored with how far they are, or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import attrs
import trio

from concorde_trio._sansio.schedules import Advance, ScheduleRecord
from concorde_trio.errors import InsideTransaction, StoreError
from concorde_trio.records import NewSignal
from concorde_trio.signals.schedule_store import Fire, Fired, ScheduleStore
from concorde_trio.signals.store import SignalStore
from concorde_trio.testing.store_checks.samples import new_signal

FIRST, THEN, AFTER = 1_764_451_260.0, 1_764_451_320.25, 1_764_451_380.1234567
"""Instants, one that no shorter number stands for."""


class QueueStore(SignalStore, ScheduleStore, Protocol):
    """A store of signals and of schedules."""


MakeStore = Callable[[], QueueStore]
Check = Callable[[MakeStore], Awaitable[None]]


@asynccontextmanager
async def opened(make_store: MakeStore) -> AsyncIterator[QueueStore]:
    """A fresh store, open."""
    store = make_store()
    async with store.open():
        yield store


def by_cron(name: str = "morning", **fields: Any) -> ScheduleRecord:
    """A schedule by cron."""
    made: dict[str, Any] = {"kind": "day.began", "payload": '{"n":1}', "cron": "0 7 * * *", "zone": "Europe/Berlin"}
    made |= {"revision": f"r-{name}", "changed_at": FIRST - 0.1234567, "next_at": FIRST}
    return ScheduleRecord(name=name, **made | fields)


def once(name: str = "gifts", **fields: Any) -> ScheduleRecord:
    """A schedule at an instant."""
    return by_cron(name, **{"cron": None, "zone": None, "at": FIRST} | fields)


def fire(record: ScheduleRecord, signal: NewSignal | None = None, **advance: Any) -> Fire:
    """The row goes on to its next instant."""
    assert record.next_at is not None
    made: dict[str, Any] = {"due": record.next_at if signal else None, "next_at": THEN}
    return Fire(
        name=record.name,
        revision=record.revision,
        next_at=record.next_at,
        advance=Advance(**made | advance),
        signal=signal,
    )


async def schedules_are_given_back_as_they_were_put_by_name(make_store: MakeStore) -> None:
    """SCH-1: every field, in the order of names."""
    async with opened(make_store) as store:
        assert await store.schedules() == []
        for record in (by_cron("b"), once("a"), by_cron("C", payload='"żółw 🙂"', next_at=AFTER)):
            assert await store.put_schedule(record) is True
        assert await store.schedules() == [
            by_cron("C", payload='"żółw 🙂"', next_at=AFTER),
            once("a"),
            by_cron("b"),
        ]


async def the_same_again_changes_nothing(make_store: MakeStore) -> None:
    """SCH-5: not even when it says another revision, another time of change and another next instant."""
    async with opened(make_store) as store:
        for record in (by_cron(), once()):
            await store.put_schedule(record)
            again = attrs.evolve(record, revision="other", changed_at=AFTER, next_at=AFTER)
            assert await store.put_schedule(again) is False
        assert await store.schedules() == [once(), by_cron()]


async def another_one_of_its_name_replaces_it_as_a_whole(make_store: MakeStore) -> None:
    """SCH-5: what was fired and missed of the old one is not the new one's."""
    async with opened(make_store) as store:
        await store.put_schedule(by_cron())
        await store.fire_schedules([fire(by_cron(), new_signal("s1"), missed=3, missed_to=FIRST - 60)])
        changes: list[dict[str, Any]] = [
            {"kind": "other"},
            {"payload": "null"},
            {"cron": "0 8 * * *"},
            {"zone": "UTC"},
            {"cron": None, "zone": None, "at": FIRST},
            {"cron": None, "zone": None, "at": THEN},
        ]
        for number, change in enumerate(changes):
            new = by_cron(revision=str(number), next_at=AFTER, **change)
            assert await store.put_schedule(new) is True, change
            assert await store.schedules() == [new]


async def a_removed_schedule_is_gone_and_its_signals_stay(make_store: MakeStore) -> None:
    """SCH-5: it says whether there was one."""
    async with opened(make_store) as store:
        assert await store.remove_schedule("morning") is False
        await store.put_schedule(by_cron())
        await store.put_schedule(once())
        await store.fire_schedules([fire(by_cron(), new_signal("s1"))])
        assert await store.remove_schedule("morning") is True
        assert await store.remove_schedule("morning") is False
        assert await store.schedules() == [once()]
        assert [each.id for each in await store.pending(10)] == ["s1"]


async def a_signal_and_how_far_its_schedule_is_are_stored_together(make_store: MakeStore) -> None:
    """SCH-4: several at once keep their order (SIG-3)."""
    async with opened(make_store) as store:
        await store.put_schedule(by_cron())
        await store.put_schedule(once())
        fires = [
            fire(by_cron(), new_signal("s2", key="k2"), missed=2, missed_to=FIRST - 60),
            fire(once(), new_signal("s1"), next_at=None),
        ]
        assert await store.fire_schedules(fires) == [Fired("s2"), Fired("s1")]
        assert [each.id for each in await store.pending(10)] == ["s2", "s1"]
        assert await store.schedules() == [
            attrs.evolve(once(), next_at=None, fired_at=FIRST, signal_id="s1"),
            attrs.evolve(by_cron(), next_at=THEN, fired_at=FIRST, signal_id="s2", missed=2, missed_at=FIRST - 60),
        ]


async def missed_instants_are_added_up_and_what_was_fired_stays(make_store: MakeStore) -> None:
    """SCH-3: an advance without a signal."""
    async with opened(make_store) as store:
        await store.put_schedule(by_cron())
        await store.fire_schedules([fire(by_cron(), new_signal("s1"), missed=2, missed_to=FIRST - 60)])
        now = by_cron(next_at=THEN)
        assert await store.fire_schedules([fire(now, missed=5, missed_to=THEN, next_at=AFTER)]) == [Fired(None)]
        assert await store.schedules() == [
            attrs.evolve(now, next_at=AFTER, fired_at=FIRST, signal_id="s1", missed=7, missed_at=THEN)
        ]
        assert [each.id for each in await store.pending(10)] == ["s1"]


async def a_row_that_is_not_what_it_was_emits_nothing(make_store: MakeStore) -> None:
    """SCH-4: replaced, removed, or fired by somebody else; the others of the same commit go on."""
    async with opened(make_store) as store:
        await store.put_schedule(by_cron("fired"))
        await store.fire_schedules([fire(by_cron("fired"), new_signal("s1"))])
        await store.put_schedule(by_cron("replaced"))
        await store.put_schedule(by_cron("replaced", payload="null", revision="new"))
        await store.put_schedule(by_cron("good"))
        names = ("fired", "replaced", "removed", "good")
        fires = [fire(by_cron(name), new_signal(f"s-{name}"), missed=1, missed_to=FIRST) for name in names]
        before = {record.name: record for record in await store.schedules()}
        assert await store.fire_schedules(fires) == [None, None, None, Fired("s-good")]
        assert [each.id for each in await store.pending(10)] == ["s1", "s-good"]
        after = {record.name: record for record in await store.schedules()}
        assert [name for name in after if after[name] != before[name]] == ["good"]


async def a_key_that_is_stored_already_gives_the_first_signal(make_store: MakeStore) -> None:
    """SCH-4: an instant is one signal, however often it is fired (SIG-7)."""
    async with opened(make_store) as store:
        await store.put_schedule(by_cron())
        await store.fire_schedules([fire(by_cron(), new_signal("s1", key="k"))])
        again = fire(by_cron(next_at=THEN), new_signal("s2", key="k"), next_at=AFTER)
        assert await store.fire_schedules([again]) == [Fired("s1")]
        assert [each.id for each in await store.pending(10)] == ["s1"]
        (record,) = await store.schedules()
        assert (record.signal_id, record.next_at) == ("s1", AFTER)


async def on_an_error_nothing_is_emitted_and_nothing_advanced(make_store: MakeStore) -> None:
    """SCH-4: here the id of a signal is taken."""
    async with opened(make_store) as store:
        await store.put_schedule(by_cron("a"))
        await store.put_schedule(by_cron("b"))
        await store.emit([new_signal("taken")])
        try:
            await store.fire_schedules([fire(by_cron("a"), new_signal("s1")), fire(by_cron("b"), new_signal("taken"))])
        except StoreError:
            pass
        else:
            raise AssertionError("a signal with an id that is stored already was written")
        assert await store.schedules() == [by_cron("a"), by_cron("b")]
        assert [each.id for each in await store.pending(10)] == ["taken"]


async def what_a_schedule_emits_wakes_the_worker(make_store: MakeStore) -> None:
    """SCH-4: as an emit does (SIG-6)."""
    async with opened(make_store) as store:
        await store.put_schedule(by_cron())
        woken = trio.Event()
        async with store.on_change(woken.set):
            await store.fire_schedules([fire(by_cron(), new_signal("s1"))])
            with trio.fail_after(5):
                await woken.wait()


async def a_change_of_schedules_inside_a_transaction_raises_at_once(make_store: MakeStore) -> None:
    """SIG-2: it would wait for the transaction that it stands in."""
    async with opened(make_store) as store:
        await store.put_schedule(by_cron())
        async with store.transaction():
            for change in (
                store.put_schedule(once()),
                store.remove_schedule("morning"),
                store.fire_schedules([fire(by_cron())]),
            ):
                try:
                    await change
                except InsideTransaction:
                    continue
                raise AssertionError("it waited for itself, or did what the transaction could not undo")
        assert await store.schedules() == [by_cron()]

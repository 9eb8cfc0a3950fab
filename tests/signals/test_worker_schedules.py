"""A worker that fires schedules: on a virtual clock, with a wall clock that can be set."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from concorde_trio import Gateway, Prompt, RunOutcome, Schedule
from concorde_trio.errors import InvalidName, InvalidSchedule, InvalidValue, StoreError, UnknownId, UsageError
from concorde_trio.events import Event, ScheduleEvent, ScheduleFired, ScheduleMissed
from concorde_trio.records import RunPrompt, Signal
from concorde_trio.runtimes.function import FunctionRuntime
from concorde_trio.signals.options import WorkerOptions
from concorde_trio.signals.schedule import checked
from concorde_trio.signals.schedules import Schedules
from concorde_trio.signals.worker import SignalWorker, open_worker
from concorde_trio.stores import MemoryStore, SqliteStore

HOUR = 3600.0
SEVEN = datetime(2026, 3, 28, 7, tzinfo=UTC).timestamp()
HOURLY = "0 * * * *"


@attrs.define
class House:
    """A queue, its wall clock, and what was heard. ``ahead``: seconds of the wall clock before Trio's."""

    store: Any = attrs.field(factory=MemoryStore)
    ahead: float = SEVEN
    handled: list[tuple[str, Any, float]] = attrs.field(factory=list)
    events: list[Event] = attrs.field(factory=list)
    reads: int = 0
    gate: trio.Event = attrs.field(factory=trio.Event)

    def now(self) -> float:
        """The wall clock."""
        self.reads += 1
        return self.ahead + trio.current_time()

    def handle(self, signal: Signal) -> list[Prompt]:
        """Every kind's handler."""
        self.handled.append((signal.kind, signal.payload, signal.emitted_at))
        return [Prompt(session="s", text="wait")] if signal.kind == "long" else []

    async def run(self, prompt: RunPrompt) -> RunOutcome:
        """Runs until the gate opens."""
        await self.gate.wait()
        return RunOutcome.ok()

    @asynccontextmanager
    async def worker(self, **options: Any) -> AsyncIterator[SignalWorker]:
        """A worker, while the block runs; its events are heard from the first on."""
        handlers = {kind: self.handle for kind in ("tick", "tock", "long")}
        chosen = WorkerOptions(wall_clock=self.now, **{"sweep": None} | options)
        worker = SignalWorker(self.store, FunctionRuntime(self.run), handlers, chosen)
        worker.bus.call(self.events.append)
        async with self.store.open(), self.store.own(), trio.open_nursery() as nursery:
            await nursery.start(worker.run)
            yield worker
            worker.stop("drain")

    def told(self, kind: type[ScheduleEvent]) -> list[Any]:
        """The events of that class."""
        return [event for event in self.events if isinstance(event, kind)]

    def hours(self) -> list[float]:
        """When signals were emitted, in hours after seven."""
        return [(at - SEVEN) / HOUR for _, _, at in self.handled]


async def test_it_fires_at_each_instant_and_the_signal_is_like_any_other(autojump_clock: MockClock) -> None:
    """SCH-1, SCH-4: by cron and at an instant; the row says what came of it."""
    house = House()
    async with house.worker() as worker:
        assert await worker.schedule("hourly", "tick", {"n": 1}, cron=HOURLY) is True
        assert await worker.schedule("once", "tock", at=SEVEN + 1.5 * HOUR) is True
        await trio.sleep(3.5 * HOUR)
        once, hourly = reversed(await worker.schedules.all())
        record = await worker.store.signal(hourly.signal_id or "")
    assert house.handled == [
        ("tick", {"n": 1}, SEVEN + HOUR),
        ("tock", None, SEVEN + 1.5 * HOUR),
        ("tick", {"n": 1}, SEVEN + 2 * HOUR),
        ("tick", {"n": 1}, SEVEN + 3 * HOUR),
    ]
    assert [(each.schedule, each.due) for each in house.told(ScheduleFired)] == [
        ("hourly", SEVEN + HOUR),
        ("once", SEVEN + 1.5 * HOUR),
        ("hourly", SEVEN + 2 * HOUR),
        ("hourly", SEVEN + 3 * HOUR),
    ]
    assert record is not None
    assert record.key == "schedule:hourly@2026-03-28T10:00:00Z"
    assert (hourly.next_at, hourly.fired_at, hourly.missed) == (SEVEN + 4 * HOUR, SEVEN + 3 * HOUR, 0)
    assert (once.next_at, once.fired_at) == (None, SEVEN + 1.5 * HOUR)


async def test_local_time_is_kept_over_a_change_of_the_clocks(autojump_clock: MockClock) -> None:
    """SCH-2: seven in Berlin is an hour earlier from the last Sunday in March on."""
    house = House()
    async with house.worker(schedules=[Schedule("morning", "tick", cron="0 7 * * *", zone="Europe/Berlin")]) as worker:
        (before,) = await worker.schedules.all()
        await trio.sleep(23 * HOUR)
        (after,) = await worker.schedules.all()
    times = (before.next_at, after.next_at)
    assert before.next_at == after.fired_at
    local = [datetime.fromtimestamp(at, UTC).isoformat()[:16] for at in times if at is not None]
    assert local == ["2026-03-29T05:00", "2026-03-30T05:00"]


async def test_what_came_while_nobody_worked_was_missed_and_is_told(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """SCH-3: event, log and row; the next instant fires as ever."""
    house = House()
    async with house.worker(schedules=[Schedule("hourly", "tick", cron=HOURLY)]):
        await trio.sleep(1.5 * HOUR)
    await trio.sleep(4 * HOUR)
    with caplog.at_level(logging.WARNING, "concorde_trio.schedules"):
        async with house.worker() as worker:
            await trio.sleep(HOUR)
            (record,) = await worker.schedules.all()
    assert house.hours() == [1, 6]
    (missed,) = house.told(ScheduleMissed)
    assert (missed.schedule, missed.missed, missed.since) == ("hourly", 4, SEVEN + 2 * HOUR)
    assert (record.missed, record.missed_at) == (4, SEVEN + 5 * HOUR)
    assert "hourly missed 4 of its instants, from 2026-03-28T09:00:00Z on" in caplog.text


async def test_a_short_pause_loses_nothing(autojump_clock: MockClock) -> None:
    """SCH-3: a restart over an instant fires it late, within the grace."""
    house = House()
    async with house.worker(schedules=[Schedule("hourly", "tick", cron=HOURLY)], schedule_grace=60.0):
        await trio.sleep(HOUR - 20)
    await trio.sleep(50)
    async with house.worker():
        await trio.sleep(1)
    assert house.handled == [("tick", None, SEVEN + HOUR + 30)]
    assert house.told(ScheduleMissed) == []


@pytest.mark.parametrize("jump", [5.0 * HOUR, -5.0 * HOUR, 400 * 24 * HOUR, -400 * 24 * HOUR])
async def test_a_clock_that_is_set_fires_nothing_twice_and_silences_nothing(
    jump: float, autojump_clock: MockClock
) -> None:
    """SCH-3, SCH-7: it is noticed within half a minute, whatever was waited for."""
    house = House()
    async with house.worker(schedules=[Schedule("hourly", "tick", cron=HOURLY)]) as worker:
        await trio.sleep(2.5 * HOUR)
        house.ahead += jump
        await trio.sleep(31)
        (record,) = await worker.schedules.all()
        assert record.next_at is not None
        assert 0 < record.next_at - house.now() <= HOUR
        await trio.sleep(2 * HOUR)
        keys = {record.key for record in await worker.store.pending(100)}
    emitted = [at for _, _, at in house.handled]
    assert emitted[:2] == [SEVEN + HOUR, SEVEN + 2 * HOUR]
    assert len(emitted) == 4
    assert all(at % HOUR < 31 for at in emitted)
    assert keys == set()
    assert bool(house.told(ScheduleMissed)) == (jump > 0)


async def test_a_clock_that_is_set_back_and_forth_fires_an_instant_once(autojump_clock: MockClock) -> None:
    """SCH-3, SCH-4: by its key."""
    house = House()
    async with house.worker(schedules=[Schedule("hourly", "tick", cron=HOURLY)]):
        await trio.sleep(1.01 * HOUR)
        for back in (0.1 * HOUR, 3 * HOUR):
            house.ahead -= back
            await trio.sleep(0.2 * HOUR if back < HOUR else 3.5 * HOUR)
    dues = [event.due for event in house.told(ScheduleFired)]
    assert len(dues) == len(set(dues))
    assert SEVEN + HOUR in dues


async def test_the_same_again_changes_nothing_and_another_one_replaces_it(autojump_clock: MockClock) -> None:
    """SCH-5: code that declares its schedules at every start does no harm."""
    house = House()
    hourly = Schedule("hourly", "tick", cron=HOURLY)
    async with house.worker(schedules=[hourly]) as worker:
        await trio.sleep(1.5 * HOUR)
        (before,) = await worker.schedules.all()
        assert await worker.schedules.put(hourly) is False
        assert await worker.schedule("hourly", "tick", cron="  0  *  *  * * ", zone="UTC") is False
        assert await worker.schedules.all() == [before]
    async with house.worker(schedules=[hourly]) as worker:
        assert await worker.schedules.all() == [before]
        assert await worker.schedule("hourly", "tock", cron="30 * * * *") is True
        await trio.sleep(1.1 * HOUR)
        await worker.schedules.remove("hourly")
        await trio.sleep(3 * HOUR)
        with pytest.raises(UnknownId, match="there is no schedule 'hourly'"):
            await worker.schedules.remove("hourly")
        with pytest.raises(UnknownId):
            await worker.schedules.one("hourly")
    assert [(kind, at) for kind, _, at in house.handled] == [("tick", SEVEN + HOUR), ("tock", SEVEN + 2.5 * HOUR)]
    assert [event.name for event in house.told(ScheduleEvent)] == [
        *("SchedulePut", "ScheduleFired", "SchedulePut", "ScheduleFired", "ScheduleRemoved"),
    ]


async def test_one_that_was_put_beside_the_worker_is_found_by_its_sweep(autojump_clock: MockClock) -> None:
    """SCH-1: by another process, into the same database."""
    house = House()
    async with house.worker(sweep=5.0):
        aside = Schedules(house.store, WorkerOptions(wall_clock=house.now))
        await trio.sleep(1)
        await aside.put(Schedule("soon", "tick", at=house.now() + 6))
        await trio.sleep(6.5)
        assert house.handled == [("tick", None, SEVEN + 7)]
        await aside.put(Schedule("never", "tock", at=house.now() + 20))
        await trio.sleep(10)
        await aside.remove("never")
        await trio.sleep(30)
    assert len(house.handled) == 1


async def test_without_schedules_no_timer_is_set_and_with_one_it_is_rare(autojump_clock: MockClock) -> None:
    """SCH-7: an idle queue wakes for nothing, and one that waits for months only to look at the clock."""
    house = House()
    async with house.worker(sweep=None, watchdog=0) as worker:
        await trio.testing.wait_all_tasks_blocked()
        before, house.reads = house.reads, 0
        await trio.sleep(24 * HOUR)
        assert house.reads == 0, before
        assert trio.lowlevel.current_statistics().seconds_to_next_deadline == float("inf")
        await worker.schedule("yearly", "tick", cron="0 0 1 1 *")
        house.reads = 0
        await trio.sleep(HOUR)
        assert 0 < house.reads <= 121


async def test_it_goes_on_firing_while_the_worker_drains(autojump_clock: MockClock) -> None:
    """SCH-1: what falls due during a long drain is there for the next worker, and not missed."""
    house = House()
    async with (
        house.worker(schedules=[Schedule("hourly", "tick", cron=HOURLY)]) as worker,
        trio.open_nursery() as nursery,
    ):
        await worker.emit("long")
        await trio.sleep(1)
        worker.stop("drain")

        async def open_gate() -> None:
            await trio.sleep(1.5 * HOUR)
            house.gate.set()

        nursery.start_soon(open_gate)
    assert house.handled == [("long", None, SEVEN)]
    async with house.worker():
        await trio.sleep(1)
    assert house.handled[1:] == [("tick", None, SEVEN + HOUR)]


async def test_two_that_are_due_together_come_in_the_order_of_their_names(autojump_clock: MockClock) -> None:
    """SCH-4, SIG-3: and what was due first comes first."""
    house = House()
    async with house.worker() as worker:
        for name in ("b", "c", "a"):
            await worker.schedule(name, "tick", name, cron=HOURLY)
        await worker.schedule("d", "tock", "d", at=SEVEN + HOUR - 3)
        await trio.sleep(HOUR - 10)
        house.ahead += 20
        await trio.sleep(31)
    assert [payload for _, payload, _ in house.handled] == ["d", "a", "b", "c"]


async def test_one_at_an_instant_that_has_passed_is_refused_but_where_it_is_there_already(
    autojump_clock: MockClock,
) -> None:
    """SCH-5, SCH-6: a program that declares one is started again long after, and one that comes too late says so."""
    house = House()
    gifts = Schedule("gifts", "tick", at=datetime.fromtimestamp(SEVEN + 60, UTC))
    async with house.worker(schedules=[gifts]) as worker:
        await trio.sleep(100)
        assert await worker.schedules.put(gifts) is False
        with pytest.raises(InvalidSchedule, match="2026-03-28T07:00:30Z has passed: it is 2026-03-28T07:01:40Z now"):
            await worker.schedule("late", "tick", at=SEVEN + 30)
    async with house.worker(schedules=[gifts, Schedule("late", "tick", at=SEVEN + 1)]) as worker:
        await trio.sleep(1)
        late = await worker.schedules.one("late")
    assert house.handled == [("tick", None, SEVEN + 60)]
    assert (late.missed, late.next_at) == (1, None)


async def test_one_that_cannot_be_understood_here_stops_no_other(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """SCH-3: a zone that is gone from the system; the log says it once."""
    house = House()
    async with house.store.open():
        good = checked(Schedule("good", "tick", cron=HOURLY), SEVEN)
        await house.store.put_schedule(good)
        await house.store.put_schedule(attrs.evolve(good, name="bad", zone="Mars/Base"))
    async with house.worker():
        await trio.sleep(2.5 * HOUR)
    assert house.hours() == [1, 2]
    assert caplog.text.count("schedule bad is not fired: there is no time zone 'Mars/Base'") == 1


async def test_they_are_there_after_a_restart_in_a_file(autojump_clock: MockClock, tmp_path: Path) -> None:
    """SCH-1: the schedule is the queue's, not the program's."""
    house = House(store=SqliteStore(tmp_path / "q.db", inline=True))
    async with house.worker(schedules=[Schedule("hourly", "tick", [1], cron=HOURLY)]):
        await trio.sleep(1.5 * HOUR)
    house.store = SqliteStore(tmp_path / "q.db", inline=True)
    async with house.worker():
        await trio.sleep(HOUR)
    assert house.handled == [("tick", [1], SEVEN + HOUR), ("tick", [1], SEVEN + 2 * HOUR)]


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({}, InvalidSchedule, 'either a cron expression, such as "0 7'),
    ({"cron": HOURLY, "at": 1.0}, InvalidSchedule, "and not both"),
    ({"cron": "0 7 * *"}, InvalidSchedule, "has 4"),
    ({"cron": "0 0 31 2,4 *"}, InvalidSchedule, "bad day-of-month"),
    ({"cron": 7}, InvalidSchedule, "not 7"),
    ({"at": "2026-12-24T18:00:00Z", "zone": "Mars/Base"}, InvalidSchedule, "no time zone .Mars/Base"),
    ({"cron": HOURLY, "zone": "Berlin"}, InvalidSchedule, "did you mean Europe/Berlin"),
    ({"cron": HOURLY, "zone": "localtime"}, InvalidSchedule, "not the same on every machine"),
    ({"cron": HOURLY, "zone": "right/UTC"}, InvalidSchedule, "not the same on every machine"),
    (
        {"at": "tomorrow"},
        InvalidSchedule,
        "such as \"2026-12-24T18:00:00.01:00\", or seconds since 1970, not 'tomorrow'",
    ),
    ({"at": "2026-12-24T18:00"}, InvalidSchedule, "needs its offset"),
    ({"at": "2026-03-29T02:30", "zone": "Europe/Berlin"}, InvalidSchedule, "the clocks skip it"),
    ({"at": datetime(2026, 12, 24)}, InvalidSchedule, "needs its offset"),
    ({"at": float("nan")}, InvalidSchedule, "seconds since 1970"),
    ({"at": 1e300}, InvalidSchedule, "seconds since 1970"),
    ({"at": True}, InvalidSchedule, "seconds since 1970"),
    ({"name": "two words", "cron": HOURLY}, InvalidName, 'such as "morning-report"'),
    ({"name": "../x", "cron": HOURLY}, InvalidName, "morning-report"),
    ({"name": "", "cron": HOURLY}, InvalidName, "morning-report"),
    ({"kind": "", "cron": HOURLY}, InvalidName, "kind"),
    ({"payload": float("nan"), "cron": HOURLY}, InvalidValue, "payload"),
    ({"payload": "x" * 2_000, "cron": HOURLY}, InvalidValue, "payload is"),
]


@pytest.mark.parametrize(("given", "error", "says"), WRONG, ids=[says for _, _, says in WRONG])
async def test_what_is_wrong_is_refused_and_nothing_is_stored(
    given: dict[str, Any], error: type[Exception], says: str, autojump_clock: MockClock
) -> None:
    """SCH-6, SIG-5: where it is put, and where a worker is made of it."""
    house = House()
    schedule = Schedule(**{"name": "s", "kind": "tick"} | given)
    async with house.worker(max_payload=1_000) as worker:
        with pytest.raises(error, match=says):
            await worker.schedules.put(schedule)
        assert await worker.schedules.all() == []
    with pytest.raises(error, match=says):
        WorkerOptions(schedules=[schedule], max_payload=1_000)


def test_a_gateway_refuses_wrong_schedules_where_it_is_made() -> None:
    """SCH-6: not an hour later."""
    hourly = Schedule("hourly", "tick", cron=HOURLY)
    for given, says in (
        ([hourly, Schedule("hourly", "tock", cron=HOURLY)], "two schedules have the name 'hourly'"),
        ([hourly, "0 * * * *"], "must be Schedule"),
        (hourly, "must be a list"),
    ):
        with pytest.raises(UsageError, match=says):
            Gateway(store="memory:", runtime=FunctionRuntime(House().run), schedules=given)


async def test_a_local_time_of_a_zone_is_an_instant() -> None:
    """SCH-6: with or without an offset, as text, datetime or seconds."""
    expected = datetime(2026, 12, 24, 17, tzinfo=UTC).timestamp()
    for at, zone in (
        ("2026-12-24T18:00", "Europe/Berlin"),
        ("2026-12-24 18:00:00", "+01:00"),
        ("2026-12-24T17:00:00Z", None),
        ("2026-12-24t17:00z", "Europe/Berlin"),
        (datetime(2026, 12, 24, 18), "Europe/Berlin"),
        (datetime.fromtimestamp(expected, UTC) + timedelta(0), None),
        (expected, None),
    ):
        assert checked(Schedule("s", "k", at=at, zone=zone), 0.0).next_at == expected


async def test_a_store_that_keeps_no_schedules_serves_all_else(autojump_clock: MockClock) -> None:
    """SCH-1: one of the user's own, without the methods."""

    class Plain:
        def __init__(self) -> None:
            self._store = MemoryStore()

        def __getattr__(self, name: str) -> Any:
            if "schedule" in name:
                raise AttributeError(name)
            return getattr(self._store, name)

    house = House(store=Plain())
    async with house.worker() as worker:
        await worker.emit("tick")
        await trio.sleep(1)
        with pytest.raises(UsageError, match="Plain keeps no schedules"):
            await worker.schedule("hourly", "tick", cron=HOURLY)
    assert len(house.handled) == 1


async def test_a_store_that_cannot_go_on_ends_the_worker_with_its_words(autojump_clock: MockClock) -> None:
    """SCH-4, REC-5: as it does when a run's end cannot be written."""

    class Full(MemoryStore):
        async def fire_schedules(self, fires: Any) -> Any:
            raise StoreError("the disk is full")

    house = House()
    with pytest.raises(StoreError, match="the disk is full"):
        async with open_worker(
            Full(), FunctionRuntime(house.run), {"tick": house.handle}, wall_clock=house.now, sweep=None
        ) as worker:
            await worker.schedule("hourly", "tick", cron=HOURLY)
            await trio.sleep(2 * HOUR)
    assert worker.last_error is not None and "the disk is full" in worker.last_error

"""The schedules of a queue: put, removed, listed, and fired when they are due.

The law: only whoever claims the queue's signals fires (its one worker, REC-1, or the leader of a fleet), and what it fires
and how far the schedule is are one commit (SCH-4). The wait is on Trio's clock; what is due is decided by the wall clock,
which is read again at least every RECHECK, since it can be set. A queue without schedules sets no timer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

import attrs
import trio

from concorde_trio import events, spans
from concorde_trio._sansio.schedules import MISSED_COUNTED, Advance, NextAfter, ScheduleRecord, look
from concorde_trio.errors import InvalidSchedule, UnknownId, UsageError
from concorde_trio.new_ids import new_id
from concorde_trio.records import NewSignal
from concorde_trio.signals.options import WorkerOptions
from concorde_trio.signals.schedule import Schedule, check_schedule_name, checked, in_words, instants
from concorde_trio.signals.schedule_store import Fire, ScheduleStore

logger = logging.getLogger("concorde_trio.schedules")

RECHECK = 30.0
"""Seconds after which the wall clock is read again, for it may have been set."""

SHORTEST = 0.001
"""Seconds of the shortest wait, for the two clocks do not agree to the last digit."""

Publish = Callable[[Iterable[events.Event]], None]


class Schedules:
    """The schedules of one queue: ``await worker.schedules.put(Schedule("morning", "day.began", cron="0 7 * * *"))``.

    They are stored with the queue's signals, and stay until they are removed. Every method needs a store that keeps
    schedules, which those of this package do; UsageError otherwise.
    """

    def __init__(self, store: object, options: WorkerOptions, publish: Publish = lambda told: None) -> None:
        self._store = store
        self._options = options
        self._publish = publish
        self._woken = trio.Event()
        self._stale = True
        self._records: dict[str, ScheduleRecord] = {}
        self._instants: dict[str, NextAfter] = {}
        self._looked_at = 0.0

    # --- the door -----------------------------------------------------------------------------------------------

    async def put(self, schedule: Schedule) -> bool:
        """Store a schedule under its name; False if the same is there already, and then nothing happens (SCH-5).

        One of the same name with anything else in it is replaced. InvalidSchedule, InvalidName or InvalidValue for what is
        wrong, an instant that has passed among it unless it is there already (SCH-6).
        """
        record = self._checked(schedule)
        if record.at is not None and record.at < record.changed_at and not await self._is_there(record):
            raise InvalidSchedule(
                f"{in_words(record.at)} has passed: it is {in_words(record.changed_at // 1)} now; give an instant to come",
                place="at",
            )
        return await self._put(record)

    async def remove(self, name: str) -> None:
        """Remove a schedule; its signals stay. UnknownId if there is none of this name."""
        if not await self._keeping().remove_schedule(check_schedule_name(name)):
            raise UnknownId(f"there is no schedule {name!r:.120}")
        self._publish([events.ScheduleRemoved(at=self._options.wall_clock(), schedule=name)])
        self.look()

    async def all(self) -> list[ScheduleRecord]:
        """All of them, by name."""
        return await self._keeping().schedules()

    async def one(self, name: str) -> ScheduleRecord:
        """The one of this name; UnknownId if there is none."""
        for record in await self.all():
            if record.name == name:
                return record
        raise UnknownId(f"there is no schedule {name!r:.120}")

    async def declare(self) -> None:
        """Put those of the options. One at an instant that passed before it was ever stored is stored as missed."""
        for schedule in self._options.schedules:
            await self._put(self._checked(schedule))

    # --- the worker ---------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Read the rows again: something was put or removed, or somebody else may have done so."""
        self._stale = True
        self._woken.set()

    async def run(self) -> None:
        """Fire what is due, for ever, while this process claims. At once over for a store that keeps no schedules."""
        if not isinstance(self._store, ScheduleStore):
            return
        self._stale = True
        while True:
            self._woken = trio.Event()
            fresh, self._stale = self._stale, False
            if fresh:
                self._take(await self._store.schedules())
            now = self._options.wall_clock()
            # What is not due is looked at again only where the clock may have been set back.
            every, self._looked_at = fresh or now < self._looked_at, now
            fires = self._fires(now, every=every)
            if fires:
                await self._fire(self._store, fires, now)
            elif not self._stale:
                await self._wait(now)

    async def _wait(self, now: float) -> None:
        times = [self._records[name].next_at for name in self._instants]
        first = min((at for at in times if at is not None), default=None)
        if first is None:
            await self._woken.wait()
        else:
            with trio.move_on_after(max(SHORTEST, min(first - now, RECHECK))):
                await self._woken.wait()

    def _take(self, records: list[ScheduleRecord]) -> None:
        known, before = self._instants, self._records
        self._records = {record.name: record for record in records}
        self._instants = {}
        for record in records:
            old = before.get(record.name)
            if old is not None and old.revision == record.revision:
                if record.name in known:
                    self._instants[record.name] = known[record.name]
                continue  # One that could not be understood was told of when it came.
            try:
                self._instants[record.name] = instants(record)
            except UsageError as error:
                logger.error("schedule %s is not fired: %s", record.name, error)

    def _fires(self, now: float, *, every: bool) -> list[Fire]:
        found = []
        for name, next_after in self._instants.items():
            record = self._records[name]
            if record.next_at is None or not (every or record.next_at <= now):
                continue
            advance = look(record, now, self._options.schedule_grace, next_after)
            if advance is not None:
                signal = None if advance.due is None else _signal(record, advance.due, now)
                fire = Fire(name=name, revision=record.revision, next_at=record.next_at, advance=advance, signal=signal)
                found.append(fire)
        # What was due first comes first, whatever the names are.
        return sorted(found, key=lambda fire: (fire.advance.due or 0.0, fire.name))

    async def _fire(self, store: ScheduleStore, fires: list[Fire], now: float) -> None:
        told: list[events.Event] = []
        for fire, fired in zip(fires, await store.fire_schedules(fires), strict=True):
            if fired is None:
                self._stale = True  # It was replaced or removed meanwhile.
                continue
            record, advance = self._records[fire.name], fire.advance
            self._records[fire.name] = advanced(record, advance, fired.signal_id)
            if advance.missed:
                told.append(_missed(record, advance, now))
            if fire.signal is not None and fired.signal_id == fire.signal.id and advance.due is not None:
                told.append(
                    events.ScheduleFired(
                        at=now, schedule=record.name, kind=record.kind, due=advance.due, signal_id=fired.signal_id
                    )
                )
        self._publish(told)

    # --- inside -------------------------------------------------------------------------------------------------

    def _checked(self, schedule: Schedule) -> ScheduleRecord:
        return checked(schedule, self._options.wall_clock(), max_payload=self._options.max_payload)

    async def _is_there(self, record: ScheduleRecord) -> bool:
        there = await self.all()
        return any(each.name == record.name and each.definition == record.definition for each in there)

    async def _put(self, record: ScheduleRecord) -> bool:
        changed = await self._keeping().put_schedule(record)
        if changed:
            put = events.SchedulePut(
                at=record.changed_at, schedule=record.name, kind=record.kind, next_at=record.next_at
            )
            self._publish([put])
            self.look()
        return changed

    def _keeping(self) -> ScheduleStore:
        if not isinstance(self._store, ScheduleStore):
            raise UsageError(
                f"{type(self._store).__name__} keeps no schedules; it needs the methods of ScheduleStore "
                "(concorde_trio.signals.schedule_store)"
            )
        return self._store


def advanced(record: ScheduleRecord, advance: Advance, signal_id: str | None) -> ScheduleRecord:
    """The row after it was advanced."""
    return attrs.evolve(
        record,
        next_at=advance.next_at,
        fired_at=record.fired_at if advance.due is None else advance.due,
        signal_id=record.signal_id if signal_id is None else signal_id,
        missed=record.missed + advance.missed,
        missed_at=record.missed_at if advance.missed_to is None else advance.missed_to,
    )


def _signal(record: ScheduleRecord, due: float, now: float) -> NewSignal:
    """The signal of one instant. Its key is the instant's, so that it is stored once (SIG-7)."""
    new = NewSignal(
        id=new_id(),
        kind=record.kind,
        payload=record.payload,
        emitted_at=now,
        key=f"schedule:{record.name}@{in_words(due)}",
    )
    spans.emitted(new.id)
    return new


def _missed(record: ScheduleRecord, advance: Advance, now: float) -> events.ScheduleMissed:
    assert advance.missed_from is not None
    more = " or more" if advance.missed >= MISSED_COUNTED else ""
    logger.warning(
        "schedule %s missed %d%s of its instants, from %s on, and does not make up for them",
        record.name,
        advance.missed,
        more,
        in_words(advance.missed_from),
    )
    return events.ScheduleMissed(
        at=now, schedule=record.name, kind=record.kind, missed=advance.missed, since=advance.missed_from
    )

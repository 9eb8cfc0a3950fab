"""What is written and read of schedules in a SQL database, inside a transaction (SCH-4, SCH-5).

The law: a row is advanced only if it is what it was when it was looked at, and only then its signal is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from concorde_trio._sansio.schedules import ScheduleRecord
from concorde_trio.records import NewSignal
from concorde_trio.signals.schedule_store import Fire, Fired
from concorde_trio.stores.database import Reads, Writes

COLUMNS = [field.name for field in attrs.fields(ScheduleRecord)]
"""A row has the record's fields in its columns."""

SCHEDULES = f"select {', '.join(COLUMNS)} from concorde_schedules order by name"


@attrs.frozen
class PutSchedule:
    """A schedule to be stored under its name; gives whether anything changed."""

    record: ScheduleRecord


@attrs.frozen
class RemoveSchedule:
    """A schedule to be removed; gives whether it was there."""

    name: str


@attrs.frozen
class FireSchedules:
    """Rows to be advanced with their signals; gives a Fired, or None, for each."""

    fires: Sequence[Fire]


ScheduleWork = PutSchedule | RemoveSchedule | FireSchedules
Insert = Callable[[Writes, Sequence[NewSignal]], list[str]]


def write_schedules(database: Writes, work: ScheduleWork, insert: Insert) -> bool | list[Fired | None]:
    """What one of them gave. ``insert`` stores signals."""
    match work:
        case PutSchedule(record):
            row = (record.name, *record.definition, record.revision, record.changed_at, record.next_at)
            return database.execute_named("put_schedule", row).rowcount == 1
        case RemoveSchedule(name):
            return database.execute_named("remove_schedule", (name,)).rowcount == 1
        case FireSchedules(fires):
            return [_fire(database, fire, insert) for fire in fires]


def _fire(database: Writes, fire: Fire, insert: Insert) -> Fired | None:
    to = fire.advance
    row = (to.next_at, to.due, to.missed, to.missed_to, fire.name, fire.revision, fire.next_at)
    if database.execute_named("advance_schedule", row).rowcount != 1:
        return None
    if fire.signal is None:
        return Fired(None)
    (signal_id,) = insert(database, [fire.signal])
    database.execute_named("schedule_fired", (signal_id, fire.name))
    return Fired(signal_id)


def schedules(connection: Reads) -> list[ScheduleRecord]:
    """All of them, by name."""
    found = connection.execute(SCHEDULES).fetchall()
    return [ScheduleRecord(**dict(zip(COLUMNS, row, strict=True))) for row in found]

"""A schedule as a person writes it: a name, the signal, and when; and the checked form that is stored.

The law: what is wrong with it is said where it is written, with what was expected and an example (SCH-6).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

import attrs

from concorde_trio._sansio import json_values
from concorde_trio._sansio.schedules import NextAfter, ScheduleRecord
from concorde_trio.errors import InvalidName, InvalidSchedule
from concorde_trio.records import JSON, check_name
from concorde_trio.signals.cron import CronExpression, find_zone
from concorde_trio.signals.emit import MAX_PAYLOAD

SCHEDULE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
EARLIEST, LATEST = 0.0, 253_000_000_000.0
"""Instants that a calendar with four digits for the year has, in wall-clock seconds."""

_NAME = re.compile(SCHEDULE_NAME + r"\Z")
_EXAMPLE = 'such as "2026-12-24T18:00:00+01:00"'


@attrs.frozen
class Schedule:
    """When to emit which signal, under a name: ``Schedule("morning", "day.began", cron="0 7 * * *", zone="Europe/Berlin")``.

    ``name``: 1 to 100 letters, digits, ``.``, ``_`` or ``-``. ``kind`` and ``payload``: of the signal, as for ``emit``. Either
    ``cron``, five fields, in ``zone`` (a name of the time zone database or an offset such as ``+05:30``; UTC unless given),
    or ``at``, one instant: a datetime with its zone, ISO 8601 text, or seconds since the epoch. An ``at`` without an offset
    is a local time of ``zone``. InvalidSchedule or InvalidName, when it is put, for what is wrong.
    """

    name: str
    kind: str
    payload: JSON = None
    cron: str | None = attrs.field(default=None, kw_only=True)
    zone: str | None = attrs.field(default=None, kw_only=True)
    at: str | float | datetime | None = attrs.field(default=None, kw_only=True)


def check_schedule_name(name: object) -> str:
    """The name; InvalidName if it is none."""
    if not isinstance(name, str) or _NAME.match(name) is None:
        raise InvalidName(
            "the name of a schedule must be 1 to 100 letters, digits, '.', '_' or '-', the first a letter or digit, such as "
            f'"morning-report", not {name!r:.120}'
        )
    return name


def checked(schedule: Schedule, now: float, *, max_payload: int = MAX_PAYLOAD) -> ScheduleRecord:
    """The record of it, with its first instant after ``now`` (wall-clock seconds); one at an instant has that, come or not.

    InvalidName, InvalidSchedule, or InvalidValue for the payload (SIG-5).
    """
    name = check_schedule_name(schedule.name)
    check_name(schedule.kind, "kind")
    payload = json_values.encode(schedule.payload, max_bytes=max_payload)
    if (schedule.cron is None) == (schedule.at is None):
        raise InvalidSchedule(
            f'schedule {name!r} needs either a cron expression, such as "0 7 * * *", or an instant, {_EXAMPLE}'
            + (", and not both" if schedule.cron is not None else ""),
            place="cron",
        )
    made = partial(
        ScheduleRecord, name=name, kind=schedule.kind, payload=payload, revision=uuid4().hex[:20], changed_at=now
    )
    if schedule.cron is None:
        if schedule.zone is not None:
            find_zone(schedule.zone)  # a wrong one is told of, also where the instant says its offset itself
        at = read_instant(schedule.at, schedule.zone)
        return made(at=at, next_at=at)
    zone = "UTC" if schedule.zone is None else schedule.zone
    expression = CronExpression(schedule.cron, zone)
    first = expression.next_after(now)
    if first is None:
        raise InvalidSchedule(
            f"{schedule.cron!r:.80} has no instant in the next fifty years; is there such a day?", place="cron"
        )
    return made(cron=expression.text, zone=zone, next_at=first)


def instants(record: ScheduleRecord) -> NextAfter:
    """What finds the instants of a stored schedule. InvalidSchedule or UsageError where that cannot be done here."""
    if record.cron is None or record.zone is None:
        return lambda instant: None
    return CronExpression(record.cron, record.zone).next_after


def read_instant(given: object, zone: str | None = None) -> float:
    """An instant in wall-clock seconds. ``zone``: of a time that says none itself. InvalidSchedule if it is none."""
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given.strip().upper())
        except ValueError:
            raise _no_instant(given) from None
    if isinstance(given, datetime):
        if given.tzinfo is None:
            given = _local(given, zone)
        try:
            given = given.timestamp()
        except (OverflowError, ValueError):
            raise _no_instant(given) from None
    if isinstance(given, bool) or not isinstance(given, int | float) or not EARLIEST <= given <= LATEST:
        raise _no_instant(given)
    return float(given)


def _local(given: datetime, zone: str | None) -> datetime:
    if zone is None:
        raise InvalidSchedule(
            f"the instant {given.isoformat()} needs its offset, {_EXAMPLE}, or a zone, such as Europe/Berlin",
            place="at",
        )
    placed = given.replace(tzinfo=find_zone(zone))
    if placed.astimezone(UTC).astimezone(placed.tzinfo).replace(tzinfo=None) != given:
        raise InvalidSchedule(
            f"there is no {given.isoformat()} in {zone}: the clocks skip it; give another time, or one with its offset",
            place="at",
        )
    return placed


def _no_instant(given: object) -> InvalidSchedule:
    return InvalidSchedule(
        f"an instant is a date and time with its offset, {_EXAMPLE}, or seconds since 1970, not {given!r:.80}",
        place="at",
    )


def in_words(instant: float) -> str:
    """An instant as ISO 8601 text in UTC, to the second (and its part, if it has one)."""
    written = datetime.fromtimestamp(instant, UTC)
    return written.isoformat().replace("+00:00", "Z")

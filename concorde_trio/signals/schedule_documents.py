"""Schedules as JSON documents: the same from the agent server and from a database read directly. Live tags are masked."""

from __future__ import annotations

from concorde_trio._sansio.json_values import decode
from concorde_trio._sansio.schedules import ScheduleRecord
from concorde_trio.errors import UsageError
from concorde_trio.signals.documents import Document, Mask
from concorde_trio.signals.schedule import instants


def schedule_document(record: ScheduleRecord, mask: Mask) -> Document:
    """A schedule."""
    found: Document = mask(
        {
            "name": record.name,
            "kind": record.kind,
            "payload": decode(record.payload),
            "cron": record.cron,
            "zone": record.zone,
            "at": record.at,
            "changed_at": record.changed_at,
            "next_at": record.next_at,
            "fired_at": record.fired_at,
            "signal_id": record.signal_id,
            "missed": record.missed,
            "missed_at": record.missed_at,
            "problem": _problem(record),
        }
    )
    return found


def _problem(record: ScheduleRecord) -> str | None:
    """Why it is not fired: what it needs is not installed here, or its zone is gone."""
    if record.next_at is None:
        return None
    try:
        instants(record)
    except UsageError as error:
        return str(error)
    return None

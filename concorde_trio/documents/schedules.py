"""Schedules: what emits which signal when, and how far it is."""

from __future__ import annotations

from typing import Any, TypedDict


class ScheduleDocument(TypedDict):
    """A schedule: either ``cron`` with its ``zone``, or ``at``. Instants are wall-clock seconds.

    ``next_at``: when it fires next, null when it is over. ``fired_at``: the instant that it last fired for, and the signal that
    came of it. ``missed``: instants that were skipped since it was written (each look counts at most 500), the last of them
    ``missed_at``. ``problem``: why it is not fired, null if it is.
    """

    name: str
    kind: str
    payload: Any
    cron: str | None
    zone: str | None
    at: float | None
    changed_at: float
    next_at: float | None
    fired_at: float | None
    signal_id: str | None
    missed: int
    missed_at: float | None
    problem: str | None


class SchedulePage(TypedDict):
    """Schedules by name. ``next``: the ``after`` of the page after this one, null when this is the last."""

    schedules: list[ScheduleDocument]
    next: str | None


class SchedulePutDocument(ScheduleDocument):
    """A schedule that was put. ``changed``: False if it was there as it is, and nothing happened."""

    changed: bool


class ScheduleRemovedDocument(TypedDict):
    """A schedule that is gone; the signals that came of it stay."""

    name: str
    removed: bool

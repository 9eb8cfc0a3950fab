"""What is due of a schedule, and what was missed: decided from its row, the wall clock and a function that finds instants.

The law: an instant is fired once or never. Of the instants that have come, the last one is fired if it is not later than
``grace``; all others were missed, and are counted (SCH-3). Reads no clock: times are wall-clock seconds, given by the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

NextAfter: TypeAlias = Callable[[float], float | None]
"""The first instant of a schedule after another one, None if there is none."""

MISSED_COUNTED = 500
"""Missed instants that are counted one by one; this number stands for as many or more."""

SMALL_STEP = 3_600.0
"""Seconds by which a clock that is put right may go back. Further back, it was wrong when the schedule last looked."""


@attrs.frozen(kw_only=True)
class ScheduleRecord:
    """A schedule as it is stored. Times are wall-clock seconds.

    ``payload``: JSON text. Either ``cron`` with its ``zone``, or ``at``. ``revision``: another one whenever it is replaced.
    ``next_at``: when it fires next, None when it is over. ``fired_at``: the instant that it last fired for, with the
    signal that came of it. ``missed``: instants that were skipped since it was written; ``missed_at``: the last of them, or
    the last that was counted.
    """

    name: str
    kind: str
    payload: str
    cron: str | None = None
    zone: str | None = None
    at: float | None = None
    revision: str
    changed_at: float
    next_at: float | None
    fired_at: float | None = None
    signal_id: str | None = None
    missed: int = 0
    missed_at: float | None = None

    @property
    def definition(self) -> tuple[str, str, str | None, str | None, float | None]:
        """What makes two of the same name the same."""
        return self.kind, self.payload, self.cron, self.zone, self.at


@attrs.frozen(kw_only=True)
class Advance:
    """What a look at a schedule came to. ``due``: the instant to fire for; ``missed``: how many were skipped, from
    ``missed_from`` to ``missed_to``; ``next_at``: when it is to be looked at again."""

    due: float | None = None
    missed: int = 0
    missed_from: float | None = None
    missed_to: float | None = None
    next_at: float | None


def look(record: ScheduleRecord, now: float, grace: float, next_after: NextAfter) -> Advance | None:
    """What is to be done about a schedule now; None when it is as it should be."""
    if record.next_at is None:
        return None
    if record.next_at > now:
        return _set_back(record, now, next_after)
    if record.cron is None:
        if now - record.next_at <= grace:
            return Advance(due=record.next_at, next_at=None)
        return Advance(missed=1, missed_from=record.next_at, missed_to=record.next_at, next_at=None)
    due, following = _last_due(record.next_at, now, grace, next_after)
    missed, last = _missed(record.next_at, due, now, next_after)
    return Advance(
        due=due,
        missed=missed,
        missed_from=record.next_at if missed else None,
        missed_to=last,
        next_at=following,
    )


def _set_back(record: ScheduleRecord, now: float, next_after: NextAfter) -> Advance | None:
    """Aim anew when the clock was set back, so that a schedule is not silent until the time at which it was wrong."""
    if record.cron is None:
        return None
    done = record.fired_at
    aim = next_after(now if done is None or done - now > SMALL_STEP else max(now, done))
    return None if aim is None or record.next_at is None or aim >= record.next_at else Advance(next_at=aim)


def _last_due(first: float, now: float, grace: float, next_after: NextAfter) -> tuple[float | None, float | None]:
    """The last instant that has come and is not too late, and the first one to come."""
    due: float | None = None
    each = first if now - first <= grace else next_after(now - grace)
    while each is not None and each <= now:
        due, each = each, next_after(each)
    return due, each


def _missed(first: float, due: float | None, now: float, next_after: NextAfter) -> tuple[int, float | None]:
    """How many instants from the first on were skipped, and the last of them that was counted."""
    until = now if due is None else due
    missed, last, each = 0, None, first
    while missed < MISSED_COUNTED and (each <= until if due is None else each < until):
        missed, last = missed + 1, each
        following = next_after(each)
        if following is None:
            break
        each = following
    return missed, last

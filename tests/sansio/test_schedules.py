"""What is due of a schedule and what was missed, against a walk from minute to minute."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio._sansio.schedules import MISSED_COUNTED, Advance, ScheduleRecord, look

GRACE = 60.0
MINUTE = 60.0


def row(next_at: float | None, **fields: object) -> ScheduleRecord:
    """A schedule by cron."""
    made = {"name": "s", "kind": "k", "payload": "null", "cron": "…", "zone": "UTC", "revision": "r", "changed_at": 0.0}
    return ScheduleRecord(**made | fields, next_at=next_at)  # type: ignore[arg-type]


def every(minutes: int) -> object:
    """The instants of a schedule that fires every so many minutes."""
    step = minutes * MINUTE
    return lambda instant: (instant // step + 1) * step


HOURLY = every(60)


def test_it_fires_what_has_come_and_nothing_before() -> None:
    """SCH-3: at its instant and up to the grace after it."""
    assert look(row(3600.0), 3599.9, GRACE, HOURLY) is None  # type: ignore[arg-type]
    for now in (3600.0, 3600.5, 3660.0):
        assert look(row(3600.0), now, GRACE, HOURLY) == Advance(due=3600.0, next_at=7200.0)  # type: ignore[arg-type]


def test_what_is_later_than_the_grace_was_missed() -> None:
    """SCH-3: and is counted, from the first to the last."""
    assert look(row(3600.0), 3660.1, GRACE, HOURLY) == Advance(  # type: ignore[arg-type]
        missed=1, missed_from=3600.0, missed_to=3600.0, next_at=7200.0
    )
    assert look(row(3600.0), 4 * 3600.0 + 1, GRACE, HOURLY) == Advance(  # type: ignore[arg-type]
        due=4 * 3600.0, missed=3, missed_from=3600.0, missed_to=3 * 3600.0, next_at=5 * 3600.0
    )


def test_one_instant_is_over_once_it_has_come() -> None:
    """SCH-3: fired or missed, and never again."""
    once = row(3600.0, cron=None, zone=None, at=3600.0)
    for now in (3600.0, 3601.0, 3660.0):
        assert look(once, now, GRACE, HOURLY) == Advance(due=3600.0, next_at=None)  # type: ignore[arg-type]
    for now in (3660.1, 9000.0):
        late = look(once, now, GRACE, HOURLY)  # type: ignore[arg-type]
        assert late == Advance(missed=1, missed_from=3600.0, missed_to=3600.0, next_at=None)
    assert look(attrs.evolve(once, next_at=None), 9000.0, GRACE, HOURLY) is None  # type: ignore[arg-type]


def test_many_missed_instants_are_counted_up_to_a_bound() -> None:
    """SCH-3: a queue that rested for years costs no more than one that rested for a day."""
    found = look(row(0.0), 1e9, GRACE, every(1))  # type: ignore[arg-type]
    assert found is not None
    assert (found.missed, found.missed_from, found.due) == (MISSED_COUNTED, 0.0, 1e9 // 60 * 60)
    assert found.next_at == found.due + 60


def test_a_clock_that_was_set_back_far_does_not_silence_it() -> None:
    """SCH-3: it aims anew; after a small step back it waits for what it has not fired yet."""
    wrong = row(10 * 24 * 3600.0, fired_at=10 * 24 * 3600.0 - 3600)
    assert look(wrong, 5000.0, GRACE, HOURLY) == Advance(next_at=7200.0)  # type: ignore[arg-type]
    assert look(row(10_800.0, fired_at=7200.0), 7199.0, GRACE, HOURLY) is None  # type: ignore[arg-type]
    assert look(row(7200.0, fired_at=3600.0), 3601.0, GRACE, HOURLY) is None  # type: ignore[arg-type]


@given(
    minutes=st.sampled_from([1, 2, 5, 60, 1440]),
    looks=st.lists(st.floats(0.5, 200 * MINUTE), max_size=20),
    grace=st.sampled_from([1.0, 60.0, 600.0]),
)
@pytest.mark.parametrize("first", [0, 7])
def test_whenever_it_is_looked_at_each_instant_is_fired_or_missed_once(
    first: int, minutes: int, looks: list[float], grace: float
) -> None:
    """SCH-3: against a model that walks through every minute."""
    next_after = every(minutes)
    now = first * MINUTE
    record = row(next_after(now - 0.1))  # type: ignore[operator]
    fired: list[float] = []
    missed = 0
    accounted = now - 0.1
    for waited in looks:
        now += waited
        found = look(record, now, grace, next_after)  # type: ignore[arg-type]
        came = [
            at * MINUTE for at in range(int(now // MINUTE) + 1) if at % minutes == 0 and accounted < at * MINUTE <= now
        ]
        accounted = now
        if not came:
            assert found is None
            continue
        assert found is not None
        timely = now - came[-1] <= grace
        assert found.due == (came[-1] if timely else None)
        assert found.missed == min(len(came) - timely, MISSED_COUNTED)
        assert found.missed_from == (came[0] if len(came) > timely else None)
        assert found.next_at is not None
        assert found.next_at > now
        fired += [found.due] if found.due is not None else []
        missed += found.missed
        record = attrs.evolve(record, next_at=found.next_at, fired_at=found.due or record.fired_at)
    assert fired == sorted(set(fired))

"""Cron expressions in real zones, against a walk from minute to minute."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from concorde_trio.errors import InvalidSchedule
from concorde_trio.signals import cron as cron_module
from concorde_trio.signals.cron import CronExpression, find_zone

CHANGES = {
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "Australia/Lord_Howe": ("2026-04-05", "2026-10-04"),
    "+05:30": ("2026-03-29",),
    "UTC": ("2026-03-29",),
}
"""Zones, and the days on which their clocks change."""


def fired(cron: str, zone: str, day: str, days: int = 1) -> list[str]:
    """The instants of so many days, as local times with their offsets."""
    begin = datetime.fromisoformat(day).replace(tzinfo=find_zone(zone))
    end = (begin + timedelta(days=days)).timestamp()
    expression = CronExpression(cron, zone)
    found: list[str] = []
    at = expression.next_after(begin.timestamp() - 1)
    while at is not None and at < end:
        found.append(datetime.fromtimestamp(at, find_zone(zone)).isoformat()[11:].replace(":00+", "+"))
        at = expression.next_after(at)
    return found


@pytest.mark.parametrize(
    ("cron", "zone", "day", "expected"),
    [
        # 02:00 to 03:00 is skipped.
        ("30 2 * * *", "Europe/Berlin", "2026-03-29", ["03:00+02:00"]),
        ("0,30 2 * * *", "Europe/Berlin", "2026-03-29", ["03:00+02:00"]),
        ("30 3 * * *", "Europe/Berlin", "2026-03-29", ["03:30+02:00"]),
        ("30 * * * *", "Europe/Berlin", "2026-03-29", None),
        ("30 2 * * *", "America/New_York", "2026-03-08", ["03:00:00-04:00"]),
        # 02:00 to 03:00 comes twice in Berlin, 01:00 to 02:00 in New York.
        ("30 2 * * *", "Europe/Berlin", "2026-10-25", ["02:30+02:00"]),
        ("30 1 * * *", "America/New_York", "2026-11-01", ["01:30:00-04:00"]),
        ("*/30 2 * * *", "Europe/Berlin", "2026-10-25", ["02:00+02:00", "02:30+02:00", "02:00+01:00", "02:30+01:00"]),
        # On Lord Howe half an hour is skipped, 02:00 to 02:30, or comes twice, 01:30 to 02:00.
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-04", ["02:30+11:00"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-05", ["01:45+11:00"]),
        ("*/15 2 * * *", "Australia/Lord_Howe", "2026-10-04", ["02:30+11:00", "02:45+11:00"]),
        (
            "*/15 3 * * *",
            "Australia/Lord_Howe",
            "2026-10-04",
            ["03:00+11:00", "03:15+11:00", "03:30+11:00", "03:45+11:00"],
        ),
        ("30 2 * * *", "+05:30", "2026-03-29", ["02:30+05:30"]),
        ("0 7 * * 1-5", "+05:30", "2026-03-28", []),
    ],
)
def test_an_hour_that_is_skipped_or_repeated(cron: str, zone: str, day: str, expected: list[str] | None) -> None:
    """SCH-2: a fixed time comes once a day, also on the day of the change; by real minutes it comes as often as it is."""
    found = fired(cron, zone, day)
    if expected is None:
        assert len(found) == 23
        assert not [at for at in found if at.startswith("02:")]
    else:
        assert found == expected


FIELDS = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)]


@st.composite
def fields(draw: Any, low: int, high: int) -> tuple[str, frozenset[int]]:
    """A field, and what it matches."""
    one, other = sorted((draw(st.integers(low, high)), draw(st.integers(low, high))))
    step = draw(st.sampled_from([2, 5, 7, 15, 30]))
    every = range(low, high + 1)
    return draw(
        st.sampled_from(
            [
                ("*", frozenset(every)),
                (f"*/{step}", frozenset(every[::step])),
                (f"{one}", frozenset([one])),
                (f"{one},{other}", frozenset([one, other])),
                (f"{one}-{other}", frozenset(range(one, other + 1))),
            ]
        )
    )


def matches(parts: list[tuple[str, frozenset[int]]], local: datetime) -> bool:
    """Whether the local minute is one of the expression's."""
    (_, minutes), (_, hours), (days_text, days), (_, months), (weekdays_text, weekdays) = parts
    day, weekday = local.day in days, local.isoweekday() % 7 in weekdays
    both = days_text.startswith("*") or weekdays_text.startswith("*")
    return (
        local.minute in minutes
        and local.hour in hours
        and local.month in months
        and ((day and weekday) if both else (day or weekday))
    )


def walk(parts: list[tuple[str, frozenset[int]]], zone: tzinfo, begin: datetime, end: datetime) -> list[float]:
    """The slow model: every minute is looked at."""
    found: set[float] = set()
    if parts[0][0].startswith("*") or parts[1][0].startswith("*"):
        for at in minutes(begin, end):
            if matches(parts, at.astimezone(zone).replace(tzinfo=None)):
                found.add(at.timestamp())
    else:
        local = begin.astimezone(zone).replace(tzinfo=None)
        for each in minutes(local - timedelta(hours=2), local + (end - begin) + timedelta(hours=2)):
            if matches(parts, each):
                at = first_real(each, zone)
                if begin <= at <= end:
                    found.add(at.timestamp())
    return sorted(found)


def first_real(local: datetime, zone: tzinfo) -> datetime:
    """The first time that a clock shows this, or what comes next if none does."""
    while True:
        at = local.replace(tzinfo=zone).astimezone(UTC)
        if at.astimezone(zone).replace(tzinfo=None) == local:
            return at
        local += timedelta(minutes=1)


def minutes(begin: datetime, end: datetime) -> Iterator[datetime]:
    """Each minute from one to the other."""
    while begin <= end:
        yield begin
        begin += timedelta(minutes=1)


@settings(deadline=None)
@given(
    zone=st.sampled_from(sorted(CHANGES)),
    parts=st.tuples(*(fields(*bounds) for bounds in FIELDS)),
    shift=st.integers(-600, 300),
    any_day=st.booleans(),
    which=st.integers(0, 1),
)
@example(
    zone="Australia/Lord_Howe",
    parts=(("*/7", frozenset(range(0, 60, 7))), ("3-18", frozenset(range(3, 19))), *[("*", frozenset(range(32)))] * 3),
    shift=-60,
    any_day=True,
    which=1,
)
def test_it_agrees_with_a_walk_from_minute_to_minute(
    zone: str, parts: tuple[tuple[str, frozenset[int]], ...], shift: int, any_day: bool, which: int
) -> None:
    """SCH-2: any expression, in any of the zones, over a change of the clocks."""
    chosen = list(parts)
    if any_day:
        chosen[2:] = [("*", frozenset(range(32)))] * 3
    place = find_zone(zone)
    change = CHANGES[zone][which % len(CHANGES[zone])]
    begin = datetime.fromisoformat(change).replace(tzinfo=place).astimezone(UTC) + timedelta(minutes=shift)
    end = begin + timedelta(hours=8)
    expression = CronExpression(" ".join(text for text, _ in chosen), zone)
    found: list[float] = []
    at = expression.next_after(begin.timestamp() - 0.5)
    while at is not None and at <= end.timestamp():
        found.append(at)
        at = expression.next_after(at)
    assert found == walk(chosen, place, begin, end)


@pytest.mark.parametrize(
    "cron",
    ["", "0 7 * *", "0 7 * * * *", "@daily", "60 7 * * *", "0 24 * * *", "a b c d e", "5-1 * * * *", "*/0 * * * *"],
)
def test_what_is_no_expression_is_refused_with_an_example(cron: str) -> None:
    """SCH-6: with the fields, and one that would do."""
    with pytest.raises(InvalidSchedule, match=r"five fields .* such as \"0 7 \* \* \*\"") as caught:
        CronExpression(cron, "UTC")
    assert caught.value.place == "cron"


@pytest.mark.parametrize(
    ("zone", "meant"),
    [("Berlin", "did you mean Europe/Berlin"), ("europe/berlin", "did you mean Europe/Berlin"), ("New York", "New_York"),
     ("../../etc/passwd", "expected a name"), ("", "expected a name"), ("+25:00", "expected a name"), ("Europe", "name")],
)  # fmt: skip
def test_what_is_no_zone_is_refused_and_the_likely_one_is_named(zone: str, meant: str) -> None:
    """SCH-6: and nothing outside the time zone database is read."""
    with pytest.raises(InvalidSchedule, match=meant) as caught:
        CronExpression("0 7 * * *", zone)
    assert caught.value.place == "zone"


def test_the_end_of_the_calendar_is_the_end_of_a_schedule() -> None:
    """SCH-6: no traceback of a library."""
    expression = CronExpression("0 7 * * *", "Europe/Berlin")
    assert expression.next_after(253_402_300_000.0) is None
    assert expression.next_after(1e300) is None


def test_a_match_that_is_eight_years_away_takes_hardly_more_steps_than_one_of_tomorrow() -> None:
    """SCH-2: counted in lines, not in time: what lies between two leap days is not looked at hour by hour."""

    def steps(cron: str, from_day: datetime) -> int:
        expression, lines = CronExpression(cron, "Europe/Berlin"), 0

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal lines
            if frame.f_code.co_filename != cron_module.__file__:
                return None
            lines += 1
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            assert expression.next_after(from_day.timestamp()) is not None
        finally:
            sys.settrace(before)
        return lines

    tomorrow = steps("*/5 0 2 3 *", datetime(2096, 3, 1, 12, tzinfo=UTC))
    assert steps("*/5 0 29 2 *", datetime(2096, 3, 1, 12, tzinfo=UTC)) < 10 * tomorrow

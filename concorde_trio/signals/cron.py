"""The instants of a cron expression in a time zone. The one owner of cronsim and of the time zone database.

The law is Debian cron's. With a fixed minute and hour (neither begins with ``*``) every local time comes once: in an hour
that the clocks repeat the first time, in one that they skip right after it, however many would have been in it. Otherwise
it goes by real minutes: each that shows a matching local time, so that a repeated hour comes twice and a skipped one never.
"""

from __future__ import annotations

import copy
import difflib
import functools
import re
import zoneinfo
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Any

from concorde_trio.errors import InvalidSchedule, UsageError

if TYPE_CHECKING:
    from cronsim import CronSim

MOST = 200
"""Characters of an expression."""

FORM = 'five fields (minute hour day month weekday), such as "0 7 * * *" for every day at 7:00'
ZONES = "Europe/Berlin, UTC, or a fixed offset such as +05:30"
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})\Z", re.ASCII)
_STRIDE = timedelta(hours=6)
"""Between two looks for a change of the clocks. No two are closer."""

_REACH = timedelta(days=2)
"""More than any two offsets of a zone differ by: how far from a local time its instant can be, whatever the clocks do."""

_LAST = datetime(9990, 1, 1, tzinfo=UTC)


class CronExpression:
    """A cron expression in a zone: ``CronExpression("0 7 * * 1-5", "Europe/Berlin").next_after(now)``.

    InvalidSchedule for what is none, or has no instant in the next fifty years; UsageError without the extra.
    """

    def __init__(self, cron: str, zone: str) -> None:
        if not isinstance(cron, str) or len(cron) > MOST or not cron.isascii():
            raise InvalidSchedule(f"a cron expression is {FORM}, not {cron!r:.80}", place="cron")
        self.text = " ".join(cron.split())
        self._zone = find_zone(zone)
        fields = self.text.split(" ") if self.text else []
        if len(fields) != 5:
            raise InvalidSchedule(f"a cron expression has {FORM}; {cron!r:.80} has {len(fields)}", place="cron")
        fixed = not fields[0].startswith("*") and not fields[1].startswith("*")
        # Where the clocks never change the two ways come to the same, and cronsim knows only one of them.
        self._fixed = fixed and not isinstance(self._zone, timezone)
        try:
            self._parsed = _cronsim()(self.text, datetime(2000, 1, 1, tzinfo=self._zone if self._fixed else None))
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - it also raises what a slip in its own parser raises.
            said = str(error) or type(error).__name__
            raise InvalidSchedule(
                f"{cron!r:.80} is no cron expression: {said[0].lower()}{said[1:]}; it has {FORM}", place="cron"
            ) from None

    def next_after(self, instant: float) -> float | None:
        """The first instant after this one, in wall-clock seconds; None if there is none for fifty years."""
        try:
            begin = datetime.fromtimestamp(instant // 1, UTC)
        except (OverflowError, ValueError, OSError):
            return None
        try:
            found = self._once(begin) if self._fixed else self._by_real_time(begin)
        except (OverflowError, ValueError):  # the end of the calendar
            return None
        return None if found is None else found.timestamp()

    def _from(self, local: datetime) -> CronSim:
        """The local times that match after this one, which has no zone."""
        search = copy.copy(self._parsed)  # Parsing takes longer than most searches.
        search.dt = local
        return search  # type: ignore[no-any-return]

    def _once(self, begin: datetime) -> datetime | None:
        """By local times: cronsim itself moves what is skipped, and takes the first of what is repeated."""
        for found in self._from(begin.astimezone(self._zone).replace(tzinfo=None, fold=0)):
            at: datetime = found.astimezone(UTC)
            if at > begin:  # A search that begins in the second pass of a repeated hour finds the first one's times.
                return at
        return None

    def _by_real_time(self, begin: datetime) -> datetime | None:
        """Piece by piece between two changes of the clocks: cronsim goes wrong where they move by half an hour.

        A change matters only near either end of the way to the next match: what lies between is passed in one step.
        """
        stop = min(begin + timedelta(days=366 * 50), _LAST)
        after = begin
        while after < stop:
            first = after + timedelta(seconds=1)
            offset = _offset(self._zone, first)
            found = next(self._from((after + offset).replace(tzinfo=None)), None)
            at = stop if found is None else min(found.replace(tzinfo=UTC) - offset, stop)
            near = min(at, first + _REACH)
            change = _change(self._zone, first, offset, near)
            if change is not None:
                after = change - timedelta(seconds=1)
            elif near < at:
                after = max(near, at - _REACH)
            else:
                return None if at == stop else at
        return None


def _change(zone: tzinfo, begin: datetime, offset: timedelta, until: datetime) -> datetime | None:
    """The second, up to ``until``, at which the offset becomes another one; None if it stays."""
    low = begin
    while low < until and not isinstance(zone, timezone):
        high = min(low + _STRIDE, until)
        if _offset(zone, high) != offset:
            while high - low > timedelta(seconds=1):
                middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
                low, high = (middle, high) if _offset(zone, middle) == offset else (low, middle)
            return high
        low = high
    return None


def _offset(zone: tzinfo, at: datetime) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta(0)


_OF_A_MACHINE = frozenset({"localtime", "posixrules", "Factory", "leapseconds"})
"""Files beside the zones: what they say is how a machine is set up, and members of a fleet must agree."""


def find_zone(name: str) -> tzinfo:
    """The zone of that name, or of a fixed offset such as ``+05:30``. InvalidSchedule if there is none."""
    fixed = _OFFSET.match(name) if isinstance(name, str) else None
    if fixed is not None and int(fixed[2]) < 24 and int(fixed[3]) < 60:
        offset = timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
        return timezone(-offset if fixed[1] == "-" else offset)
    if name == "UTC":
        return UTC
    if isinstance(name, str) and (name in _OF_A_MACHINE or name.startswith(("right/", "posix/"))):
        raise InvalidSchedule(
            f"the time zone {name!r:.80} is not the same on every machine; name the zone itself, such as {ZONES}",
            place="zone",
        )
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError, TypeError):
        raise InvalidSchedule(
            f"there is no time zone {name!r:.80}; expected a name such as {ZONES}{_meant(name)}", place="zone"
        ) from None


def _meant(name: object) -> str:
    known = zoneinfo.available_timezones()
    if not known:
        return " (this system has no time zone database; install tzdata)"
    given = str(name)[:80].lower().replace(" ", "_")
    by_lower = {each.lower(): each for each in sorted(known)}
    cities = {each.rpartition("/")[2]: each for each in by_lower}
    near = difflib.get_close_matches(given, by_lower, n=1, cutoff=0.75)
    near = near or [cities[city] for city in difflib.get_close_matches(given, cities, n=1, cutoff=0.75)]
    return f"; did you mean {by_lower[near[0]]}?" if near else ""


@functools.cache
def _cronsim() -> Any:
    try:
        from cronsim import CronSim
    except ImportError as error:
        raise UsageError(
            "cron expressions need the library cronsim: pip install 'concorde-trio[schedule]'; "
            "a schedule at an instant (at=...) needs none"
        ) from error
    return CronSim

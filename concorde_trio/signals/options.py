"""What a worker can be told: every bound with its default, checked where it is written."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from concorde_trio.errors import UsageError
from concorde_trio.signals.emit import MAX_PAYLOAD
from concorde_trio.signals.schedule import Schedule, checked
from concorde_trio.watchdog import LIMIT, check_watchdog

MOST_GRACE = 86_400
"""Seconds that a schedule may be late and still fire: a day has 1,440 instants at most."""


def _count(minimum: int) -> Callable[[Any, attrs.Attribute[Any], Any], None]:
    def check(options: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= minimum):
            return
        raise UsageError(
            f"{attribute.name} must be a whole number of at least {minimum}, or None for no bound, not {value!r:.80}"
        )

    return check


def _required_count(options: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is None:
        raise UsageError(f"{attribute.name} must be a whole number of at least 1, not None")
    _count(1)(options, attribute, value)


def _seconds(options: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9):
        return
    raise UsageError(f"{attribute.name} must be seconds above 0, or None for none, not {value!r:.80}")


def _required_seconds(options: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is None:
        raise UsageError(f"{attribute.name} must be seconds above 0, not None")
    _seconds(options, attribute, value)


def _schedules(options: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    names = set()
    for each in value:
        if not isinstance(each, Schedule):
            raise UsageError(
                f'schedules must be Schedule(...)s, such as Schedule("morning", "day.began", cron="0 7 * * *"), '
                f"not {each!r:.80}"
            )
        checked(each, options.wall_clock(), max_payload=options.max_payload)
        if each.name in names:
            raise UsageError(f"two schedules have the name {each.name!r}; a name is one schedule's")
        names.add(each.name)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    try:
        return tuple(value)
    except TypeError:
        raise UsageError(f"schedules must be a list of Schedule(...)s, not {value!r:.80}") from None


def _grace(options: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    _required_seconds(options, attribute, value)
    if value > MOST_GRACE:
        raise UsageError(
            f"schedule_grace must be at most {MOST_GRACE:,} seconds, not {value!r:.80}: every instant in it is looked at"
        )


def _watchdog(options: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    check_watchdog(value)


@attrs.frozen(kw_only=True)
class WorkerOptions:
    """The bounds of a worker. Times are seconds on Trio's clock; None means no bound unless it says otherwise.

    ``claim_ahead``: the next signal is claimed while at most this many runs wait (CLM-2).
    ``max_running``: how many runs may run at once (LCK-3). ``max_payload``: bytes of a payload's JSON text (SIG-5). ``time_limit``: of a run whose prompt has none (RUN-6).
    ``handle_time_limit`` (CLM-5) and ``post_time_limit`` (PST-4): of one call.
    ``stop_grace``: how long a cancelling stop waits for what it cancelled (STP-3). ``drain_for`` and ``park_for``: when
    a drain becomes a park, and a park a cancel (STP-4). ``sweep``: how often the store is asked for signals that no
    notification told of (SIG-6). ``prune_after``: the age at which settled signals are removed, every
    ``prune_every`` (STP-5). ``wait_for_queue``: wait for another worker of this queue to end instead of raising (REC-1).
    ``watchdog``: seconds that the event loop may be blocked before it is logged who does it and where, 0 for never.
    ``capacity``: how many runs this process executes at once as a member of a fleet, on PostgreSQL; others take the rest.
    ``schedules``: put into the queue at the start, each under its name (SCH-5); one that is no longer here stays in the
    queue until it is removed. ``schedule_grace``: how many seconds late a schedule may still fire, a day at most (SCH-3).
    ``settle`` is awaited before the worker looks at what it found together (LCK-5); ``wall_clock`` gives seconds
    since the epoch. Both are for simulation and tests.
    """

    claim_ahead: int | None = attrs.field(default=100_000, validator=_count(0))
    max_running: int | None = attrs.field(default=None, validator=_count(1))
    max_payload: int = attrs.field(default=MAX_PAYLOAD, validator=_required_count)
    time_limit: float | None = attrs.field(default=None, validator=_seconds)
    handle_time_limit: float | None = attrs.field(default=60.0, validator=_seconds)
    post_time_limit: float | None = attrs.field(default=300.0, validator=_seconds)
    stop_grace: float = attrs.field(default=10.0, validator=_required_seconds)
    drain_for: float | None = attrs.field(default=None, validator=_seconds)
    park_for: float | None = attrs.field(default=None, validator=_seconds)
    sweep: float | None = attrs.field(default=5.0, validator=_seconds)
    prune_after: float | None = attrs.field(default=None, validator=_seconds)
    prune_every: float = attrs.field(default=3_600.0, validator=_required_seconds)
    wait_for_queue: bool = False
    watchdog: float = attrs.field(default=LIMIT, validator=_watchdog)
    capacity: int | None = attrs.field(default=None, validator=_count(1))
    schedule_grace: float = attrs.field(default=60.0, validator=_grace)
    settle: Callable[[], Awaitable[None]] | None = None
    wall_clock: Callable[[], float] = time.time
    schedules: tuple[Schedule, ...] = attrs.field(default=(), converter=_as_tuple, validator=_schedules)


def worker_options(given: dict[str, Any]) -> WorkerOptions:
    """The options; UsageError for one that there is not."""
    known = {field.name for field in attrs.fields(WorkerOptions)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise UsageError(f"no such option: {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
    return WorkerOptions(**given)

"""What a worker reports to its dispatcher, and what a step of the dispatcher asks of the worker."""

from __future__ import annotations

import enum

import attrs

from concorde_trio import events
from concorde_trio._sansio.changes import Change
from concorde_trio._sansio.live import LiveRun
from concorde_trio.records import PostOutcome, Prompt, RunOutcome, Signal, SignalRecord

CANCELLED_BY_OPERATOR = "cancelled by an operator"


class StopMode(enum.IntEnum):
    """STP-1 to STP-3, from mild to strict."""

    DRAIN = 1
    PARK = 2
    CANCEL = 3


@attrs.frozen
class KindInfo:
    """What the dispatcher needs to know of a kind's handler: has it a post phase, may its handle run again?"""

    holds: bool
    repeatable: bool


@attrs.frozen
class Handled:
    """handle returned prompts, or failed with ``error`` (CLM-5)."""

    signal: SignalRecord
    prompts: tuple[Prompt, ...] = ()
    error: str | None = None


@attrs.frozen
class Cancel:
    """An operator's request. ``pending`` is the target's row when it is a signal that nobody has claimed."""

    target: str
    request_id: int | None = None
    pending: SignalRecord | None = None


@attrs.frozen
class Taken:
    """A run that was offered was taken by a member of the fleet, which marked it started ``at`` (wall-clock seconds)."""

    run_id: str
    member: str
    at: float


@attrs.define
class Inbox:
    """What the worker found together."""

    ends: list[tuple[str, RunOutcome]] = attrs.field(factory=list)
    taken: list[Taken] = attrs.field(factory=list)
    lost: list[str] = attrs.field(factory=list)
    """Runs whose member of the fleet is dead: they fail, and are never run again (REC-2)."""
    recalled: list[str] = attrs.field(factory=list)
    """Runs that nobody had taken, and nobody can take any more: they wait to be started again."""
    posts: list[tuple[str, str | None]] = attrs.field(factory=list)
    handled: list[Handled] = attrs.field(factory=list)
    unhandled: list[SignalRecord] | None = None
    """Set when the handler task is done with what it was given: the signals it left untouched."""
    cancels: list[Cancel] = attrs.field(factory=list)
    stop: StopMode | None = None


@attrs.define
class Step:
    """What one step decided. ``changes`` are committed first; then everything else is done."""

    now: float
    changes: list[Change] = attrs.field(factory=list)
    events: list[events.Event] = attrs.field(factory=list)
    starts: list[LiveRun] = attrs.field(factory=list)
    runs_over: list[str] = attrs.field(factory=list)
    posts: list[tuple[Signal, PostOutcome]] = attrs.field(factory=list)
    handle: tuple[SignalRecord, ...] = ()
    handle_repeatable: bool = False
    """Whether what is to be handled may be handled before the changes are committed (CLM-6)."""
    cancel_runs: list[str] = attrs.field(factory=list)
    cancel_posts: list[str] = attrs.field(factory=list)
    cancel_handles: list[str] = attrs.field(factory=list)
    """The ids of signals whose handle, if it is the one being called, is to be cancelled."""
    claimed: set[str] = attrs.field(factory=set)

"""What a worker has in hand, as short documents: the signals it processes, their runs, and the locks these have or want.

The law: it is read from memory without an await, so that each document is true at one instant. A run names those it waits for
by their ids; who wants to know more of one asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from concorde_trio._sansio.dispatch import Dispatcher
from concorde_trio._sansio.live import LiveRun, LiveSignal
from concorde_trio._sansio.lock_table import Lock, LockView, Why
from concorde_trio.records import RunState, SignalRecord

Row: TypeAlias = dict[str, Any]

SHOWN_WAITING = 20
"""Runs that are listed as waiting for one lock; ``more_waiting`` counts the others."""


class InHand:
    """A worker's signals and runs. ``stopping(run_id)``: since when it is being stopped, None when it is not."""

    def __init__(self, core: Dispatcher, stopping: Callable[[str], float | None]) -> None:
        self._core = core
        self._stopping = stopping

    def signals(self) -> list[LiveSignal | SignalRecord]:
        """Those that are being processed, or whose handle is being called, in the order of their emission."""
        core = self._core
        handling = [record for signal_id, record in core.handling.items() if signal_id not in core.live]
        return sorted([*core.live.values(), *handling], key=_seq)

    def signal_row(self, signal: LiveSignal | SignalRecord) -> Row:
        """A signal, without its payload. ``runs``: how many it has, ``open`` how many of them have not ended."""
        live = signal if isinstance(signal, LiveSignal) else None
        return {
            **pending_row(signal if isinstance(signal, SignalRecord) else signal.record),
            "phase": "handling" if live is None else live.phase.value,
            "holds": live is not None and live.holds,
            "runs": 0 if live is None else len(live.runs),
            "open": 0 if live is None else live.open,
            "post_started_at": None if live is None else live.post_started_at,
            "error": None if live is None else live.handle_error,
        }

    def runs(self) -> list[LiveRun]:
        """Those in the lock table: what runs or is held, then what waits, each in run order."""
        core = self._core
        held = [
            live
            for signal in core.live.values()
            if signal.holds and signal.open < len(signal.runs)
            for live in signal.runs
            if live.ended_at is not None and live.run.id in core.table
        ]
        busy = [live for live in core.runs.values() if live.state is RunState.RUNNING]
        waiting = [live for live in core.runs.values() if live.state is not RunState.RUNNING]
        return sorted([*held, *busy], key=_position) + sorted(waiting, key=_position)

    def run_rows(self, runs: Sequence[LiveRun]) -> list[Row]:
        """These runs as they are now, without those that have left the lock table meanwhile."""
        table = self._core.table
        here = [live for live in runs if live.run.id in table]
        why = table.why_all([live.run.id for live in here])
        return [self._run_row(live, reason) for live, reason in zip(here, why, strict=True)]

    def _run_row(self, live: LiveRun, why: Why[str]) -> Row:
        run = live.run
        state, since = "waiting" if why.missing else "ready", run.queued_at
        if live.ended_at is not None:
            state, since = "held", live.ended_at
        elif live.started_at is not None:
            state, since = "running", live.started_at
        return {
            "id": run.id,
            "signal_id": run.signal_id,
            "kind": live.signal.record.kind,
            "position": run.position,
            "session": run.session,
            "resources": list(run.resources),
            "state": state,
            "outcome": live.state.value if live.ended_at is not None else None,
            "since": since,
            "queued_at": run.queued_at,
            "started_at": live.started_at,
            "ended_at": live.ended_at,
            "time_limit": run.time_limit,
            "stopping_since": self._stopping(run.id) if state == "running" else None,
            "waits_for": [
                {
                    "space": missing.lock.space,
                    "name": missing.lock.name,
                    "run_id": missing.blocker,
                    "position": missing.position,
                }
                for missing in why.missing
            ],
            "root": why.root if why.missing else None,
        }

    def locks(self, most: int) -> tuple[list[Row], int]:
        """At most so many locks, those that somebody waits for first; and how many more there are."""
        found = sorted(self._core.table.locks(SHOWN_WAITING), key=_wanted)
        return [_lock_row(view) for view in found[:most]], max(0, len(found) - most)


def _lock_row(view: LockView[str]) -> Row:
    return {
        "space": view.lock.space,
        "name": view.lock.name,
        "holders": list(view.holders),
        "waiting": list(view.waiting),
        "more_waiting": view.more,
    }


def _wanted(view: LockView[str]) -> tuple[bool, bool, str]:
    return (not view.waiting, *_name(view.lock))


def _name(lock: Lock) -> tuple[bool, str]:
    return (lock.space != "session", lock.name)


def _seq(signal: LiveSignal | SignalRecord) -> int:
    return signal.seq if isinstance(signal, SignalRecord) else signal.record.seq


def _position(live: LiveRun) -> int:
    return live.run.position


def pending_row(record: SignalRecord) -> Row:
    """A signal that nobody has claimed, without its payload."""
    return {
        "id": record.id,
        "seq": record.seq,
        "kind": record.kind,
        "emitted_at": record.emitted_at,
        "retry_of": record.retry_of,
    }


def ids(signals: Iterable[LiveSignal | SignalRecord]) -> set[str]:
    """The ids of signals in hand."""
    return {signal.id if isinstance(signal, SignalRecord) else signal.record.id for signal in signals}

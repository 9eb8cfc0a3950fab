"""What a timeline is drawn from: one plain row for each run, of a played scenario or of a real queue.

The law of this module: a row says when things were, in one unit (seconds, from any start); who waited for whom is
read from the rows by rule LCK-2 and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from concorde_trio.records import Run, SignalRecord
from concorde_trio.simulate.scenario import SignalScenario, parse_signal_scenario

SAME_STEP = 0.001
"""Seconds. A settlement within a millisecond of the last end had no post phase worth drawing."""


@attrs.frozen(kw_only=True)
class TimelineRow:
    """One run. Times are seconds; None: not yet, or never.

    ``state`` is a RunState's value. ``released`` is when its locks were let go. ``post_started`` and ``post_ended``
    are its signal's post phase (LCK-4). ``fresh``: its session is its own (LCK-1).
    """

    run: str
    signal: str
    session: str
    resources: tuple[str, ...] = ()
    fresh: bool = False
    state: str
    queued: float
    started: float | None = None
    ended: float | None = None
    released: float | None = None
    post_started: float | None = None
    post_ended: float | None = None


@attrs.frozen
class WaitedFor:
    """One reason for a wait: the nearest unreleased run before it on one of its locks (LCK-7)."""

    run: str
    lock: str


def rows_from_result(scenario: SignalScenario | Mapping[str, Any], result: Mapping[str, Any]) -> list[TimelineRow]:
    """The rows of a played scenario; ``result`` is what ``simulate`` gave for it."""
    scenario = scenario if isinstance(scenario, SignalScenario) else parse_signal_scenario(scenario)
    rows: list[TimelineRow] = []
    for signal in scenario.in_order:
        outcome = result["signals"][signal.id]
        post = outcome["post"]
        for prompt in signal.prompts:
            run = result["runs"].get(prompt.id)
            if run is None:  # its signal was not handled, or handle failed
                continue
            held = signal.post is not None and run["started"] is not None
            rows.append(
                TimelineRow(
                    run=prompt.id,
                    signal=signal.id,
                    session=prompt.session if prompt.session is not None else f"run_{prompt.id}",
                    resources=prompt.resources,
                    fresh=prompt.session is None,
                    state=run["state"],
                    queued=run["queued"],
                    started=run["started"],
                    ended=run["ended"],
                    released=outcome["settled"] if held else run["ended"],
                    post_started=post["started"] if held and post else None,
                    post_ended=outcome["settled"] if held and post else None,
                )
            )
    return rows


def rows_from_records(
    signals: Iterable[SignalRecord],
    runs: Iterable[Run],
    *,
    posts: Mapping[str, tuple[float, float | None]] | None = None,
) -> list[TimelineRow]:
    """The rows of a real queue, in the order of their positions; times are wall-clock seconds.

    ``posts``: by signal id when its post phase started and ended, from PostStarted and PostEnded events. Where it is
    not told, a post phase is taken to reach from the last end of the signal's runs to its settlement.
    """
    records = {signal.id: signal for signal in signals}
    ordered = sorted(runs, key=lambda run: run.position)
    last_end: dict[str, float | None] = {}
    for run in ordered:
        known = last_end.get(run.signal_id, run.ended_at)
        last_end[run.signal_id] = None if known is None or run.ended_at is None else max(known, run.ended_at)
    return [
        _row(run, records.get(run.signal_id), last_end[run.signal_id], (posts or {}).get(run.signal_id))
        for run in ordered
    ]


def _row(
    run: Run, signal: SignalRecord | None, last_end: float | None, told: tuple[float, float | None] | None
) -> TimelineRow:
    settled = signal.settled_at if signal else run.ended_at
    holds = run.started_at is not None and (told is not None or (signal is not None and signal.holds))
    post = told
    if holds and told is None and last_end is not None and (settled is None or settled - last_end > SAME_STEP):
        post = (last_end, settled)
    return TimelineRow(
        run=run.id,
        signal=run.signal_id,
        session=run.session,
        resources=run.resources,
        fresh=run.session == f"run_{run.id}",
        state=run.state.value,
        queued=run.queued_at,
        started=run.started_at,
        ended=run.ended_at,
        released=settled if holds else run.ended_at,
        post_started=post[0] if holds and post else None,
        post_ended=post[1] if holds and post else None,
    )


def waited_for(rows: Sequence[TimelineRow]) -> dict[str, tuple[WaitedFor, ...]]:
    """By run, whom it had to wait for; a run that did not wait is not in it. ``rows`` in emission order."""
    line: dict[tuple[str, str], TimelineRow] = {}
    found: dict[str, tuple[WaitedFor, ...]] = {}
    for row in rows:
        locks = [("session", row.session), *(("resource", name) for name in row.resources)]
        reasons = []
        for lock in locks:
            before = line.get(lock)
            if before is not None and _stood_before(before, row):
                reasons.append(WaitedFor(before.run, f"{lock[0]} {lock[1]}"))
            line[lock] = row
        until = row.started if row.started is not None else row.ended
        if reasons and (until is None or until > row.queued):
            found[row.run] = tuple(reasons)
    return found


def _stood_before(before: TimelineRow, row: TimelineRow) -> bool:
    """Whether ``before`` still had its locks, against this run, after this run was queued."""
    # An ended run never blocks a run of its own signal, though its locks are held (LCK-4).
    free = before.ended if before.signal == row.signal else before.released
    return free is None or free > row.queued

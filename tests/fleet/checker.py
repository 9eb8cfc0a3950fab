"""What must hold of a fleet, whatever was killed, stopped, cut off or delayed when. A pure function: evidence in, faults out.

Three witnesses that do not know each other: the journal, which agents and handlers write; the database's own record of who
changed which row (``audit.sql``); and the producer, who knows when each signal was committed.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from tests.acceptance.killing.checker import Evidence, history_faults

SLACK = 8.0
"""Seconds between a look at what is pending and the claim of it, while commits are held back and connections cut."""


@attrs.frozen
class Audited:
    """A change that a row went through. ``member_state``: of the member that has the run; ``leads``: the leader wrote.

    ``what``: ``signal`` or ``run`` (``before`` and ``after`` are states), ``take`` (members) or ``outcome``. ``at``: wall clock.
    """

    at: float
    what: str
    id: str
    before: str | None
    after: str | None
    application: str
    member_state: str | None
    leads: bool
    epoch: int
    tx: int


@attrs.frozen
class Row:
    """A signal as it stands in the end. ``visible_at``: when its commit was known, by the wall clock."""

    id: str
    number: int
    seq: int
    state: str
    error: str | None
    visible_at: float


@attrs.frozen
class FleetEvidence:
    """``journal``: its lines. ``payloads`` and ``signals`` by the number that the producer gave; ``audit``: in order.

    ``positions``: of each signal's first run. ``failed_runs``: the ids of runs that failed, by their signal's number. ``over``: members that ended otherwise than by leaving.
    ``left``: processes that live though all is over; ``ended``: processes that ended though nobody asked; ``emitted``: the
    numbers whose emit returned. ``doctor``: what it found at the end.
    """

    journal: Sequence[Mapping[str, Any]]
    payloads: Mapping[int, Mapping[str, Any]]
    signals: Mapping[int, Row]
    audit: Sequence[Audited]
    positions: Mapping[int, int]
    failed_runs: Mapping[int, Sequence[str]]
    over: frozenset[str]
    left: Sequence[int] = ()
    ended: Sequence[str] = ()
    emitted: frozenset[int] = frozenset()
    doctor: Sequence[str] = ()

    @property
    def history(self) -> Evidence:
        """What the checker of one process looks at, with runs in the order in which they were queued."""
        settled = {number: row.state for number, row in self.signals.items()}
        last = max(self.positions.values(), default=0) + 1
        ordered = sorted(self.payloads, key=lambda number: self.positions.get(number, last))
        return Evidence(self.journal, {number: self.payloads[number] for number in ordered}, settled, [], self.left)


def faults(evidence: FleetEvidence) -> list[str]:
    """Every rule that this evidence breaks, in words; an empty list if all is well."""
    return [
        *history_faults(evidence.history),
        *_lost(evidence),
        *_claimed_out_of_order(evidence),
        *_twice(evidence),
        *_late_writes(evidence),
        *_wrongly_failed(evidence),
        *(f"a process ended by itself: {each}" for each in evidence.ended),
        *(f"Q-21: {each}" for each in evidence.doctor),
    ]


def _lost(evidence: FleetEvidence) -> Iterable[str]:
    for number in sorted(evidence.emitted - evidence.signals.keys()):
        yield f"SIG-1: signal {number} was emitted, and is not there"


def _claimed_out_of_order(evidence: FleetEvidence) -> Iterable[str]:
    """SIG-3, CLM-1: nothing is claimed before what has a lower seq and was there long enough."""
    waiting = {row.id: row for row in evidence.signals.values()}
    claims = [each for each in evidence.audit if each.what == "signal" and each.before == "pending"]
    for _, commit in itertools.groupby(claims, key=lambda claim: claim.tx):
        # One statement may claim many, and the database says of none which was first: their runs' positions do.
        at = 0.0
        claimed = []
        for claim in commit:
            at = claim.at
            if claim.id in waiting:
                claimed.append(waiting.pop(claim.id))
        claimed.sort(key=lambda row: row.seq)
        queued = [row for row in claimed if row.number in evidence.positions]
        for one, two in itertools.pairwise(queued):
            late = one.visible_at >= at - SLACK
            if not late and evidence.positions[one.number] > evidence.positions[two.number]:
                yield f"SIG-3: signal {two.number} was queued before {one.number}, which stood before it"
        for mine in claimed:
            passed = [row.number for row in waiting.values() if row.seq < mine.seq and row.visible_at < at - SLACK]
            if passed:
                yield f"SIG-3: signal {mine.number} was claimed before {sorted(passed)[:5]}, which stood before it"


def _twice(evidence: FleetEvidence) -> Iterable[str]:
    for what, states in (("run", ("running",)), ("run", ("done", "failed", "limited", "cancelled"))):
        counts = Counter(each.id for each in evidence.audit if each.what == what and each.after in states)
        for id_, times in counts.items():
            if times > 1:
                yield f"RUN-1, RUN-2: run {id_} became {' or '.join(states)} {times} times"
    for id_, times in Counter(
        each.id for each in evidence.audit if each.what == "signal" and each.after in ("done", "failed")
    ).items():
        if times > 1:
            yield f"SIG-4: signal {id_} was settled {times} times"


def _late_writes(evidence: FleetEvidence) -> Iterable[str]:
    """Q-08, Q-18, Q-19: whoever lost its lease or its epoch changes no row."""
    for change in evidence.audit:
        if not change.leads and change.member_state not in ("live", "draining"):
            who = f"{change.application}, no leader ({change.member_state or 'and not the member that has the run'}),"
            yield f"Q-19: in epoch {change.epoch} {who} changed {change.what} {change.id} to {change.after}"


def _wrongly_failed(evidence: FleetEvidence) -> Iterable[str]:
    """REC-2: a run fails by the death of who had taken it, a signal by such a run or by a handle or post that was cut."""
    takers = {each.id: each.after for each in evidence.audit if each.what == "take" and each.after is not None}
    begun: dict[int, set[str]] = {}
    for line in evidence.journal:
        if "signal" in line:
            begun.setdefault(line["signal"], set()).add(line["what"])
    for number, row in evidence.signals.items():
        if row.state != "failed":
            continue
        runs = evidence.failed_runs.get(number, ())
        for run in runs:
            if (taker := takers.get(run)) not in evidence.over:
                yield f"REC-2: run {run} failed, though member {taker} that had it lived on: {row.error}"
        marks = begun.get(number, set())
        cut = any(f"{what}-start" in marks and f"{what}-end" not in marks for what in ("handle", "post"))
        # A leader may die between the mark and the first line, or between the last one and the commit.
        if not runs and not cut and "cut off" not in (row.error or ""):
            yield f"REC-2: signal {number} failed, though nothing of it was cut: {row.error}"
    leaders = len({each.epoch for each in evidence.audit})
    handles = [number for number, row in evidence.signals.items() if (row.error or "").startswith("handle was cut off")]
    if len(handles) > leaders - 1:
        yield f"CLM-6: {leaders - 1} changes of the leader cut {len(handles)} handles: {handles}"

"""What must hold of a fleet, whatever was killed, stopped, cut off or delayed when. A pure function: evidence in, faults out.

Three witnesses that do not know each other: the journal, which agents and handlers write; the database's own record of who
changed which row (``audit.sql``); and the producer, who knows when each signal was committed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from tests.acceptance.killing.checker import Evidence, history_faults

SLACK = 1.0
"""Seconds between a look at what is pending and the claim of it."""


@attrs.frozen
class Audited:
    """A change that a row went through. ``writer_state``: of the member whose connection wrote; ``leads``: it was the leader's.

    ``what``: ``signal`` or ``run`` (``before`` and ``after`` are states), ``take`` (members) or ``outcome``. ``at``: wall clock.
    """

    at: float
    what: str
    id: str
    before: str | None
    after: str | None
    application: str
    writer_state: str | None
    leads: bool
    epoch: int


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

    ``failed_runs``: the ids of runs that failed, by their signal's number. ``over``: members that ended otherwise than by leaving.
    ``left``: processes that live though all is over; ``ended``: processes that ended though nobody asked; ``emitted``: the
    numbers whose emit returned. ``doctor``: what it found at the end.
    """

    journal: Sequence[Mapping[str, Any]]
    payloads: Mapping[int, Mapping[str, Any]]
    signals: Mapping[int, Row]
    audit: Sequence[Audited]
    failed_runs: Mapping[int, Sequence[str]]
    over: frozenset[str]
    left: Sequence[int] = ()
    ended: Sequence[str] = ()
    emitted: frozenset[int] = frozenset()
    doctor: Sequence[str] = ()

    @property
    def claims(self) -> list[int]:
        """The numbers of signals, in the order in which they were claimed."""
        numbers = {row.id: row.number for row in self.signals.values()}
        return [numbers[each.id] for each in self.audit if each.what == "signal" and each.after == "processing"]

    @property
    def history(self) -> Evidence:
        """What the checker of one process looks at, with runs in the order of their claims."""
        settled = {number: row.state for number, row in self.signals.items()}
        unclaimed = [number for number in self.payloads if number not in set(self.claims)]
        ordered = {number: self.payloads[number] for number in [*dict.fromkeys(self.claims), *unclaimed]}
        return Evidence(self.journal, ordered, settled, [], self.left)


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
    rows = {row.id: row for row in evidence.signals.values()}
    waiting = dict(rows)
    for change in evidence.audit:
        if change.what == "signal" and change.before == "pending" and change.id in waiting:
            mine = waiting.pop(change.id)
            passed = [
                row.number
                for row in waiting.values()
                if row.seq < mine.seq and row.visible_at < change.at - SLACK and row.state != "pending"
            ]
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
        if not change.leads and change.writer_state not in ("live", "draining"):
            who = f"{change.application} ({change.writer_state or 'no leader, and no member that lives'})"
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
        if not runs and not cut and "cut" not in (row.error or "") and "stopped" not in (row.error or ""):
            yield f"REC-2: signal {number} failed, though nothing of it was cut: {row.error}"

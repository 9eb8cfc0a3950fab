"""What is wrong with a queue, from what stands in its rows: the decisions of ``doctor`` (Q-21).

The law: a row is *cut* when a worker that died left it so and the next one settles it (REC-2 to REC-5), and *broken* when no rule
allows it, whoever lives. While a worker is at it, what it is only about to write is not held against it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import attrs

from concorde_trio.records import Run, RunState, SignalPhase, Unfinished

PATIENCE = 60.0
"""Seconds that something may be about to be written before it counts as forgotten."""

START = "start a worker (concorde-trio serve): it settles what was cut off, before it claims anything"
REPORT = "please report it, with this output and the log of that time"


@attrs.frozen
class Finding:
    """Rows that break ``rule``: how many, the ids of the first, what is wrong with them, and what to do."""

    kind: Literal["cut", "broken"]
    rule: str
    what: str
    ids: tuple[str, ...]
    count: int
    advice: str


@attrs.frozen(kw_only=True)
class Evidence:
    """What one look at a queue gave. ``now`` is the wall clock.

    ``served``: a worker has the queue. ``owners``: where members of a fleet execute runs, which of them have a member that
    lives, by the id of the run; None where the worker alone does. ``rows``: what was found by single rows, already said.
    """

    served: bool
    now: float
    unfinished: Sequence[Unfinished]
    owners: Mapping[str, bool] | None = None
    rows: Sequence[Finding] = ()


def diagnose(evidence: Evidence) -> list[Finding]:
    """Every finding, the broken ones first; an empty list if all is well."""
    found = [
        *evidence.rows,
        *_without_owner(evidence),
        *_cut_signals(evidence),
        *_locks(evidence),
        *_tags(evidence),
        *_forgotten(evidence),
    ]
    return sorted(found, key=lambda finding: finding.kind)


def finding(
    kind: Literal["cut", "broken"], rule: str, what: str, ids: Collection[str], advice: str, most: int = 20
) -> Iterator[Finding]:
    """One for these ids, none if there are none."""
    if ids:
        yield Finding(kind, rule, what, tuple(ids)[:most], len(ids), advice)


def _without_owner(evidence: Evidence) -> Iterator[Finding]:
    running = [run.id for entry in evidence.unfinished for run in entry.runs if run.state is RunState.RUNNING]
    if evidence.owners is None:
        lost = [] if evidence.served else running
        what = "runs are running, and no worker has the queue"
    else:
        lost = [run for run in running if not evidence.owners.get(run, False)]
        what = "runs are running, and no living member executes them"
    advice = "the leader fails them within a lease; if they stay, see concorde-trio fleet" if evidence.served else START
    yield from finding("cut", "REC-2", what, lost, advice)


def _cut_signals(evidence: Evidence) -> Iterator[Finding]:
    if evidence.served:
        return
    for phase, what in ((SignalPhase.HANDLING, "handle"), (SignalPhase.POSTING, "post")):
        cut = [entry.signal.id for entry in evidence.unfinished if entry.signal.phase is phase]
        rule = "REC-4" if phase is SignalPhase.POSTING else "CLM-6"
        yield from finding("cut", rule, f"signals are in the middle of {what}, and no worker has the queue", cut, START)


def _unreleased(evidence: Evidence) -> Iterator[tuple[Run, bool]]:
    """Claimed runs that have their locks or wait for them, in order, and whether they are held for their signal's post."""
    for entry in evidence.unfinished:
        for run in entry.runs:
            if run.ended_at is None:
                yield run, False
            elif entry.signal.holds and run.started_at is not None:
                yield run, True


def _locks(evidence: Evidence) -> Iterator[Finding]:
    """LCK-2: nothing runs behind an earlier run that has, or waits for, one of its locks."""
    before: dict[tuple[str, str], list[tuple[Run, bool]]] = {}
    wrong: list[str] = []
    for run, held in sorted(_unreleased(evidence), key=lambda one: one[0].position):
        for lock in (("session", run.session), *(("resource", name) for name in run.resources)):
            line = before.setdefault(lock, [])
            if run.state is RunState.RUNNING:
                for other, other_held in line:
                    if not (other_held and other.signal_id == run.signal_id):
                        wrong.append(f"{run.id} (with {other.id} on {lock[0]} {lock[1]})")
            line.append((run, held))
    advice = f"stop the worker and look at what both do; {REPORT}"
    yield from finding("broken", "LCK-2", "runs were started while an earlier one has a lock of theirs", wrong, advice)


def _tags(evidence: Evidence) -> Iterator[Finding]:
    """TAG-2: a tag is live on one run."""
    live: dict[str, list[str]] = {}
    for entry in evidence.unfinished:
        for run in entry.runs:
            if run.state is RunState.RUNNING and run.tag is not None:
                live.setdefault(run.tag, []).append(run.id)
    twice = [run for runs in live.values() if len(runs) > 1 for run in runs]
    yield from finding("broken", "TAG-2", "running runs have the same tag", twice, REPORT)


def _forgotten(evidence: Evidence) -> Iterator[Finding]:
    """PST-1: once all runs have ended, something happens."""
    if not evidence.served:
        return
    forgotten = [
        entry.signal.id
        for entry in evidence.unfinished
        if entry.signal.phase is SignalPhase.RUNNING and _over_since(entry.runs) < evidence.now - PATIENCE
    ]
    what = f"signals of which every run ended over {PATIENCE:.0f} s ago are neither settled nor in their post"
    advice = f"look at /readyz and the log of the worker, then restart it; {REPORT}"
    yield from finding("broken", "PST-1", what, forgotten, advice)


def _over_since(runs: Iterable[Run]) -> float:
    ends = [run.ended_at if run.ended_at is not None else float("inf") for run in runs]
    return max(ends, default=float("inf"))

"""The checker of the fleet, on evidence made up for it: each planted fault is found, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from tests.acceptance.test_checker import JOURNAL, PAYLOADS
from tests.fleet.checker import Audited, FleetEvidence, Row, faults

A, B = "member-a", "member-b"


def wrote(
    at: float, what: str, id_: str, before: str | None, after: str, *, by: str | None = None, epoch: int = 1
) -> Audited:
    """A change by the leader, or by the member ``by`` in this state."""
    return Audited(at, what, id_, before, after, "concorde-trio writer x", by, by is None, epoch, tx=round(at * 10))


def life(run: str, at: float, member: str = A, outcome: str = "done") -> list[Audited]:
    """A run is taken and ends."""
    return [
        wrote(at, "take", run, None, member, by="live"),
        wrote(at, "run", run, "pending", "running", by="live"),
        wrote(at + 1, "outcome", run, None, outcome, by="draining"),
        wrote(at + 1, "run", run, "running", outcome),
    ]


AUDIT = [
    wrote(100.0, "signal", "s0", "pending", "processing"),
    wrote(100.1, "signal", "s1", "pending", "processing"),
    *life("s0-0", 101),
    wrote(103, "signal", "s0", "processing", "done"),
    *life("s1-0", 103),
    *life("s1-1", 105),
    wrote(107, "signal", "s1", "processing", "done"),
]
ROWS = {0: Row("s0", 0, 5, "done", None, 90.0), 1: Row("s1", 1, 6, "done", None, 91.0)}
GOOD = FleetEvidence(JOURNAL, PAYLOADS, ROWS, AUDIT, {0: 1, 1: 2}, {}, frozenset(), emitted=frozenset({0, 1}))
TOGETHER = [attrs.evolve(each, tx=1) for each in AUDIT]
FAILED = {**ROWS, 1: attrs.evolve(ROWS[1], state="failed", error="the worker stopped while it ran")}


def test_nothing_is_found_where_all_is_well() -> None:
    """LCK-2: the checker does not cry wolf."""
    assert faults(GOOD) == []


def with_failed(audit: Sequence[Audited]) -> list[Audited]:
    return [attrs.evolve(each, after="failed") if each.after == "done" and "s1" in each.id else each for each in audit]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"emitted": frozenset({0, 1, 2})}, "SIG-1: signal 2 was emitted"),
        ({"signals": {**ROWS, 1: attrs.evolve(ROWS[1], state="processing")}}, "SIG-4: signal 1 is processing"),
        ({"signals": {**ROWS, 1: attrs.evolve(ROWS[1], seq=4)}}, "SIG-3: signal 0 was claimed before [1]"),
        ({"audit": TOGETHER, "positions": {0: 2, 1: 1}}, "SIG-3: signal 1 was queued before 0"),
        ({"positions": {0: 3, 1: 1}}, "LCK-2: on resource w, run (0, 0) started before run (1, 0)"),
        ({"audit": [*AUDIT, *life("s1-0", 108)]}, "RUN-1, RUN-2: run s1-0 became running 2 times"),
        ({"audit": [*AUDIT, wrote(110, "run", "s1-0", "done", "failed")]}, "RUN-1, RUN-2: run s1-0 became done or"),
        ({"audit": [*AUDIT, wrote(110, "signal", "s0", "done", "failed")]}, "SIG-4: signal s0 was settled 2 times"),
        ({"audit": [*AUDIT, wrote(110, "outcome", "s0-0", None, "done", by="dead")]}, "Q-19: in epoch 1 "),
        ({"audit": [*AUDIT, wrote(110, "signal", "s2", None, "done", by="left", epoch=2)]}, "Q-19: in epoch 2 "),
        ({"ended": ["3 with 1"]}, "a process ended by itself: 3 with 1"),
        ({"doctor": ["a finding"]}, "Q-21: a finding"),
        ({"left": [4711]}, "REC-6: process 4711 was left"),
        (
            {"signals": FAILED, "audit": with_failed(AUDIT), "failed_runs": {1: ["s1-0"]}},
            "REC-2: run s1-0 failed, though member member-a that had it lived on",
        ),
        ({"signals": FAILED, "audit": with_failed(AUDIT)}, "REC-2: signal 1 failed, though nothing of it was cut"),
        (
            {"signals": {**ROWS, 1: attrs.evolve(ROWS[1], state="failed", error="handle was cut off when")}},
            "CLM-6: 0 changes of the leader cut 1 handles: [1]",
        ),
        (
            {"journal": [*JOURNAL, {"at": 9, "what": "run-start", "run": "1.1", "pid": 1}]},
            "REC-2: run 1.1 was started 2",
        ),
    ],
)
def test_each_planted_fault_is_found(changes: dict[str, Any], found: str) -> None:
    """SIG-1, SIG-3, SIG-4, RUN-1, CLM-6, REC-2, REC-6, Q-19, Q-21: each by its rule."""
    assert any(text.startswith(found) for text in faults(attrs.evolve(GOOD, **changes)))


def test_a_run_may_fail_by_the_death_of_its_member() -> None:
    """REC-2: the signal fails with it, and that is no fault."""
    evidence = attrs.evolve(
        GOOD,
        signals=FAILED,
        audit=with_failed(AUDIT),
        failed_runs={1: ["s1-0"]},
        over=frozenset({A}),
    )
    assert faults(evidence) == []


def test_order_is_that_of_the_claims_where_a_signal_was_seen_late() -> None:
    """SIG-3, Q-04: what was committed after a later seq was claimed takes its place among the unclaimed."""
    late = attrs.evolve(GOOD, signals={**ROWS, 1: attrs.evolve(ROWS[1], seq=4, visible_at=99.9)})
    assert faults(late) == []

"""Which state may follow which: the tables, and the functions that apply them."""

from __future__ import annotations

import itertools

import attrs
import pytest

from concorde_trio._sansio.lifecycle import (
    PHASE_TRANSITIONS,
    RUN_COLUMNS,
    RUN_ENDED,
    RUN_TRANSITIONS,
    SIGNAL_COLUMNS,
    SIGNAL_SETTLED,
    SIGNAL_TRANSITIONS,
    check_phase,
    check_run,
    check_run_columns,
    check_signal,
    check_signal_columns,
)
from concorde_trio.errors import InternalError
from concorde_trio.records import Run, RunState, SignalPhase, SignalRecord, SignalState, Usage

SIGNAL_STEPS = {("pending", "processing"), ("processing", "done"), ("processing", "failed")}
PHASE_STEPS = {
    (None, "handling"),
    ("handling", "running"),
    ("running", "posting"),
    ("handling", None),
    ("running", None),
    ("posting", None),
}
RUN_STEPS = {
    ("pending", "running"),
    ("pending", "failed"),
    ("pending", "cancelled"),
    ("running", "done"),
    ("running", "failed"),
    ("running", "limited"),
    ("running", "cancelled"),
}

SIGNAL = SignalRecord(id="s1", seq=1, kind="k", payload=None, state=SignalState.PENDING, emitted_at=1.0)
RUN = Run(id="r1", signal_id="s1", signal_seq=1, position=1, index=0, session="ann", prompt="hi", queued_at=1.0)

SIGNALS = {
    SignalState.PENDING: SIGNAL,
    SignalState.PROCESSING: attrs.evolve(
        SIGNAL, state=SignalState.PROCESSING, phase=SignalPhase.RUNNING, claimed_at=2.0, error="handle failed"
    ),
    SignalState.DONE: attrs.evolve(SIGNAL, state=SignalState.DONE, claimed_at=2.0, settled_at=3.0),
    SignalState.FAILED: attrs.evolve(
        SIGNAL, state=SignalState.FAILED, claimed_at=2.0, settled_at=3.0, error="no handler"
    ),
}
RUNS = {
    RunState.PENDING: attrs.evolve(RUN, tag="0123456789abcdef"),
    RunState.RUNNING: attrs.evolve(RUN, state=RunState.RUNNING, started_at=2.0, tag="0123456789abcdef"),
    RunState.DONE: attrs.evolve(RUN, state=RunState.DONE, started_at=2.0, ended_at=3.0, text="", usage=Usage()),
    RunState.FAILED: attrs.evolve(RUN, state=RunState.FAILED, ended_at=3.0, error="its tag is live on run r0"),
    RunState.LIMITED: attrs.evolve(RUN, state=RunState.LIMITED, started_at=2.0, ended_at=3.0, error="tokens"),
    RunState.CANCELLED: attrs.evolve(RUN, state=RunState.CANCELLED, ended_at=3.0),
}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(SignalState, repeat=2)))
def test_a_signal_goes_one_way(before: SignalState, after: SignalState) -> None:
    """SIG-4: pending, processing, then done or failed; nothing else."""
    if (before, after) in SIGNAL_STEPS:
        check_signal(before, after)
    else:
        with pytest.raises(InternalError, match=f"a signal cannot go from {before} to {after}"):
            check_signal(before, after)


@pytest.mark.parametrize(("before", "after"), list(itertools.product([None, *SignalPhase], repeat=2)))
def test_a_phase_goes_one_way(before: SignalPhase | None, after: SignalPhase | None) -> None:
    """REC-2, CLM-6: what recovery decides by."""
    if (before, after) in PHASE_STEPS:
        check_phase(before, after)
    else:
        with pytest.raises(InternalError, match=f"cannot go from {before} to {after}"):
            check_phase(before, after)


@pytest.mark.parametrize(("before", "after"), list(itertools.product(RunState, repeat=2)))
def test_a_run_goes_one_way(before: RunState, after: RunState) -> None:
    """RUN-2: what never started can fail or be cancelled, and is never done or limited."""
    if (before, after) in RUN_STEPS:
        check_run(before, after)
    else:
        with pytest.raises(InternalError, match=f"a run cannot go from {before} to {after}"):
            check_run(before, after)


def test_the_tables_name_every_state_and_cannot_be_changed() -> None:
    """SIG-4, RUN-2: a state that is added is decided here."""
    assert SIGNAL_TRANSITIONS.keys() == SIGNAL_COLUMNS.keys() == set(SignalState)
    assert PHASE_TRANSITIONS.keys() == {None, *SignalPhase}
    assert RUN_TRANSITIONS.keys() == RUN_COLUMNS.keys() == set(RunState)
    assert {"done", "failed"} == SIGNAL_SETTLED
    assert {"done", "failed", "limited", "cancelled"} == RUN_ENDED
    with pytest.raises(TypeError):
        RUN_TRANSITIONS[RunState.DONE] = frozenset()  # type: ignore[index]


def test_the_columns_are_those_of_the_records() -> None:
    """SIG-4, RUN-2: a renamed column is noticed."""
    signal_columns = {column.name for column in attrs.fields(SignalRecord)}
    run_columns = {column.name for column in attrs.fields(Run)}
    assert all(columns.keys() <= signal_columns for columns in SIGNAL_COLUMNS.values())
    assert all(columns.keys() <= run_columns for columns in RUN_COLUMNS.values())


@pytest.mark.parametrize("state", SignalState)
def test_a_signal_of_each_state_holds_what_it_must(state: SignalState) -> None:
    """SIG-4: and is refused when any of it is the other way round."""
    check_signal_columns(SIGNALS[state])
    others = {"phase": SignalPhase.HANDLING, "claimed_at": 1.0, "settled_at": 1.0, "error": "why"}
    for column, must in SIGNAL_COLUMNS[state].items():
        with pytest.raises(InternalError, match=f"signal s1 is {state}, so its {column} must be"):
            check_signal_columns(attrs.evolve(SIGNALS[state], **{column: None if must else others[column]}))


@pytest.mark.parametrize("state", RunState)
def test_a_run_of_each_state_holds_what_it_must(state: RunState) -> None:
    """RUN-2, TAG-4: and is refused when any of it is the other way round."""
    check_run_columns(RUNS[state])
    others = {"started_at": 1.0, "ended_at": 1.0, "error": "why", "text": "hi", "usage": Usage(), "tag": "0" * 16}
    for column, must in RUN_COLUMNS[state].items():
        with pytest.raises(InternalError, match=f"run r1 is {state}, so its {column} must be"):
            check_run_columns(attrs.evolve(RUNS[state], **{column: None if must else others[column]}))


def test_an_error_is_never_empty() -> None:
    """SIG-4, RUN-7: a person has to act on it."""
    with pytest.raises(InternalError, match="error must be set, not ''"):
        check_signal_columns(attrs.evolve(SIGNALS[SignalState.FAILED], error=""))
    with pytest.raises(InternalError, match="error must be set, not ''"):
        check_run_columns(attrs.evolve(RUNS[RunState.LIMITED], error=""))

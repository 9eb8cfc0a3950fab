"""A batch of changes, folded to one row for each signal, run and session it touches: what a SQL store writes.

The law: a plan says what the rows must be before, and what they are after, so that writing it in any order gives what
the changes give in theirs. Changes that contradict each other are refused here; what contradicts the rows is found by
the store, which counts what it wrote. Cost grows with the changes alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from concorde_trio._sansio.changes import (
    Change,
    ClaimSignal,
    EndRun,
    FinishRequest,
    InterruptSignal,
    OfferRun,
    QueueRuns,
    SettleSignal,
    StartPost,
    StartRun,
    StopExecution,
)
from concorde_trio._sansio.json_values import encode
from concorde_trio._sansio.session_changes import (
    AddInput,
    AddMessage,
    EmitSignals,
    LinkInputs,
    SaveSession,
    SessionChange,
    SettleInputs,
)
from concorde_trio.errors import StoreError
from concorde_trio.records import NewSignal, Run, RunState, SignalPhase, SignalState, Usage
from concorde_trio.stores.change_checks import END_FROM, check_end, check_queue, check_settle
from concorde_trio.stores.session_change_checks import check_emitted
from concorde_trio.stores.session_plan import SessionPlan


@attrs.define
class SignalDelta:
    """One signal before and after. ``from_phase`` and ``phase``: None is any before, unchanged after."""

    id: str
    from_state: SignalState
    from_phase: SignalPhase | None
    state: SignalState
    phase: SignalPhase | None
    claimed_at: float | None = None
    settled_at: float | None = None
    error: str | None = None
    interrupted: bool = False
    holds: bool = False


@attrs.define
class RunDelta:
    """One run before and after. ``queued`` is the run when it is new; otherwise it must be in one of ``needs``.

    None for ``started_at``, ``prompt`` and ``context`` (JSON text) leaves what is stored.
    """

    id: str
    queued: Run | None
    needs: frozenset[RunState]
    state: RunState
    started_at: float | None = None
    ended_at: float | None = None
    error: str | None = None
    text: str | None = None
    usage: Usage | None = None
    prompt: str | None = None
    context: str | None = None


@attrs.define
class ChangePlan:
    """What a batch comes to. ``positions``: the first and the last that it gives out, None if none.

    ``emitted``: signals to be stored, in this order. ``offers`` and ``stops`` are for stores that a fleet works on.
    """

    signals: dict[str, SignalDelta] = attrs.field(factory=dict)
    runs: dict[str, RunDelta] = attrs.field(factory=dict)
    finished: list[int] = attrs.field(factory=list)
    positions: tuple[int, int] | None = None
    emitted: list[NewSignal] = attrs.field(factory=list)
    sessions: SessionPlan = attrs.field(factory=SessionPlan)
    offers: list[OfferRun] = attrs.field(factory=list)
    stops: list[StopExecution] = attrs.field(factory=list)


def plan(changes: Iterable[Change | SessionChange]) -> ChangePlan:
    """Fold changes, in order; StoreError if one contradicts another or itself."""
    result = ChangePlan()
    for change in changes:
        match change:
            case ClaimSignal(signal_id, at):
                delta = _signal(result, signal_id, change, SignalState.PENDING)
                delta.state, delta.phase, delta.claimed_at = SignalState.PROCESSING, SignalPhase.HANDLING, at
            case QueueRuns(signal_id, _, error, holds):
                delta = _signal(result, signal_id, change, SignalState.PROCESSING, SignalPhase.HANDLING)
                delta.phase, delta.error, delta.holds = SignalPhase.RUNNING, error or None, holds
                _queue(result, change)
            case StartRun(run_id, at):
                run = _run(result, run_id, change, frozenset({RunState.PENDING}))
                run.state, run.started_at = RunState.RUNNING, at
            case OfferRun():
                result.offers.append(change)
            case StopExecution():
                result.stops.append(change)
            case EndRun():
                check_end(change)
                _end(_run(result, change.run_id, change, END_FROM[change.state]), change)
            case InterruptSignal(signal_id):
                _signal(result, signal_id, change, SignalState.PROCESSING).interrupted = True
            case StartPost(signal_id, _):
                delta = _signal(result, signal_id, change, SignalState.PROCESSING, SignalPhase.RUNNING)
                delta.phase = SignalPhase.POSTING
            case SettleSignal(signal_id, state, at, error):
                check_settle(change)
                delta = _signal(result, signal_id, change, SignalState.PROCESSING)
                delta.state, delta.phase, delta.settled_at, delta.error = state, None, at, error
            case FinishRequest(request_id):
                result.finished.append(request_id)
            case EmitSignals(signals):
                result.emitted += signals
            case SaveSession() | AddMessage() | AddInput() | SettleInputs() | LinkInputs():
                result.sessions.add(change)
    check_emitted(result.signals, {new.id for new in result.emitted})
    return result


def _signal(
    result: ChangePlan, signal_id: str, change: Change, state: SignalState, phase: SignalPhase | None = None
) -> SignalDelta:
    delta = result.signals.get(signal_id)
    if delta is None:
        delta = SignalDelta(signal_id, from_state=state, from_phase=phase, state=state, phase=phase)
        result.signals[signal_id] = delta
        return delta
    if delta.state is not state or (phase is not None and delta.phase is not phase and delta.phase is not None):
        was = delta.state if delta.phase is None else f"{delta.state} ({delta.phase})"
        raise StoreError(f"{type(change).__name__} cannot follow in one batch on what makes signal {signal_id} {was}")
    if phase is not None and delta.phase is None:
        delta.from_phase = delta.phase = phase  # Nothing moved the phase so far: the row itself must be in it.
    return delta


def _queue(result: ChangePlan, change: QueueRuns) -> None:
    last = check_queue(change, result.positions[1] if result.positions else 0)
    for run in change.runs:
        if run.id in result.runs:
            raise StoreError(f"run {run.id} stands twice in one batch; each run needs a new id")
        result.runs[run.id] = RunDelta(
            run.id, queued=run, needs=frozenset(), state=RunState.PENDING, context=_context(run)
        )
    if change.runs:
        result.positions = (result.positions[0] if result.positions else change.runs[0].position, last)


def _context(run: Run) -> str | None:
    return None if run.context is None else encode(run.context, what=f"context of run {run.id}", max_bytes=2**31)


def _run(result: ChangePlan, run_id: str, change: Change, states: frozenset[RunState]) -> RunDelta:
    delta = result.runs.get(run_id)
    if delta is None:
        result.runs[run_id] = delta = RunDelta(run_id, queued=None, needs=states, state=RunState.PENDING)
    elif delta.state not in states:
        raise StoreError(f"{type(change).__name__} cannot follow in one batch on what makes run {run_id} {delta.state}")
    return delta


def _end(delta: RunDelta, change: EndRun) -> None:
    delta.state, delta.ended_at, delta.error = change.state, change.at, change.error
    delta.text, delta.usage = change.text, change.usage
    if change.prompt is not None:
        delta.prompt = change.prompt
    if change.context is not None:
        delta.context = change.context

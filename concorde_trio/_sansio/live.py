"""What the worker keeps in memory of a signal and its runs while it is processing, and what it makes of them.

Nothing here is decided by time or order of completion: texts and outcomes follow prompt order (RUN-7).
"""

from __future__ import annotations

import attrs

from concorde_trio._sansio.session_changes import EmitSignals, LinkInputs
from concorde_trio.records import (
    PostOutcome,
    Run,
    RunInfo,
    RunOutcome,
    RunResult,
    RunState,
    SignalPhase,
    SignalRecord,
    Unfinished,
)


@attrs.define(eq=False)
class LiveRun:
    """A run of a live signal: its row as it was queued, and what became of it since."""

    run: Run
    signal: LiveSignal
    state: RunState = RunState.PENDING
    started_at: float | None = None
    ended_at: float | None = None
    outcome: RunOutcome | None = None
    offered: bool = False
    """It may start, and any member of the fleet may take it; nobody is known to have."""
    member: str | None = None
    """The member of the fleet that executes it, None where this worker does."""
    with_end: tuple[EmitSignals | LinkInputs, ...] = ()
    """What its Runtime wants in the commit that ends it (SES-21)."""

    @property
    def info(self) -> RunInfo:
        """What a request with its tag is attributed to (TAG-3)."""
        run = self.run
        return RunInfo(id=run.id, signal_id=run.signal_id, session=run.session, context=run.context)

    @property
    def result(self) -> RunResult:
        """What its signal's post phase is told of it (PST-1)."""
        outcome = self.outcome
        return RunResult(
            id=self.run.id,
            session=self.run.session,
            state=self.state,
            error=outcome.error if outcome else None,
            text=outcome.text if outcome else None,
            usage=outcome.usage if outcome else None,
        )


@attrs.define(eq=False)
class LiveSignal:
    """A signal that is processing. ``open`` counts its runs that have not ended, ``unstarted`` those still to start."""

    record: SignalRecord
    holds: bool
    runs: list[LiveRun] = attrs.field(factory=list)
    open: int = 0
    unstarted: int = 0
    phase: SignalPhase = SignalPhase.RUNNING
    handle_error: str | None = None
    interrupted: bool = False
    post_started_at: float | None = None

    @classmethod
    def revive(cls, entry: Unfinished, *, holds: bool) -> LiveSignal:
        """A signal as it is stored; ``holds``: its handler, as it is now, has a post phase."""
        record = entry.signal
        signal = cls(record, holds, handle_error=record.error, interrupted=record.interrupted)
        for run in entry.runs:
            live = LiveRun(run, signal, state=run.state, started_at=run.started_at, ended_at=run.ended_at)
            if run.ended_at is not None:
                live.outcome = RunOutcome(state=run.state, error=run.error, text=run.text, usage=run.usage)
            signal.runs.append(live)
        signal.open = sum(live.outcome is None for live in signal.runs)
        signal.unstarted = sum(live.state is RunState.PENDING for live in signal.runs)
        return signal

    @property
    def unreleased(self) -> list[LiveRun]:
        """Its runs that belong in the lock table: those not ended, and those held for its post (LCK-4)."""
        held = self.holds and self.record.holds
        return [live for live in self.runs if live.outcome is None or (held and live.started_at is not None)]

    @property
    def failed(self) -> bool:
        """RUN-2: whether handle or a run of it did not end well."""
        return self.handle_error is not None or any(run.state is not RunState.DONE for run in self.runs)

    @property
    def outcome(self) -> PostOutcome:
        """PST-1: what its post phase is told. PST-2: limited implies failed."""
        return PostOutcome(
            failed=self.failed,
            limited=any(run.state is RunState.LIMITED for run in self.runs),
            interrupted=self.interrupted,
            runs=tuple(run.result for run in self.runs),
        )

    def error(self, post_error: str | None) -> str | None:
        """RUN-7: why the signal failed, None if it did not. A post error is added to what came before it."""
        parts = [text for text in (self.handle_error, _runs_error(self.runs)) if text]
        if post_error is not None:
            parts.append(f"post failed: {post_error}")
        return "; ".join(parts) or None


def _runs_error(runs: list[LiveRun]) -> str | None:
    failed = [run for run in runs if run.state is not RunState.DONE]
    if not failed:
        return None
    first = failed[0]
    text = (first.outcome.error if first.outcome else None) or f"run {first.run.id} is {first.state}"
    if len(failed) == 1:
        return text
    return f"{len(failed)} of {len(runs)} runs failed; the first, {first.run.id}: {text}"

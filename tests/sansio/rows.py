"""What a store keeps, as two dicts, and nothing that the lifecycle tables forbid: a model for the dispatcher's tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from concorde_trio._sansio import changes as ch
from concorde_trio._sansio import lifecycle
from concorde_trio.records import Run, RunState, SignalPhase, SignalRecord, SignalState, Unfinished


@attrs.define
class Rows:
    """Signals and runs by id. ``apply`` checks every transition and every row it leaves."""

    signals: dict[str, SignalRecord] = attrs.field(factory=dict)
    runs: dict[str, Run] = attrs.field(factory=dict)
    starts: list[str] = attrs.field(factory=list)
    posts: list[str] = attrs.field(factory=list)
    last_position: int = 0

    def emit(self, kind: str) -> SignalRecord:
        seq = len(self.signals) + 1
        record = SignalRecord(
            id=f"s{seq}", seq=seq, kind=kind, payload=None, state=SignalState.PENDING, emitted_at=float(seq)
        )
        self.signals[record.id] = record
        return record

    def apply(self, changes: Iterable[ch.Change]) -> None:
        """All of it, in order; AssertionError or InternalError for what must not be."""
        for change in changes:
            match change:
                case ch.ClaimSignal(signal_id, at):
                    self._signal(signal_id, state=SignalState.PROCESSING, phase=SignalPhase.HANDLING, claimed_at=at)
                case ch.QueueRuns(signal_id, runs, error, holds):
                    self._signal(signal_id, phase=SignalPhase.RUNNING, error=error, holds=holds)
                    for run in runs:
                        assert run.position > self.last_position and run.id not in self.runs
                        self.last_position = run.position
                        lifecycle.check_run_columns(run)
                        self.runs[run.id] = run
                case ch.StartRun(run_id, at):
                    self.starts.append(run_id)
                    self._run(run_id, state=RunState.RUNNING, started_at=at)
                case ch.EndRun():
                    kept = {"prompt": change.prompt} if change.prompt is not None else {}
                    self._run(
                        change.run_id, state=change.state, ended_at=change.at, error=change.error, text=change.text,
                        usage=change.usage, tag=None, **kept,
                    )  # fmt: skip
                case ch.InterruptSignal(signal_id):
                    assert self.signals[signal_id].state is SignalState.PROCESSING
                    self._signal(signal_id, interrupted=True)
                case ch.StartPost(signal_id, _):
                    self.posts.append(signal_id)
                    assert all(each.ended_at is not None for each in self.runs_of(signal_id))
                    self._signal(signal_id, phase=SignalPhase.POSTING)
                case ch.SettleSignal(signal_id, state, at, error):
                    assert all(each.ended_at is not None for each in self.runs_of(signal_id))
                    self._signal(signal_id, state=state, phase=None, settled_at=at, error=error)

    def runs_of(self, signal_id: str) -> list[Run]:
        return [run for run in self.runs.values() if run.signal_id == signal_id]

    def pending(self) -> list[SignalRecord]:
        return [record for record in self.signals.values() if record.state is SignalState.PENDING]

    def unfinished(self) -> list[Unfinished]:
        found = [
            Unfinished(signal=record, runs=tuple(self.runs_of(record.id)))
            for record in self.signals.values()
            if record.state is SignalState.PROCESSING
        ]
        return sorted(found, key=lambda each: (not each.runs, each.runs[0].position if each.runs else each.signal.seq))

    def _signal(self, signal_id: str, **fields: Any) -> None:
        before = self.signals[signal_id]
        after = attrs.evolve(before, **fields)
        if after.state is not before.state:
            lifecycle.check_signal(before.state, after.state)
        if after.phase is not before.phase:
            lifecycle.check_phase(before.phase, after.phase)
        lifecycle.check_signal_columns(after)
        self.signals[signal_id] = after

    def _run(self, run_id: str, **fields: Any) -> None:
        before = self.runs[run_id]
        after = attrs.evolve(before, **fields)
        lifecycle.check_run(before.state, after.state)
        lifecycle.check_run_columns(after)
        self.runs[run_id] = after

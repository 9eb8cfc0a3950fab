"""What a queue in memory holds, as plain dicts: rows in, rows out, no clock, no tasks.

The law: changes are applied one at a time to a copy of what they touch, and written down only when all of them
were right, so a batch leaves all or nothing. This is the obvious form of what the SQL stores do with one
statement for each kind of change; the conformance suite holds the two against each other.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import attrs

from concorde_trio._sansio.changes import (
    Change,
    ClaimSignal,
    EndRun,
    FinishRequest,
    InterruptSignal,
    QueueRuns,
    SettleSignal,
    StartPost,
    StartRun,
)
from concorde_trio._sansio.json_values import decode, encode
from concorde_trio._sansio.lifecycle import SIGNAL_SETTLED
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
from concorde_trio.records import (
    NewSignal,
    Request,
    RequestKind,
    Run,
    RunState,
    SignalPhase,
    SignalRecord,
    SignalState,
    Unfinished,
)
from concorde_trio.signals.store import Pruned, RunFilter, SignalFilter
from concorde_trio.stores.change_checks import END_FROM, check_end, check_queue, check_settle
from concorde_trio.stores.memory_sessions import MemorySessions, StagedSessions
from concorde_trio.stores.session_change_checks import check_emitted


class MemoryTables:
    """Signals, runs and requests. Stored records keep payload and context as JSON text; reads decode them."""

    def __init__(self) -> None:
        self.sessions = MemorySessions()
        self.last_seq = 0
        self.last_position = 0
        self.last_request = 0
        self._signals: dict[str, SignalRecord] = {}
        self._by_seq: dict[int, str] = {}
        self._keys: dict[tuple[str, str], str] = {}
        self._pending: OrderedDict[int, str] = OrderedDict()
        self._live: dict[str, None] = {}
        self._runs: dict[str, Run] = {}
        self._by_position: dict[int, str] = {}
        self._runs_of: dict[str, tuple[str, ...]] = {}
        self._tags: dict[str, str] = {}
        self._requests: dict[int, Request] = {}
        self._signal_counts: Counter[SignalState] = Counter()
        self._run_counts: Counter[RunState] = Counter()

    # --- emit -----------------------------------------------------------------------------------------------

    def stored_id(self, kind: str, key: str | None) -> str | None:
        """The id of the signal stored under this kind and key (SIG-7)."""
        return None if key is None else self._keys.get((kind, key))

    def check_new_id(self, signal_id: str) -> None:
        """StoreError if a signal with this id is stored."""
        if signal_id in self._signals:
            raise StoreError(f"a signal with the id {signal_id!r} is stored already; an emit needs a new id")

    def insert(self, signals: Sequence[NewSignal]) -> list[str]:
        """Store signals in this order, all or none; the ids (SIG-3, SIG-7)."""
        ids: list[str] = []
        fresh: dict[str, NewSignal] = {}
        keys: dict[tuple[str, str], str] = {}
        for new in signals:
            if new.key is not None:
                stored = self.stored_id(new.kind, new.key) or keys.get((new.kind, new.key))
                if stored is not None:
                    ids.append(stored)
                    continue
                keys[new.kind, new.key] = new.id
            self.check_new_id(new.id)
            if new.id in fresh:
                raise StoreError(f"the id {new.id!r} is twice in this emit; each signal needs a new id")
            fresh[new.id] = new
            ids.append(new.id)
        self._keys.update(keys)
        for new in fresh.values():
            self.last_seq += 1
            self._put_signal(
                SignalRecord(
                    id=new.id,
                    seq=self.last_seq,
                    kind=new.kind,
                    payload=new.payload,
                    state=SignalState.PENDING,
                    emitted_at=new.emitted_at,
                    key=new.key,
                    retry_of=new.retry_of,
                )
            )
        return ids

    def add_request(self, kind: RequestKind, target: str) -> None:
        """Leave an operator's request."""
        self.last_request += 1
        self._requests[self.last_request] = Request(id=self.last_request, kind=kind, target=target)

    # --- apply ----------------------------------------------------------------------------------------------

    def apply(self, changes: Iterable[Change | SessionChange]) -> bool:
        """Write all changes in order, or raise StoreError and write none. True if signals were emitted."""
        staged = _Staged(self._signals, self._runs, self.last_position)
        sessions = StagedSessions(self.sessions)
        emitted: list[NewSignal] = []
        for change in changes:
            match change:
                case EmitSignals(signals):
                    emitted += signals
                case SaveSession() | AddMessage() | AddInput() | SettleInputs() | LinkInputs():
                    sessions.apply(change)
                case _:
                    staged.apply(change)
        check_emitted(staged.signals, {new.id for new in emitted})
        self.insert(emitted)  # The last that can fail, and it leaves all or none.
        self.sessions.write(sessions)
        for record in staged.signals.values():
            self._put_signal(record)
        for run in staged.runs.values():
            self._put_run(run)
        self._runs_of.update(staged.queued)
        self.last_position = staged.last_position
        for request in staged.finished:
            self._requests.pop(request, None)
        return bool(emitted)

    def _put_signal(self, record: SignalRecord) -> None:
        old = self._signals.get(record.id)
        if old is not None:
            self._signal_counts[old.state] -= 1
        self._signal_counts[record.state] += 1
        self._signals[record.id] = record
        self._by_seq[record.seq] = record.id
        if record.state is SignalState.PENDING:
            self._pending[record.seq] = record.id
        else:
            self._pending.pop(record.seq, None)
        if record.state is SignalState.PROCESSING:
            self._live[record.id] = None
        else:
            self._live.pop(record.id, None)

    def _put_run(self, run: Run) -> None:
        old = self._runs.get(run.id)
        if old is not None:
            self._run_counts[old.state] -= 1
        self._run_counts[run.state] += 1
        self._runs[run.id] = run
        self._by_position[run.position] = run.id
        if run.tag is None:
            self._tags.pop(run.id, None)
        else:
            self._tags[run.id] = run.tag

    # --- reads ----------------------------------------------------------------------------------------------

    def pending(self, limit: int) -> list[SignalRecord]:
        """The first pending signals by seq."""
        return [_read_signal(self._signals[each]) for each in islice(self._pending.values(), limit)]

    def requests(self) -> list[Request]:
        """Every request, oldest first."""
        return list(self._requests.values())

    def unfinished(self) -> list[Unfinished]:
        """Processing signals with their runs, by first position; those without runs last, by seq."""
        found = [
            Unfinished(signal=_read_signal(self._signals[each]), runs=tuple(self._runs_by_signal(each)))
            for each in self._live
        ]
        return sorted(found, key=lambda each: (not each.runs, each.runs[0].position if each.runs else each.signal.seq))

    def signal(self, signal_id: str) -> SignalRecord | None:
        """One signal."""
        record = self._signals.get(signal_id)
        return None if record is None else _read_signal(record)

    def run(self, run_id: str) -> Run | None:
        """One run."""
        run = self._runs.get(run_id)
        return None if run is None else _read_run(run)

    def signals(self, where: SignalFilter) -> list[SignalRecord]:
        """Signals, newest first."""
        found = (
            record
            for record in (self._signals[each] for each in _newest(self._by_seq, where.before))
            if (where.kind is None or record.kind == where.kind)
            and (where.state is None or record.state == where.state)
            and (where.since is None or record.emitted_at >= where.since)
        )
        return [_read_signal(record) for record in islice(found, where.limit)]

    def runs(self, where: RunFilter) -> list[Run]:
        """Runs, newest first."""
        if where.signal_id is None:
            ids = _newest(self._by_position, where.before)
        else:
            ids = iter(sorted(self._runs_of.get(where.signal_id, ()), key=self._position, reverse=True))
        found = (
            run
            for run in (self._runs[each] for each in ids)
            if (where.session is None or run.session == where.session)
            and (where.kind is None or self._signals[run.signal_id].kind == where.kind)
            and (where.since is None or run.queued_at >= where.since)
            and (where.state is None or run.state == where.state)
            and (where.resource is None or where.resource in run.resources)
            and (where.before is None or run.position < where.before)
        )
        return [_read_run(run) for run in islice(found, where.limit)]

    def tags(self) -> list[str]:
        """The tags of runs that have not ended."""
        return list(self._tags.values())

    def counts(self) -> dict[str, dict[str, int]]:
        """How many signals and runs are in each state."""
        return {
            "signals": {state.value: self._signal_counts[state] for state in SignalState},
            "runs": {state.value: self._run_counts[state] for state in RunState},
        }

    def prune(self, before: float) -> Pruned:
        """Remove signals settled before this time, with their runs."""
        old = [
            record
            for record in self._signals.values()
            if record.state in SIGNAL_SETTLED and record.settled_at is not None and record.settled_at < before
        ]
        runs = 0
        for record in old:
            del self._signals[record.id], self._by_seq[record.seq]
            self._signal_counts[record.state] -= 1
            if record.key is not None:
                del self._keys[record.kind, record.key]
            for run_id in self._runs_of.pop(record.id, ()):
                run = self._runs.pop(run_id)
                del self._by_position[run.position]
                self._run_counts[run.state] -= 1
                self._tags.pop(run_id, None)
                runs += 1
        return Pruned(signals=len(old), runs=runs)

    def prune_sessions(self, before: float, limit: int | None = None) -> int:
        """Remove sessions last saved before this time, but those that a run which has not ended names."""
        needed = {run.session for each in self._live for run in self._runs_by_signal(each) if run.ended_at is None}
        return self.sessions.prune(before, limit, needed)

    def _position(self, run_id: str) -> int:
        return self._runs[run_id].position

    def _runs_by_signal(self, signal_id: str) -> list[Run]:
        return [_read_run(self._runs[each]) for each in self._runs_of.get(signal_id, ())]


class _Staged:
    """The rows that a batch of changes touches, changed, and not yet written down."""

    def __init__(self, signals: dict[str, SignalRecord], runs: dict[str, Run], last_position: int) -> None:
        self._stored_signals = signals
        self._stored_runs = runs
        self.last_position = last_position
        self.signals: dict[str, SignalRecord] = {}
        self.runs: dict[str, Run] = {}
        self.queued: dict[str, tuple[str, ...]] = {}
        self.finished: list[int] = []

    def apply(self, change: Change) -> None:
        match change:
            case ClaimSignal(signal_id, at):
                self._signal(
                    signal_id,
                    change,
                    SignalState.PENDING,
                    None,
                    state=SignalState.PROCESSING,
                    phase=SignalPhase.HANDLING,
                    claimed_at=at,
                )
            case QueueRuns(signal_id, runs, error, holds):
                self._signal(
                    signal_id,
                    change,
                    SignalState.PROCESSING,
                    SignalPhase.HANDLING,
                    phase=SignalPhase.RUNNING,
                    error=error or None,
                    holds=holds,
                )
                self.last_position = check_queue(change, self.last_position)
                self._queue(signal_id, runs)
            case StartRun(run_id, at):
                self._run(run_id, change, frozenset({RunState.PENDING}), state=RunState.RUNNING, started_at=at)
            case EndRun():
                self._end(change)
            case InterruptSignal(signal_id):
                self._signal(signal_id, change, SignalState.PROCESSING, interrupted=True)
            case StartPost(signal_id, _):
                self._signal(signal_id, change, SignalState.PROCESSING, SignalPhase.RUNNING, phase=SignalPhase.POSTING)
            case SettleSignal(signal_id, state, at, error):
                check_settle(change)
                self._signal(
                    signal_id,
                    change,
                    SignalState.PROCESSING,
                    state=state,
                    phase=None,
                    settled_at=at,
                    error=error or None,
                )
            case FinishRequest(request_id):
                self.finished.append(request_id)

    def _signal(
        self, signal_id: str, change: Change, needed: SignalState, *phase: SignalPhase | None, **fields: Any
    ) -> None:
        record = self.signals.get(signal_id) or self._stored_signals.get(signal_id)
        if record is None:
            raise StoreError(f"there is no signal {signal_id!r}, so {type(change).__name__} cannot be written")
        if record.state is not needed or (phase and record.phase is not phase[0]):
            raise StoreError(
                f"{type(change).__name__} needs signal {signal_id} to be {_named(needed, *phase)}, "
                f"but it is {_named(record.state, record.phase)}"
            )
        self.signals[signal_id] = attrs.evolve(record, **fields)

    def _queue(self, signal_id: str, runs: tuple[Run, ...]) -> None:
        for run in runs:
            if run.id in self._stored_runs or run.id in self.runs:
                raise StoreError(f"a run with the id {run.id!r} is stored already; each run needs a new id")
            self.runs[run.id] = attrs.evolve(run, context=_context_text(run))
        self.queued[signal_id] = tuple(run.id for run in sorted(runs, key=lambda run: run.index))

    def _end(self, change: EndRun) -> None:
        check_end(change)
        fields: dict[str, Any] = {} if change.prompt is None else {"prompt": change.prompt}
        if change.context is not None:
            fields["context"] = change.context
        self._run(
            change.run_id,
            change,
            END_FROM[change.state],
            state=change.state,
            ended_at=change.at,
            error=change.error or None,
            text=change.text,
            usage=change.usage,
            tag=None,
            **fields,
        )

    def _run(self, run_id: str, change: Change, states: frozenset[RunState], **fields: Any) -> None:
        run = self.runs.get(run_id) or self._stored_runs.get(run_id)
        if run is None:
            raise StoreError(f"there is no run {run_id!r}, so {type(change).__name__} cannot be written")
        if run.state not in states:
            raise StoreError(
                f"{type(change).__name__} needs run {run_id} to be {' or '.join(sorted(states))}, but it is {run.state}"
            )
        self.runs[run_id] = attrs.evolve(run, **fields)


def _named(state: SignalState, phase: SignalPhase | None = None) -> str:
    return state.value if phase is None else f"{state} ({phase})"


def _newest(ids: dict[int, str], before: int | None) -> Iterator[str]:
    return (ids[each] for each in reversed(ids) if before is None or each < before)


def _context_text(run: Run) -> str | None:
    return None if run.context is None else encode(run.context, what=f"context of run {run.id}", max_bytes=2**31)


def _read_signal(record: SignalRecord) -> SignalRecord:
    return attrs.evolve(record, payload=decode(record.payload))


def _read_run(run: Run) -> Run:
    return run if run.context is None else attrs.evolve(run, context=decode(run.context))

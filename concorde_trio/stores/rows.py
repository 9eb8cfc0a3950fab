"""Rows of the tables as records, and records as rows."""

from __future__ import annotations

import json
from typing import Any

import attrs

from concorde_trio._sansio.json_values import decode
from concorde_trio.records import (
    NewSignal,
    Request,
    RequestKind,
    Run,
    RunState,
    SignalPhase,
    SignalRecord,
    SignalState,
    Usage,
)
from concorde_trio.stores.change_plan import RunDelta, SignalDelta

SIGNAL = 'seq, id, kind, payload, state, emitted_at, "key", retry_of, phase, claimed_at, settled_at, error, interrupted, holds'
RUN = (
    'id, signal_id, signal_seq, position, "index", session, prompt, resources, usage_limit, context, tag, time_limit, '
    "state, queued_at, started_at, ended_at, error, text, usage"
)

_write_names = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would make an encoder for each row

_SIGNAL_STATES = {state.value: state for state in SignalState}
_PHASES = {phase.value: phase for phase in SignalPhase} | {None: None}
_RUN_STATES = {state.value: state for state in RunState}
_TEXTS: dict[str | None, str | None] = {None: None}
_TEXTS |= {state: state.value for states in (SignalState, SignalPhase, RunState) for state in states}
"""States as plain strings: asking one for its ``value`` runs Python, and sqlite3 looks long for how to bind a subclass."""


def read_signal(row: tuple[Any, ...]) -> SignalRecord:
    """A row of the columns ``SIGNAL``."""
    seq, id_, kind, payload, state, emitted_at, key, retry_of, phase, claimed_at, settled_at, error, cut, holds = row
    return SignalRecord(
        id=id_,
        seq=seq,
        kind=kind,
        payload=decode(payload),
        state=_SIGNAL_STATES[state],
        emitted_at=emitted_at,
        key=key,
        retry_of=retry_of,
        phase=_PHASES[phase],
        claimed_at=claimed_at,
        settled_at=settled_at,
        error=error,
        interrupted=bool(cut),
        holds=bool(holds),
    )


def read_run(row: tuple[Any, ...]) -> Run:
    """A row of the columns ``RUN``."""
    return Run(
        id=row[0],
        signal_id=row[1],
        signal_seq=row[2],
        position=row[3],
        index=row[4],
        session=row[5],
        prompt=row[6],
        resources=tuple(json.loads(row[7])),
        usage_limit=row[8],
        context=None if row[9] is None else decode(row[9]),
        tag=row[10],
        time_limit=row[11],
        state=_RUN_STATES[row[12]],
        queued_at=row[13],
        started_at=row[14],
        ended_at=row[15],
        error=row[16],
        text=row[17],
        usage=read_usage(row[18]),
    )


def read_usage(text: str | None) -> Usage | None:
    """A column ``usage``."""
    return None if text is None else Usage(**json.loads(text))


def read_request(row: tuple[Any, ...]) -> Request:
    """A row of ``id, kind, target``."""
    return Request(id=row[0], kind=RequestKind(row[1]), target=row[2])


def new_signal_row(new: NewSignal) -> tuple[Any, ...]:
    """What ``insert_signals`` takes."""
    return (new.id, new.kind, new.payload, new.emitted_at, new.key, new.retry_of)


def signal_row(delta: SignalDelta) -> tuple[Any, ...]:
    """What ``update_signals`` takes."""
    return (
        delta.id,
        _TEXTS[delta.from_state],
        _TEXTS[delta.from_phase],
        _TEXTS[delta.state],
        _TEXTS[delta.phase],
        delta.claimed_at,
        delta.settled_at,
        delta.error,
        int(delta.interrupted),
        int(delta.holds),
    )


def new_run_row(delta: RunDelta, run: Run) -> tuple[Any, ...]:
    """What ``insert_runs`` takes: ``run`` as ``delta`` leaves it."""
    return (
        run.position,
        run.id,
        run.signal_id,
        run.signal_seq,
        run.index,
        run.session,
        run.prompt if delta.prompt is None else delta.prompt,
        _write_names(run.resources) if run.resources else "[]",
        run.usage_limit,
        delta.context,
        run.tag if delta.ended_at is None else None,
        run.time_limit,
        _TEXTS[delta.state],
        run.queued_at,
        delta.started_at,
        delta.ended_at,
        delta.error,
        delta.text,
        usage_text(delta.usage),
    )


def run_row(delta: RunDelta) -> tuple[Any, ...]:
    """What ``update_runs`` takes."""
    return (
        delta.id,
        _TEXTS[next(iter(delta.needs))] if len(delta.needs) == 1 else None,
        _TEXTS[delta.state],
        delta.started_at,
        delta.ended_at,
        delta.error,
        delta.text,
        usage_text(delta.usage),
        delta.prompt,
        delta.context,
    )


def usage_text(usage: Usage | None) -> str | None:
    """A usage as its column has it."""
    return None if usage is None else json.dumps(attrs.asdict(usage))

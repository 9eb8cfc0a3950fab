"""Which state of a signal or a run may follow which, and what a row of each state holds (SIG-4, RUN-2).

The law: states go one way, and every change of one is checked here. A store says the same in check constraints; a
test compares them with these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from concorde_trio.errors import InternalError
from concorde_trio.records import Run, RunState, SignalPhase, SignalRecord, SignalState

StateT = TypeVar("StateT")

SIGNAL_TRANSITIONS: Mapping[SignalState, frozenset[SignalState]] = MappingProxyType(
    {
        SignalState.PENDING: frozenset({SignalState.PROCESSING}),
        SignalState.PROCESSING: frozenset({SignalState.DONE, SignalState.FAILED}),
        SignalState.DONE: frozenset(),
        SignalState.FAILED: frozenset(),
    }
)
"""SIG-4. A pending signal that is cancelled or has no handler is claimed and failed in one commit."""

PHASE_TRANSITIONS: Mapping[SignalPhase | None, frozenset[SignalPhase | None]] = MappingProxyType(
    {
        None: frozenset({SignalPhase.HANDLING}),
        SignalPhase.HANDLING: frozenset({SignalPhase.RUNNING, None}),
        SignalPhase.RUNNING: frozenset({SignalPhase.POSTING, None}),
        SignalPhase.POSTING: frozenset({None}),
    }
)
"""The phase inside processing; None before the claim and after the signal settled."""

RUN_TRANSITIONS: Mapping[RunState, frozenset[RunState]] = MappingProxyType(
    {
        RunState.PENDING: frozenset({RunState.RUNNING, RunState.FAILED, RunState.CANCELLED}),
        RunState.RUNNING: frozenset({RunState.DONE, RunState.FAILED, RunState.LIMITED, RunState.CANCELLED}),
        RunState.DONE: frozenset(),
        RunState.FAILED: frozenset(),
        RunState.LIMITED: frozenset(),
        RunState.CANCELLED: frozenset(),
    }
)
"""RUN-2. A run that never started can fail (a refused tag, a bad context) or be cancelled, and nothing else."""

SIGNAL_SETTLED = frozenset(state for state, following in SIGNAL_TRANSITIONS.items() if not following)
RUN_ENDED = frozenset(state for state, following in RUN_TRANSITIONS.items() if not following)

SIGNAL_COLUMNS: Mapping[SignalState, Mapping[str, bool]] = MappingProxyType(
    {
        SignalState.PENDING: MappingProxyType(
            {"phase": False, "claimed_at": False, "settled_at": False, "error": False}
        ),
        SignalState.PROCESSING: MappingProxyType({"phase": True, "claimed_at": True, "settled_at": False}),
        SignalState.DONE: MappingProxyType({"phase": False, "claimed_at": True, "settled_at": True, "error": False}),
        SignalState.FAILED: MappingProxyType({"phase": False, "claimed_at": True, "settled_at": True, "error": True}),
    }
)
"""Which columns are set (True; text: not empty) and which are null (False) in a state; of others nothing is said."""

RUN_COLUMNS: Mapping[RunState, Mapping[str, bool]] = MappingProxyType(
    {
        RunState.PENDING: MappingProxyType(
            {"started_at": False, "ended_at": False, "error": False, "text": False, "usage": False}
        ),
        RunState.RUNNING: MappingProxyType(
            {"started_at": True, "ended_at": False, "error": False, "text": False, "usage": False}
        ),
        RunState.DONE: MappingProxyType({"started_at": True, "ended_at": True, "error": False, "tag": False}),
        RunState.FAILED: MappingProxyType({"ended_at": True, "error": True, "tag": False}),
        RunState.LIMITED: MappingProxyType({"started_at": True, "ended_at": True, "error": True, "tag": False}),
        RunState.CANCELLED: MappingProxyType({"ended_at": True, "tag": False}),
    }
)
"""The same for runs (TAG-4: the tag is gone once a run has ended)."""

MAY_BE_EMPTY = frozenset({"text"})
"""Columns of text that are set though they may be empty: an agent can answer with nothing."""


def check_signal(before: SignalState, after: SignalState) -> None:
    """InternalError unless a signal may go from ``before`` to ``after`` (SIG-4)."""
    _check("signal", SIGNAL_TRANSITIONS, before, after)


def check_phase(before: SignalPhase | None, after: SignalPhase | None) -> None:
    """InternalError unless the phase of a signal may go from ``before`` to ``after``."""
    _check("signal's phase", PHASE_TRANSITIONS, before, after)


def check_run(before: RunState, after: RunState) -> None:
    """InternalError unless a run may go from ``before`` to ``after`` (RUN-2)."""
    _check("run", RUN_TRANSITIONS, before, after)


def check_signal_columns(signal: SignalRecord) -> None:
    """InternalError unless ``signal`` has set what its state demands and nothing that it forbids."""
    _check_columns(f"signal {signal.id}", signal, signal.state, SIGNAL_COLUMNS[signal.state])


def check_run_columns(run: Run) -> None:
    """InternalError unless ``run`` has set what its state demands and nothing that it forbids."""
    _check_columns(f"run {run.id}", run, run.state, RUN_COLUMNS[run.state])


def _check(what: str, table: Mapping[StateT, frozenset[StateT]], before: StateT, after: StateT) -> None:
    if after not in table[before]:
        allowed = " or ".join(sorted(str(state) for state in table[before])) or "nothing, it is over"
        raise InternalError(f"a {what} cannot go from {before} to {after}; after {before} comes {allowed}")


def _check_columns(what: str, row: object, state: str, columns: Mapping[str, bool]) -> None:
    for column, expected in columns.items():
        value = getattr(row, column)
        if (value is not None) != expected or (value == "" and column not in MAY_BE_EMPTY):
            raise InternalError(
                f"{what} is {state}, so its {column} must be {'set' if expected else 'null'}, not {value!r:.80}"
            )

"""What the worker asks a store to write down: one frozen class for each kind of change.

A step of the worker is a tuple of changes, applied in one commit and in this order. Times are wall-clock seconds.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs

from concorde_trio._sansio.session_changes import EmitSignals, LinkInputs
from concorde_trio.records import Run, RunState, SignalState, Usage


@attrs.frozen
class ClaimSignal:
    """pending → processing, phase handling."""

    signal_id: str
    at: float


@attrs.frozen
class QueueRuns:
    """Phase handling → running; the runs, pending, come with it (none: there are none).

    ``error`` is set when handle failed: kept on the signal while it is still processing. ``holds`` (stored on the
    signal) says that its handler has a post phase, so that its ended runs keep their locks (LCK-4).
    """

    signal_id: str
    runs: tuple[Run, ...]
    error: str | None = None
    holds: bool = False


@attrs.frozen
class StartRun:
    """Run pending → running (RUN-1)."""

    run_id: str
    at: float


@attrs.frozen
class OfferRun:
    """A run that may start is offered to the members of a fleet: it stays pending until one of them takes it."""

    run_id: str
    position: int


@attrs.frozen
class StopExecution:
    """The member that executes a run is asked to stop it; the run ends in ``state``, with ``reason`` (RUN-6)."""

    run_id: str
    reason: str
    state: RunState


@attrs.frozen
class EndRun:
    """Run pending or running → one of the four outcomes. Its tag is erased (TAG-4).

    ``prompt`` and ``context`` (JSON text), where not None, replace what is stored: the same without the tag.
    """

    run_id: str
    state: RunState
    at: float
    error: str | None = None
    text: str | None = None
    usage: Usage | None = None
    prompt: str | None = None
    context: str | None = None


@attrs.frozen
class InterruptSignal:
    """A crash or a stop cut this processing signal (REC-4); its state and phase stay."""

    signal_id: str


@attrs.frozen
class StartPost:
    """Phase running → posting (CLM-6: the mark that post is never started twice)."""

    signal_id: str
    at: float


@attrs.frozen
class SettleSignal:
    """processing → done or failed; the phase is cleared."""

    signal_id: str
    state: SignalState
    at: float
    error: str | None = None


@attrs.frozen
class FinishRequest:
    """An operator's request was carried out, or had nothing left to do; its row goes."""

    request_id: int


Change: TypeAlias = (
    ClaimSignal
    | QueueRuns
    | StartRun
    | OfferRun
    | StopExecution
    | EndRun
    | InterruptSignal
    | StartPost
    | SettleSignal
    | FinishRequest
    | EmitSignals
    | LinkInputs
)
"""The last two are a session's, in the commit that ends its run (SES-21)."""

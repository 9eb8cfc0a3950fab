"""Every observable transition, as a frozen class: one vocabulary for streams, the CLI, traces and tests.

An event is published after the commit that made it true. ``at`` is wall-clock seconds since the epoch. An event
never carries a prompt, a payload or a live tag (TAG-4).
"""

from __future__ import annotations

from typing import Any

import attrs

from concorde_trio.records import RunState, SignalState


@attrs.frozen(kw_only=True)
class Event:
    """The root of all events."""

    at: float

    @property
    def name(self) -> str:
        """The class's name: the ``event:`` field of a stream, the key of a trace."""
        return type(self).__name__

    def as_json(self) -> dict[str, Any]:
        """The event as a JSON object, its name under ``event``."""
        return {"event": self.name, **attrs.asdict(self)}


@attrs.frozen(kw_only=True)
class SignalClaimed(Event):
    """A signal's handle is about to be called, or was (CLM-1)."""

    signal_id: str
    kind: str


@attrs.frozen(kw_only=True)
class HandleFailed(Event):
    """A handler raised, timed out, was cancelled, or returned what it must not (CLM-5)."""

    signal_id: str
    error: str


@attrs.frozen(kw_only=True)
class RunQueued(Event):
    """A run took its place in the lock table."""

    run_id: str
    signal_id: str
    session: str
    resources: tuple[str, ...]


@attrs.frozen(kw_only=True)
class RunStarted(Event):
    """A run's start mark is stored; its Runtime is called now (RUN-1)."""

    run_id: str
    signal_id: str
    session: str


@attrs.frozen(kw_only=True)
class RunStopping(Event):
    """A run was told to stop and is not over yet; it keeps its locks (RUN-6)."""

    run_id: str
    signal_id: str
    reason: str


@attrs.frozen(kw_only=True)
class RunEnded(Event):
    """A run has its outcome. ``started`` is False when it never ran."""

    run_id: str
    signal_id: str
    session: str
    state: RunState
    error: str | None
    started: bool


@attrs.frozen(kw_only=True)
class PostStarted(Event):
    """A signal's post phase is called now; its runs' locks are held until it returns (LCK-4)."""

    signal_id: str


@attrs.frozen(kw_only=True)
class PostEnded(Event):
    """A signal's post phase returned, or raised (``error``)."""

    signal_id: str
    error: str | None


@attrs.frozen(kw_only=True)
class SignalSettled(Event):
    """A signal is done or failed, and holds nothing any more."""

    signal_id: str
    kind: str
    state: SignalState
    error: str | None


@attrs.frozen(kw_only=True)
class SignalInterrupted(Event):
    """A crash or a stop cut a signal's handle, its runs or its post phase (REC-2 to REC-4)."""

    signal_id: str
    what: str


@attrs.frozen(kw_only=True)
class HandlerGone(Event):
    """A recovered signal's kind has no handler any more, so its post phase cannot run (REC-4)."""

    signal_id: str
    kind: str


@attrs.frozen(kw_only=True)
class WorkerRecovered(Event):
    """What an earlier worker left is settled and the lock table is rebuilt (REC-5)."""

    runs_failed: int
    runs_requeued: int
    signals: int


@attrs.frozen(kw_only=True)
class WorkerStopping(Event):
    """A stop was asked for: ``mode`` is drain, park or cancel (STP-1 to STP-3)."""

    mode: str


@attrs.frozen(kw_only=True)
class WorkerStopped(Event):
    """The worker has let go of its queue."""


@attrs.frozen(kw_only=True)
class WakeMissed(Event):
    """The sweep found a signal that no notification had told of (SIG-6)."""


@attrs.frozen(kw_only=True)
class HandleBlocked(Event):
    """A plain (not async) handler kept the whole event loop from running for ``seconds``."""

    signal_id: str
    kind: str
    seconds: float


@attrs.frozen(kw_only=True)
class Pruned(Event):
    """Settled signals and their runs were removed (STP-5)."""

    signals: int
    runs: int

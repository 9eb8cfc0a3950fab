"""Every observable transition, as a frozen class: one vocabulary for streams, the CLI, traces and tests.

An event is published after the commit that made it true. ``at`` is wall-clock seconds since the epoch. An event
never carries a prompt, a payload or a live tag (TAG-4).
"""

from __future__ import annotations

from typing import Any

import attrs

from concorde_trio.messages import CallOutcome, InputState
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
    """A run has its outcome. ``started`` is False when it never ran; ``held``: it keeps its locks for the post phase (LCK-4)."""

    run_id: str
    signal_id: str
    session: str
    state: RunState
    error: str | None
    started: bool
    held: bool = False


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
class LoopBlocked(Event):
    """Something kept the whole event loop from running for ``seconds``; ``where``: the line it stood at when it was found.

    ``who``: the handler, tool, run or request whose code it was, None where that is not known.
    """

    seconds: float
    where: str
    who: str | None = None


@attrs.frozen(kw_only=True)
class Pruned(Event):
    """Settled signals and their runs, and sessions that nobody used since, were removed (STP-5)."""

    signals: int
    runs: int
    sessions: int = 0


@attrs.frozen(kw_only=True)
class ScheduleEvent(Event):
    """Something of one schedule."""

    schedule: str


@attrs.frozen(kw_only=True)
class SchedulePut(ScheduleEvent):
    """A schedule is new or was replaced (SCH-5). ``next_at``: when it fires first, wall-clock seconds."""

    kind: str
    next_at: float | None


@attrs.frozen(kw_only=True)
class ScheduleRemoved(ScheduleEvent):
    """A schedule is gone; the signals that came of it stay."""


@attrs.frozen(kw_only=True)
class ScheduleFired(ScheduleEvent):
    """A schedule's signal was emitted for the instant ``due`` (SCH-2)."""

    kind: str
    due: float
    signal_id: str


@attrs.frozen(kw_only=True)
class ScheduleMissed(ScheduleEvent):
    """Instants of a schedule, from ``since`` on, were skipped: nobody worked then, or the clock was set (SCH-3).

    ``missed``: how many; 500 stands for as many or more.
    """

    kind: str
    missed: int
    since: float


# --- sessions -----------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class SessionEvent(Event):
    """Something of one session."""

    session: str


@attrs.frozen(kw_only=True)
class InputAccepted(SessionEvent):
    """An input is in the ledger, and will end as delivered or cancelled (SES-10a). ``queued``: how many wait with it.

    ``waits_for``: what holds the session, in one line (SES-10); None if it ran at once.
    """

    input_id: str
    queued: int
    waits_for: str | None


@attrs.frozen(kw_only=True)
class InputRejected(SessionEvent):
    """An input was refused, and left no trace."""

    input_id: str
    reason: str


@attrs.frozen(kw_only=True)
class InputSettled(SessionEvent):
    """An accepted input reached its end: delivered or cancelled (SES-10a)."""

    input_id: str
    state: InputState


@attrs.frozen(kw_only=True)
class TurnStarted(SessionEvent):
    """A turn began. ``turn`` counts the turns of this process's loop of the session, from 1."""

    turn: int
    input_ids: tuple[str, ...]


@attrs.frozen(kw_only=True)
class TurnEnded(SessionEvent):
    """A turn is over: ok, failed, interrupted or limited."""

    turn: int
    outcome: str
    error: str | None


@attrs.frozen(kw_only=True)
class ModelRequested(SessionEvent):
    """A request is out under this epoch; ``purpose``: turn, summary, compaction_draft or compaction_final (SES-2)."""

    epoch: int
    purpose: str
    attempt: int


@attrs.frozen(kw_only=True)
class ModelFailed(SessionEvent):
    """A request failed; ``retry_in`` seconds until the next try, None if there is none (SES-11)."""

    epoch: int
    purpose: str
    error: str
    retry_in: float | None


@attrs.frozen(kw_only=True)
class HoldExpired(SessionEvent):
    """A hold was taken away because its time was up (LSE-7). ``what``: llm, summarizing or tool.

    ``epoch`` of a lease, ``call_id`` of a tool; ``waited``: seconds; ``reason``: progress, ceiling or timeout.
    """

    what: str
    epoch: int | None
    call_id: str | None
    waited: float
    reason: str


@attrs.frozen(kw_only=True)
class ReplyDropped(SessionEvent):
    """Something came too late, or for nothing that is waited for (SES-2, SES-7). ``what``: reply, summary or result."""

    what: str
    epoch: int | None
    call_id: str | None
    current: int | None


@attrs.frozen(kw_only=True)
class CallStarted(SessionEvent):
    """A tool call runs now."""

    call_id: str
    tool: str
    kind: str


@attrs.frozen(kw_only=True)
class CallEnded(SessionEvent):
    """A tool call has its result. ``outcome``: a CallOutcome."""

    call_id: str
    tool: str
    outcome: CallOutcome


@attrs.frozen(kw_only=True)
class ApprovalAsked(SessionEvent):
    """A person has to allow or deny a call within ``seconds``; then it is denied (SES-18)."""

    call_id: str
    tool: str
    kind: str
    seconds: float


@attrs.frozen(kw_only=True)
class ApprovalAnswered(SessionEvent):
    """A person answered for one call."""

    call_id: str
    allowed: bool


@attrs.frozen(kw_only=True)
class WorkAbandoned(SessionEvent):
    """Work of a call goes on though nobody waits for it (SES-8). ``number``: a PID or thread id, None if not known."""

    work: int
    call_id: str
    what: str
    number: int | None


@attrs.frozen(kw_only=True)
class AbandonedEnded(SessionEvent):
    """Abandoned work was seen to end."""

    work: int
    call_id: str


@attrs.frozen(kw_only=True)
class Compacted(SessionEvent):
    """A summary took the place of ``messages`` messages (SES-15), or that failed: ``error``."""

    messages: int
    error: str | None


@attrs.frozen(kw_only=True)
class SettleFailed(SessionEvent):
    """A step that should settle an expired hold raised; the hold is gone, and the others were settled (SES-4)."""

    what: str
    error: str


@attrs.frozen(kw_only=True)
class SessionLoaded(SessionEvent):
    """A session's loop began; ``repaired`` calls that a crash had cut off got a result (SES-17)."""

    messages: int
    queued: int
    repaired: int


@attrs.frozen(kw_only=True)
class SessionUnloaded(SessionEvent):
    """A session left memory; its transcript stays in the store (SES-19)."""

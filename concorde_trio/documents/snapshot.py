"""What a worker has in hand, as ``/snapshot`` tells it (SRV-4)."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from concorde_trio.documents.queue import RunStateName, Space, UsageDocument
from concorde_trio.documents.sessions import AbandonedDocument, ApprovalDocument, HoldDocument, WaitingOnDocument


class PendingSignal(TypedDict):
    """A signal that nobody has claimed, without its payload."""

    id: str
    seq: int
    kind: str
    emitted_at: float
    retry_of: str | None


class SignalInHand(PendingSignal):
    """A signal that is being processed. ``runs``: how many it has, ``open``: how many of them have not ended.

    ``holds``: its ended runs keep their locks for a post phase (LCK-4).
    """

    phase: Literal["handling", "running", "posting"]
    holds: bool
    runs: int
    open: int
    post_started_at: float | None
    error: str | None


class MissedLock(TypedDict):
    """A lock that a run misses: the run before it there, and its own place in that line."""

    space: Space
    name: str
    run_id: str
    position: int


class RunInHand(TypedDict):
    """A run in the lock table. ``outcome``: of a held one; ``root``: the run at the end of the chain it waits in."""

    id: str
    signal_id: str
    kind: str
    position: int
    session: str
    resources: list[str]
    state: Literal["waiting", "ready", "running", "held"]
    outcome: RunStateName | None
    since: float
    queued_at: float
    started_at: float | None
    ended_at: float | None
    time_limit: float | None
    stopping_since: float | None
    waits_for: list[MissedLock]
    root: str | None


class SessionInHand(TypedDict):
    """A session that is in memory, as it is at one instant. ``in_run``: a run of it is in flight."""

    name: str
    status: str
    held: bool
    queued: int
    in_run: bool
    waiting_on: WaitingOnDocument
    holds: list[HoldDocument]
    approvals: list[ApprovalDocument]
    abandoned: list[AbandonedDocument]
    usage: UsageDocument


class LockInHand(TypedDict):
    """A lock, with ids of runs; ``more_waiting`` wait beyond those listed."""

    space: Space
    name: str
    holders: list[str]
    waiting: list[str]
    more_waiting: int


class SnapshotWorker(TypedDict):
    """The worker: starting, running, stopping or stopped."""

    status: str
    stop_mode: str | None
    last_error: str | None


class SnapshotDocument(TypedDict):
    """What is true now. ``id``: the event that it is true as of; ``more_…``: how many there are beyond those listed."""

    id: str
    at: float
    worker: SnapshotWorker
    signals: NotRequired[list[SignalInHand]]
    more_signals: NotRequired[int]
    pending: NotRequired[list[PendingSignal]]
    more_pending: NotRequired[bool]
    runs: NotRequired[list[RunInHand]]
    more_runs: NotRequired[int]
    sessions: NotRequired[list[SessionInHand]]
    more_sessions: NotRequired[int]
    locks: NotRequired[list[LockInHand]]
    more_locks: NotRequired[int]

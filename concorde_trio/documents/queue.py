"""Signals, runs and locks: what is listed and looked at (SRV-2, LCK-7)."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

SignalStateName: TypeAlias = Literal["pending", "processing", "done", "failed"]
RunStateName: TypeAlias = Literal["pending", "running", "done", "failed", "limited", "cancelled"]
Space: TypeAlias = Literal["session", "resource"]


class UsageDocument(TypedDict):
    """Tokens, and cost in the currency of the provider's price list, null where it is not known."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float | None


class RunViewDocument(TypedDict):
    """A run in the lock table. ``since``: when that state began; ``unended``: how many runs of its signal have not ended."""

    run_id: str
    signal_id: str
    session: str
    resources: list[str]
    state: Literal["waiting", "ready", "running", "held"]
    since: float
    posting: bool
    unended: int


class WaitEdgeDocument(TypedDict):
    """One lock that a run misses: who is before it there, and its own place in that line."""

    space: Space
    name: str
    blocker: RunViewDocument
    position: int


class WaitDocument(TypedDict):
    """Why a run waits, and the run at the end of the chain (LCK-7)."""

    run: RunViewDocument
    edges: list[WaitEdgeDocument]
    root: RunViewDocument


class LockDocument(TypedDict):
    """A session or a resource: who holds it, who waits for it in order; ``more_waiting`` wait beyond those listed."""

    space: Space
    name: str
    holders: list[RunViewDocument]
    waiting: list[RunViewDocument]
    more_waiting: int


class LockPage(TypedDict):
    """Locks, sessions first, by name. ``next``: the ``after`` of the page after this one, null when this is the last."""

    locks: list[LockDocument]
    next: str | None


class RunDocument(TypedDict):
    """A run. ``stopping``: seconds since it was told to stop; ``waits_for``: why it waits; null when neither is so."""

    id: str
    signal_id: str
    position: int
    index: int
    session: str
    resources: list[str]
    state: RunStateName
    stopping: float | None
    prompt: str
    context: Any
    usage_limit: int | None
    time_limit: float | None
    queued_at: float
    started_at: float | None
    ended_at: float | None
    error: str | None
    text: str | None
    usage: UsageDocument | None
    waits_for: WaitDocument | None


class RunPage(TypedDict):
    """Runs, newest first. ``next``: the ``before`` of the page after this one, null when this is the last."""

    runs: list[RunDocument]
    next: int | None


class SignalDocument(TypedDict):
    """A signal. ``phase``: how far a processing one is; ``key``: its idempotency key; ``retry_of``: what it repeats."""

    id: str
    seq: int
    kind: str
    state: SignalStateName
    phase: Literal["handling", "running", "posting"] | None
    payload: Any
    error: str | None
    interrupted: bool
    key: str | None
    retry_of: str | None
    emitted_at: float
    claimed_at: float | None
    settled_at: float | None


class SignalWithRuns(SignalDocument):
    """A signal and its last 200 runs in prompt order; ``next``: the ``before`` of ``/runs?signal=`` for earlier ones."""

    runs: list[RunDocument]
    next: int | None


class SignalPage(TypedDict):
    """Signals, newest first. ``next``: the ``before`` of the page after this one, null when this is the last."""

    signals: list[SignalDocument]
    next: int | None


class Emitted(TypedDict):
    """The id of a signal that is stored."""

    id: str


class CancelAsked(TypedDict):
    """A run's or a signal's end was asked for; it is over when its state says so (RUN-6)."""

    id: str
    asked: Literal["cancel"]

"""The JSON documents of the agent server, as types: what its routes answer, its OpenAPI document says and ``Client`` gives.

The law: said once, here. A document has every field of its type unless that is marked NotRequired, and no other. Times are
wall-clock seconds since the epoch, ``since`` of a hold and ``left`` seconds. Live tags are masked in every text (TAG-4).
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

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


class WaitingOnDocument(TypedDict):
    """What a session waits for (SES-12a). ``since``, ``last_progress``: seconds ago; ``left``: seconds until ``then``."""

    on: str
    about: str | None
    since: float | None
    last_progress: float | None
    left: float | None
    then: str | None


class SessionRow(TypedDict):
    """A session in a list. ``loaded``: it is in memory; ``held``: an interrupt keeps its queue back (SES-12)."""

    name: str
    created_at: float
    updated_at: float
    loaded: bool
    status: str
    held: bool
    messages: int
    queued: int
    usage: UsageDocument
    waiting_on: WaitingOnDocument


class SessionPage(TypedDict):
    """Sessions, most recently updated first. ``next``: the ``before`` of the page after this one, null at the last."""

    sessions: list[SessionRow]
    next: str | None


class SessionRun(TypedDict):
    """The run that works in a session."""

    id: str
    signal_id: str


class HoldDocument(TypedDict):
    """What holds a session now, seconds since when and for how long at most (LSE-8): a model request or a tool call."""

    what: Literal["llm", "summarizing", "tool"]
    epoch: NotRequired[int]
    call_id: NotRequired[str]
    tool: NotRequired[str]
    kind: NotRequired[str]
    since: float
    last_progress: float | None
    left: float


class ApprovalDocument(TypedDict):
    """A call that a person is asked about (SES-18). ``left``: seconds in which the answer counts."""

    call_id: str
    tool: str
    kind: str
    arguments: str
    since: float
    left: float


class QueuedInput(TypedDict):
    """An input that no turn has taken yet. ``attachments``: how many."""

    id: str
    sender: str | None
    at: float
    text: str
    attachments: int
    signal_id: str | None


class AbandonedDocument(TypedDict):
    """Work that nobody waits for any more (SES-8). ``late``: what it gave in the end."""

    work: int
    call_id: str
    tool: str
    what: str
    number: int | None
    about: str
    since: float
    ended: float | None
    late: str | None
    expected: bool


class SessionDocument(SessionRow):
    """All that is known of one session. Texts are cut to 4,000 characters."""

    lock: WaitDocument | None
    run: SessionRun | None
    holds: list[HoldDocument]
    approvals: list[ApprovalDocument]
    queue: list[QueuedInput]
    more_queued: int
    abandoned: list[AbandonedDocument]


class InputDocument(TypedDict):
    """What one sender said at one time."""

    id: str
    text: str
    at: float
    sender: NotRequired[str]
    attachments: NotRequired[list[Any]]


class ToolCallDocument(TypedDict):
    """A call that a model asked for. ``arguments``: the JSON text of an object, {} where it is left out."""

    id: str
    name: str
    arguments: NotRequired[str]
    refused: NotRequired[str]
    raw: NotRequired[str]


class MessageUsage(TypedDict, total=False):
    """What a reply used; fields that are 0 or not known are left out."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float


class MessageDocument(TypedDict):
    """One message of a session, whole; fields that say nothing are left out. ``seq``: its place, from 1."""

    seq: int
    role: Literal["user", "assistant", "tool", "summary"]
    text: str
    at: float
    inputs: NotRequired[list[InputDocument]]
    calls: NotRequired[list[ToolCallDocument]]
    interrupted: NotRequired[bool]
    model: NotRequired[str]
    provider: NotRequired[Any]
    usage: NotRequired[MessageUsage]
    call_id: NotRequired[str]
    tool: NotRequired[str]
    outcome: NotRequired[
        Literal["ok", "error", "timeout", "interrupted", "denied", "limited", "truncated", "summarized"]
    ]
    path: NotRequired[str]
    covers: NotRequired[int]
    keeps: NotRequired[list[int]]


class MessagePage(TypedDict):
    """Messages in order. ``next``: the ``after`` that leads on, ``previous``: the ``before`` that leads back, or null."""

    messages: list[MessageDocument]
    next: int | None
    previous: int | None


class InputReceipt(TypedDict):
    """What a sender is told (SES-10a). ``signal_id``: what the input became, null if a run in flight takes it as it is.

    ``again``: the id was known; ``input``: what has become of it.
    """

    id: str
    session: str
    state: Literal["accepted", "rejected"]
    reason: str | None
    input: Literal["queued", "delivered", "cancelled"]
    signal_id: str | None
    again: bool


class InputCancelled(TypedDict):
    """A queued input was taken back (SES-10a)."""

    id: str
    session: str
    state: Literal["cancelled"]


class Interrupted(TypedDict):
    """Whether a turn was being taken, and ends now (SES-12)."""

    session: str
    interrupted: bool


class Resumed(TypedDict):
    """Whether something was held, and runs now (SES-12)."""

    session: str
    resumed: bool


class CompactionAsked(TypedDict):
    """The transcript is compacted at the next boundary (SES-15)."""

    session: str
    asked: Literal["compact"]


class ApprovalAnswered(TypedDict):
    """A person's answer for one call (SES-18)."""

    session: str
    call_id: str
    allowed: bool


class Emitted(TypedDict):
    """The id of a signal that is stored."""

    id: str


class CancelAsked(TypedDict):
    """A run's or a signal's end was asked for; it is over when its state says so (RUN-6)."""

    id: str
    asked: Literal["cancel"]


class CurrentRun(TypedDict):
    """The run that a request came from (TAG-3)."""

    id: str
    signal_id: str
    session: str
    context: Any


class Health(TypedDict):
    """The server answers."""

    status: Literal["ok"]


class Readiness(TypedDict):
    """The worker takes signals and the store answers. ``last_error``: what last went wrong with the queue, or null."""

    status: Literal["ready"]
    worker: str
    store: str
    last_error: str | None


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


FieldError = TypedDict(
    "FieldError",
    {
        "in": Literal["path", "query", "header", "body"],
        "field": str,
        "message": str,
        "pointer": NotRequired[str],
    },
)
"""One wrong thing in a request: where it stands, and what is wrong; ``pointer``: its place in a body, as in RFC 9457."""


class ProblemDetails(TypedDict):
    """What went wrong (RFC 9457). ``place``: where in the request the first wrong thing stands; ``errors``: all of them.

    ``worker``, ``store`` and ``last_error`` say why a server is not ready.
    """

    type: str
    title: str
    status: int
    detail: str
    place: NotRequired[str]
    errors: NotRequired[list[FieldError]]
    worker: NotRequired[str]
    store: NotRequired[str]
    last_error: NotRequired[str | None]

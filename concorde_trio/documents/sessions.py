"""Sessions: what each is and waits for, what was said in it, and what a person's change of one is answered with (SRV-2, SRV-3)."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from concorde_trio.documents.queue import UsageDocument, WaitDocument


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

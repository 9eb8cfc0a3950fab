"""The terms a session runs under, and what one step of it asks of its driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import attrs

from concorde_trio._sansio.holds import LLM, LLM_CEILING, SUMMARIZING, SUMMARIZING_CEILING
from concorde_trio._sansio.model_events import ModelRequest, ToolSpec
from concorde_trio._sansio.session_changes import SessionChange
from concorde_trio.errors import UsageError
from concorde_trio.events import Event
from concorde_trio.messages import Input, ToolCall
from concorde_trio.records import NewSignal, Usage

ExecKind: TypeAlias = Literal["read", "write", "execute", "network"]
Decision: TypeAlias = Literal["allow", "deny", "ask"]

KINDS = ("read", "write", "execute", "network")


def _seconds(of: object, attribute: Any, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e9:
        raise UsageError(f"{attribute.name} must be seconds above 0, not {value!r:.80}")


def _maybe_seconds(of: object, attribute: Any, value: object) -> None:
    if value is not None and (not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e9):
        raise UsageError(f"{attribute.name} must be seconds above 0, or None for no bound, not {value!r:.80}")


def _maybe_count(of: object, attribute: Any, value: object) -> None:
    if value is not None:
        _count(of, attribute, value)


def _count(of: object, attribute: Any, value: object) -> None:
    if type(value) is not int or value < 1:
        raise UsageError(f"{attribute.name} must be a whole number of at least 1, not {value!r:.80}")


@attrs.frozen(kw_only=True)
class SessionSettings:
    """How a session behaves. All times are seconds.

    ``heartbeat``: how often a session that waits for something is looked at (SES-4). ``llm_timeout``, ``llm_ceiling``,
    ``summarizing_timeout``, ``summarizing_ceiling``: the budgets of LSE-2 and LSE-9 (a ceiling may be None).
    ``approval_timeout``: how long a question to a person stands before it means no (SES-18). ``stop_wait``: how long a
    call that is being stopped may take to end before its result says that it may still run (SES-7).
    ``summarize_over``: characters of a tool's output above which it is summarised (None: never; SES-14); ``truncate_to``:
    how many of them are kept when that fails (SES-6). ``max_queue``: inputs that may wait (SES-10). ``on_interrupt``:
    "run_queue", or "hold_queue", which has no effect with a worker (SES-12, SES-21). ``max_tries``, ``backoff``, ``backoff_cap``, ``max_backoff``: SES-11.
    ``compact_at``: the part of the model's window above which the transcript is compacted (None: never; SES-15).
    ``usage_limit``: tokens that a turn may use where no run says so (SES-16). ``unload_after``: how long an idle session
    stays in memory (SES-19).
    """

    heartbeat: float = attrs.field(default=1.0, validator=_seconds)
    llm_timeout: float = attrs.field(default=LLM, validator=_seconds)
    llm_ceiling: float | None = attrs.field(default=LLM_CEILING, validator=_maybe_seconds)
    summarizing_timeout: float = attrs.field(default=SUMMARIZING, validator=_seconds)
    summarizing_ceiling: float | None = attrs.field(default=SUMMARIZING_CEILING, validator=_maybe_seconds)
    approval_timeout: float = attrs.field(default=3600.0, validator=_seconds)
    stop_wait: float = attrs.field(default=10.0, validator=_seconds)
    summarize_over: int | None = attrs.field(default=40_000, validator=_maybe_count)
    truncate_to: int = attrs.field(default=8_000, validator=_count)
    max_queue: int = attrs.field(default=1_000, validator=_count)
    on_interrupt: Literal["run_queue", "hold_queue"] = attrs.field(default="run_queue")
    max_tries: int = attrs.field(default=6, validator=_count)
    backoff: float = attrs.field(default=1.0, validator=_seconds)
    backoff_cap: float = attrs.field(default=60.0, validator=_seconds)
    max_backoff: float = attrs.field(default=300.0, validator=_seconds)
    compact_at: float | None = attrs.field(default=0.8)
    usage_limit: int | None = attrs.field(default=None, validator=_maybe_count)
    unload_after: float = attrs.field(default=600.0, validator=_seconds)

    @on_interrupt.validator
    def _check_on_interrupt(self, attribute: attrs.Attribute[str], value: object) -> None:
        if value not in ("run_queue", "hold_queue"):
            raise UsageError(f"on_interrupt is 'run_queue' or 'hold_queue', not {value!r:.80}")

    @compact_at.validator
    def _check_compact_at(self, attribute: attrs.Attribute[float | None], value: object) -> None:
        if value is not None and (not isinstance(value, int | float) or not 0 < value <= 1):
            raise UsageError(f"compact_at is a part of the model's window, above 0 and at most 1, not {value!r:.80}")


@attrs.frozen(kw_only=True)
class ToolTerms:
    """What the session must know of a tool. ``stoppable``: whether cancelling a call of it can end its work."""

    spec: ToolSpec
    timeout: float
    concurrent: bool = False
    kind: ExecKind = "execute"
    stoppable: bool = True


Classify: TypeAlias = Callable[[ToolCall, ExecKind], ExecKind]
"""What kind a call is; gets the kind that its tool says (SES-18)."""
Policy: TypeAlias = Callable[[ToolCall, ExecKind], Decision]
"""Whether a call of this kind is allowed, denied, or asked about (SES-18)."""


SignalFor: TypeAlias = Callable[[str, Input], NewSignal]
"""The signal that an input of a session becomes, where turns begin only inside runs (SES-20)."""


@attrs.frozen
class Linked:
    """An input that became a signal."""

    input: Input
    signal_id: str


@attrs.frozen(kw_only=True)
class SessionTerms:
    """Everything a session's machine is told once. ``tools`` gives what there is now, by name.

    ``clock``: monotonic seconds; ``wall_clock``: for people; ``jitter``: a number from 0 to 1. ``stoppable``: whether the host
    can stop what it does. ``signal_for``: set where turns begin only inside a run.
    """

    clock: Callable[[], float]
    wall_clock: Callable[[], float]
    jitter: Callable[[], float]
    tools: Callable[[], Mapping[str, ToolTerms]]
    classify: Classify | None = None
    policy: Policy | None = None
    settings: SessionSettings = attrs.field(factory=SessionSettings)
    system: Callable[[str], str | None] | None = None
    model_name: str | None = None
    context_window: int | None = None
    stoppable: bool = True
    signal_for: SignalFor | None = None


# --- what a step asks for -----------------------------------------------------------------------------------


@attrs.frozen
class StartRequest:
    """Send this request; its work ends at ``deadline`` (on the session's clock), which moves with the lease."""

    epoch: int
    request: ModelRequest
    deadline: float


@attrs.frozen
class StartCall:
    """Execute this call; its work ends at ``deadline``."""

    call: ToolCall
    registration: int
    deadline: float


@attrs.frozen
class StopRequest:
    """The lease of this epoch is over: cancel its work."""

    epoch: int
    reason: str


@attrs.frozen
class StopCall:
    """This registration is over: cancel its work."""

    registration: int
    reason: str


@attrs.frozen(kw_only=True)
class TurnResult:
    """How a turn ended. ``outcome``: ok, failed, interrupted or limited; ``error``: why, unless it is ok.

    ``text``: what the model said last in it. ``usage``: of this turn. Times are on the session's clock.
    """

    turn: int
    input_ids: tuple[str, ...]
    started: float
    ended: float
    outcome: Literal["ok", "failed", "interrupted", "limited"]
    error: str | None
    text: str | None
    usage: Usage


@attrs.define
class Step:
    """What one event led to, in the order of doing it: stops at once, one commit of changes, then events and starts."""

    stops: list[StopRequest | StopCall] = attrs.field(factory=list)
    changes: list[SessionChange] = attrs.field(factory=list)
    events: list[Event] = attrs.field(factory=list)
    starts: list[StartRequest | StartCall] = attrs.field(factory=list)
    turns: list[TurnResult] = attrs.field(factory=list)


@attrs.frozen
class CallReport:
    """What became of a call's work. ``text`` None: it was cancelled and is over, without a result.

    ``error``: ``text`` says what went wrong. ``path``: where all of a cut output is.
    """

    text: str | None
    error: bool = False
    path: str | None = None


@attrs.frozen
class RequestFailure:
    """Why a request has no reply. ``retry_after``: seconds, None if the provider gave none that makes sense."""

    message: str
    status: int | None = None
    retry_after: float | None = None
    connection: bool = False


@attrs.frozen(kw_only=True)
class Abandoned:
    """Work that nobody waits for any more (SES-8). ``what``: process, thread or call; times are wall-clock seconds.

    ``late``: what it gave in the end. ``expected``: a background child of a command that ended well.
    """

    work: int
    call_id: str
    tool: str
    what: str
    number: int | None
    about: str
    since: float
    ended: float | None = None
    late: str | None = None
    expected: bool = False


@attrs.frozen(kw_only=True)
class WaitingOn:
    """What a session waits for (SES-12a): model, compaction, summary, tool, approval, backoff, stopping, lock or input.

    ``since`` and ``last_progress`` are seconds ago, ``left`` seconds until ``then`` happens (None: no bound). ``about``:
    more words, such as the tool's name.
    """

    on: str
    about: str | None = None
    since: float | None = None
    last_progress: float | None = None
    left: float | None = None
    then: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return attrs.asdict(self)

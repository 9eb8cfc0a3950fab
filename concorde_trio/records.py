"""The glossary as frozen classes: Signal, Prompt, Run, RunPrompt, RunOutcome, PostOutcome and their states.

Times in records are wall-clock seconds since the epoch (floats); durations are seconds. Records are plain
data: they check what can be checked when they are written down, and decide nothing.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from concorde_trio.errors import InvalidName, InvalidPrompt

JSON: TypeAlias = Any
"""None, bool, int, float, str, a list of JSON, or a dict from str to JSON."""

NAME_LIMIT = 200

TEXT_LIMIT = 20_000_000
"""Characters of a prompt's text, and of an answer that is kept: far below what any store holds in one row (REC-5)."""

_UNSTORABLE = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\0\ud800-\udfff]")


class SignalState(enum.StrEnum):
    """SIG-4: pending, then processing, then done or failed; one way."""

    PENDING = "pending"
    PROCESSING = "processing"
    DONE = "done"
    FAILED = "failed"


class SignalPhase(enum.StrEnum):
    """How far a processing signal is. Recovery decides by it (REC-2 to REC-4).

    HANDLING: its handle was started. RUNNING: what handle returned (or its error) is stored. POSTING: its post
    phase was started.
    """

    HANDLING = "handling"
    RUNNING = "running"
    POSTING = "posting"


class RunState(enum.StrEnum):
    """RUN-2: pending, then running, then one of the four outcomes."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    LIMITED = "limited"
    CANCELLED = "cancelled"


def check_name(name: object, what: str) -> str:
    """``name`` if it is 1 to 200 characters without control characters (CLM-7); otherwise InvalidName.

    ``what`` is how the message calls it: "session", "resource", "kind".
    """
    if not isinstance(name, str):
        raise InvalidName(f"{_called(what)} must be a string, not {type(name).__name__}: {name!r:.80}")
    if not 1 <= len(name) <= NAME_LIMIT:
        raise InvalidName(f"{_called(what)} must have 1 to {NAME_LIMIT} characters, this has {len(name)}: {name!r:.80}")
    if not name.isprintable():
        for place, character in enumerate(name):
            if ord(character) < 32 or 127 <= ord(character) < 160 or 0xD800 <= ord(character) < 0xE000:
                raise InvalidName(
                    f"{_called(what)} must not have control characters or lone surrogates; "
                    f"character {place} of {name!r:.80} is U+{ord(character):04X}"
                )
    return name


def _called(what: str) -> str:
    """How a message calls it: "a session name", "an input id"."""
    name = what if what.split()[-1] in ("id", "key") else f"{what} name"
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def storable_text(text: str) -> str:
    """``text`` with NUL and lone surrogates, which no store can hold, replaced by U+FFFD; two that are a pair are joined."""
    return _UNSTORABLE.sub(_stored_as, text)


def _stored_as(found: re.Match[str]) -> str:
    pair = found[0]
    return pair.encode("utf-16", "surrogatepass").decode("utf-16") if len(pair) == 2 else "\ufffd"


@attrs.frozen(kw_only=True)
class Signal:
    """Something that happened: all that a handler is told of it (CLM-4).

    ``seq`` is its place in the one total order (SIG-3), ``emitted_at`` wall-clock seconds since the epoch.
    """

    id: str
    seq: int
    kind: str
    payload: JSON
    emitted_at: float


@attrs.frozen(kw_only=True)
class SignalRecord:
    """All that the store knows of a signal.

    ``phase`` is set while it is processing; ``error`` once it, or its handle, failed; ``interrupted`` when a crash cut
    its handle or one of its runs (REC-4); ``holds`` when its ended runs keep their locks for a post phase (LCK-4);
    ``retry_of`` is the id of the signal it repeats (PST-5).
    """

    id: str
    seq: int
    kind: str
    payload: JSON
    state: SignalState
    emitted_at: float
    key: str | None = None
    retry_of: str | None = None
    phase: SignalPhase | None = None
    claimed_at: float | None = None
    settled_at: float | None = None
    error: str | None = None
    interrupted: bool = False
    holds: bool = False

    @property
    def signal(self) -> Signal:
        """What its handler sees of it."""
        return Signal(id=self.id, seq=self.seq, kind=self.kind, payload=self.payload, emitted_at=self.emitted_at)


@attrs.frozen(kw_only=True)
class NewSignal:
    """A signal to be emitted. ``payload`` is its JSON text, already checked (SIG-5)."""

    id: str
    kind: str
    payload: str
    emitted_at: float
    key: str | None = None
    retry_of: str | None = None


def _text(prompt: Prompt, attribute: attrs.Attribute[str], value: object) -> None:
    if not isinstance(value, str):
        raise InvalidPrompt(f"the text of a Prompt must be a string, not {type(value).__name__}: {value!r:.80}")
    if len(value) > TEXT_LIMIT:
        raise InvalidPrompt(
            f"the text of a Prompt has {len(value):,} characters, at most {TEXT_LIMIT:,} are allowed; "
            "put what is large into a file and name it"
        )
    if storable_text(value) != value:
        raise InvalidPrompt("the text of a Prompt must not have NUL or lone surrogates; no store can hold them")


def _session(prompt: Prompt, attribute: attrs.Attribute[str | None], value: object) -> None:
    if value is not None:
        check_name(value, "session")


def _resources(value: Iterable[str]) -> tuple[str, ...]:
    if isinstance(value, str | bytes | Mapping):
        raise InvalidPrompt(f"resources must be a list of names, not {value!r:.80}; write [{value!r:.80}]")
    try:
        names = tuple(value)
    except TypeError:
        raise InvalidPrompt(f"resources must be a list of names, not {type(value).__name__}") from None
    return tuple(dict.fromkeys(check_name(name, "resource") for name in names))


def _usage_limit(prompt: Prompt, attribute: attrs.Attribute[int | None], value: object) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**63):
        raise InvalidPrompt(f"usage_limit must be a whole number of tokens of at least 1, or None, not {value!r:.80}")


def check_time_limit(value: object, what: str) -> float | None:
    """``value`` as seconds above 0, or None for no limit; otherwise InvalidPrompt."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9:
        return float(value)
    raise InvalidPrompt(f"{what} must be seconds above 0, or None for no limit, not {value!r:.80}")


def _time_limit(value: float | None) -> float | None:
    return check_time_limit(value, "time_limit of a Prompt")


@attrs.frozen(kw_only=True)
class Prompt:
    """One run to be made of a signal.

    ``session``: the conversation to continue, None for a fresh one (LCK-1). ``text``: what the agent is told, with
    ``tag`` in it where the agent shall use it. ``resources``: names that this run needs alone. ``usage_limit``:
    tokens, input and output. ``context``: JSON that requests attributed to this run come with (TAG-3), stored.
    ``time_limit``: seconds (RUN-6). Raises InvalidPrompt or InvalidName; a bad tag or context fails its run
    when it is queued (TAG-6, REC-3).
    """

    text: str = attrs.field(validator=_text)
    session: str | None = attrs.field(default=None, validator=_session)
    resources: Sequence[str] = attrs.field(default=(), converter=_resources)
    usage_limit: int | None = attrs.field(default=None, validator=_usage_limit)
    context: JSON = None
    tag: str | None = None
    time_limit: float | None = attrs.field(default=None, converter=_time_limit)


@attrs.frozen(kw_only=True)
class RunPrompt:
    """All that a Runtime is told of a run (RUN-4): no tag, no resources, no context."""

    session: str
    text: str
    usage_limit: int | None = None


@attrs.frozen(kw_only=True)
class Usage:
    """What a run used: tokens, and cost in the currency of the provider's price list (None: not known).

    ``input_tokens`` are all of them, those read from a cache (``cached_tokens``) included. A ``usage_limit`` bounds input and
    output together.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None


def usage_fault(usage: Usage) -> str | None:
    """What of it is nothing that anybody can have used, or no store can hold; None if nothing is."""
    for name in ("input_tokens", "output_tokens", "cached_tokens"):
        tokens = getattr(usage, name)
        if type(tokens) is not int or not 0 <= tokens < 2**63:
            return f"a Usage whose {name} are no whole number from 0 to 2**63 ({type(tokens).__name__})"
    cost = usage.cost
    if cost is not None and (type(cost) not in (int, float) or not -1e15 < cost < 1e15):
        return f"a Usage whose cost is neither None nor a number below 1e15 ({type(cost).__name__})"
    return None


@attrs.frozen(kw_only=True)
class RunOutcome:
    """How a run ended, as its Runtime tells it (RUN-5). Made by ``ok``, ``failed`` and ``limited``."""

    state: RunState
    error: str | None = None
    text: str | None = None
    usage: Usage | None = None

    @classmethod
    def ok(cls, text: str | None = None, *, usage: Usage | None = None) -> RunOutcome:
        """The run did what it was asked; ``text`` is what the agent answered."""
        return cls(state=RunState.DONE, text=_answer(text), usage=usage)

    @classmethod
    def failed(cls, error: str, *, text: str | None = None, usage: Usage | None = None) -> RunOutcome:
        """The run failed; ``error`` is a sentence a person can act on."""
        return cls(state=RunState.FAILED, error=_reason(error, "the run failed"), text=_answer(text), usage=usage)

    @classmethod
    def limited(cls, reason: str, *, text: str | None = None, usage: Usage | None = None) -> RunOutcome:
        """The run was cut off by its usage limit (PST-2: it counts as failed too)."""
        return cls(
            state=RunState.LIMITED, error=_reason(reason, "usage limit reached"), text=_answer(text), usage=usage
        )


def _answer(text: object) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError(f"the text of a RunOutcome must be a string or None, not {type(text).__name__}: {text!r:.80}")
    return storable_text(text)


def _reason(text: object, otherwise: str) -> str:
    return storable_text(str(text)).strip() or f"{otherwise}, and gave no reason"


@attrs.frozen(kw_only=True)
class Run:
    """All that the store knows of a run.

    ``position`` orders the runs of a queue (LCK-2): it is given out when a run is queued and never again.
    ``index`` is its place among the prompts of its signal, from 0. ``prompt`` is the text of its Prompt, ``text``
    what the agent answered. ``tag`` is None once the run has ended (TAG-4).
    """

    id: str
    signal_id: str
    signal_seq: int
    position: int
    index: int
    session: str
    prompt: str
    resources: tuple[str, ...] = ()
    usage_limit: int | None = None
    context: JSON = None
    tag: str | None = None
    time_limit: float | None = None
    state: RunState = RunState.PENDING
    queued_at: float
    started_at: float | None = None
    ended_at: float | None = None
    error: str | None = None
    text: str | None = None
    usage: Usage | None = None

    @property
    def run_prompt(self) -> RunPrompt:
        """What its Runtime sees of it."""
        return RunPrompt(session=self.session, text=self.prompt, usage_limit=self.usage_limit)


@attrs.frozen(kw_only=True)
class RunResult:
    """One run, as a post phase is told of it (PST-1)."""

    id: str
    session: str
    state: RunState
    error: str | None = None
    text: str | None = None
    usage: Usage | None = None


@attrs.frozen(kw_only=True)
class PostOutcome:
    """How the runs of a signal ended (PST-1).

    ``failed``: one of them, or handle, did not end well. ``limited``: one was cut off by its usage limit, which
    implies failed (PST-2). ``interrupted``: a crash cut handle or a run (REC-4). ``runs``: in prompt order.
    """

    failed: bool
    limited: bool
    interrupted: bool
    runs: tuple[RunResult, ...] = ()


@attrs.frozen(kw_only=True)
class RunInfo:
    """The run that a request came from (TAG-3)."""

    id: str
    signal_id: str
    session: str
    context: JSON = None


class RequestKind(enum.StrEnum):
    """What an operator can ask of a worker, from any process (RUN-6)."""

    CANCEL_RUN = "cancel_run"
    CANCEL_SIGNAL = "cancel_signal"


@attrs.frozen(kw_only=True)
class Request:
    """An operator's request, as a row: ``target`` is the id of a run or a signal."""

    id: int
    kind: RequestKind
    target: str


@attrs.frozen(kw_only=True)
class Unfinished:
    """A processing signal and all its runs, in prompt order: what recovery starts from (REC-3)."""

    signal: SignalRecord
    runs: tuple[Run, ...]

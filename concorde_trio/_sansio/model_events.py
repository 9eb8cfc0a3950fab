"""What is asked of a model, and what comes back while it answers: the vocabulary between a session and a model client.

The law: an event says what came, and nothing about what it means. Whether it was progress (LSE-3), and what reply it all
makes, is decided in ``_sansio.reply``. An event that could not be taken or stored is never made: UsageError, in the client
that would have told it, so that its request alone fails.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from concorde_trio._sansio.json_values import encode
from concorde_trio.errors import InvalidValue, UsageError
from concorde_trio.messages import Message
from concorde_trio.records import JSON, Usage, usage_fault

EPOCH_KEY = "concorde.epoch"
"""The key of a request's context under which its epoch stands; a host hands the context back with the reply (SES-2)."""
PURPOSE_KEY = "concorde.purpose"
"""The key under which the request's Purpose stands."""


class Purpose(enum.StrEnum):
    """What a request is for. A compaction takes two trips: a draft, then its completion (SES-15)."""

    TURN = "turn"
    SUMMARY = "summary"
    COMPACTION_DRAFT = "compaction_draft"
    COMPACTION_FINAL = "compaction_final"


@attrs.frozen(kw_only=True)
class ToolSpec:
    """A tool as a model is told of it. ``parameters`` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class ModelRequest:
    """One request. ``messages`` are a valid transcript (SES-9); a summary message is sent as the user's.

    ``system``: instructions. ``context``: EPOCH_KEY, PURPOSE_KEY and ``session``; it never goes to the provider.
    """

    session: str
    purpose: Purpose
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    system: str | None = None
    context: Mapping[str, Any] = attrs.field(factory=dict)


# --- what comes back ----------------------------------------------------------------------------------------

_PROVIDER_BYTES = 100_000_000


def _text(event: object, attribute: attrs.Attribute[str], value: object) -> None:
    if not isinstance(value, str):
        raise UsageError(f"the {attribute.name} of a {type(event).__name__} must be a string, not {value!r:.80}")


def _index(event: object, attribute: attrs.Attribute[int], value: object) -> None:
    if not isinstance(value, int):
        raise UsageError(f"the index of a {type(event).__name__} must be a number, not {value!r:.80}")


def _usage(event: object, attribute: attrs.Attribute[Usage], value: object) -> None:
    fault = usage_fault(value) if isinstance(value, Usage) else f"{value!r:.80}, which is no Usage"
    if fault is not None:
        raise UsageError(f"a UsageReport was given {fault}")


def _provider(event: object, attribute: attrs.Attribute[JSON], value: JSON) -> None:
    if value is None:
        return
    try:
        encode({"provider": value}, what="ReplyEnd", max_bytes=_PROVIDER_BYTES)  # as deep as it stands in a message
    except InvalidValue as error:
        raise UsageError(f"the provider of a ReplyEnd cannot be stored: {error}") from error


@attrs.frozen
class TextDelta:
    """More of the answer's text."""

    text: str = attrs.field(validator=_text)


@attrs.frozen
class TextSnapshot:
    """The whole text so far, from a host that is polled; the same again is no progress (LSE-3)."""

    text: str = attrs.field(validator=_text)


@attrs.frozen
class ReasoningDelta:
    """More reasoning. ``text`` may be a stand-in for what the provider hides; it is progress if it is not empty."""

    text: str = attrs.field(validator=_text)


@attrs.frozen
class CallStarted:
    """A tool call begins. ``index`` tells the calls of one reply apart; ``arguments``: what of them came along."""

    index: int = attrs.field(validator=_index)
    id: str = attrs.field(validator=_text)
    name: str = attrs.field(validator=_text)
    arguments: str = attrs.field(default="", validator=_text)


@attrs.frozen
class CallDelta:
    """More of the JSON text of a call's arguments."""

    index: int = attrs.field(validator=_index)
    arguments: str = attrs.field(validator=_text)


@attrs.frozen
class UsageReport:
    """What the request used up to now; the last one counts (SES-16)."""

    usage: Usage = attrs.field(validator=_usage)


@attrs.frozen
class Ping:
    """The connection lives. No progress (LSE-3)."""


class StopReason(enum.StrEnum):
    """Why a reply ended. After LENGTH its last call is taken for cut off (SES-13)."""

    STOP = "stop"
    CALLS = "calls"
    LENGTH = "length"
    REFUSED = "refused"


@attrs.frozen
class ReplyEnd:
    """The provider said that the reply is complete. Without it there is no reply. ``provider``: see Message.provider."""

    reason: StopReason = StopReason.STOP
    provider: JSON = attrs.field(default=None, validator=_provider)


ModelEvent: TypeAlias = (
    TextDelta | TextSnapshot | ReasoningDelta | CallStarted | CallDelta | UsageReport | Ping | ReplyEnd
)

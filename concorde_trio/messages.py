"""A conversation as frozen classes: inputs, tool calls, messages, and their states.

Times are wall-clock seconds since the epoch. Messages are plain data; which of them make a valid transcript is decided
in ``_sansio.transcript`` (SES-9).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from concorde_trio.errors import UsageError
from concorde_trio.records import JSON, Usage


def _text(of: object, attribute: attrs.Attribute[str], value: object) -> None:
    if not isinstance(value, str):
        raise UsageError(f"the {attribute.name} of an Input must be a string, not {value!r:.80}")


def _id(of: object, attribute: attrs.Attribute[str], value: object) -> None:
    if not isinstance(value, str) or not value:
        raise UsageError(f"the id of an Input must be a string that is not empty, not {value!r:.80}")


def _attachments(value: Iterable[Any]) -> tuple[Any, ...]:
    if isinstance(value, str | bytes):
        raise UsageError(f"the attachments of an Input must be a list of values, not one: write [{value!r:.80}]")
    return tuple(value)


@attrs.frozen(kw_only=True)
class Input:
    """What one sender said at one time. ``at`` is for people; it orders nothing.

    ``attachments`` are JSON values, kept in order and compared with ``==``. A model client understands
    ``{"type": "image", "media_type": "image/png", "data": BASE64}`` and refuses what it does not know.
    """

    id: str = attrs.field(validator=_id)
    text: str = attrs.field(validator=_text)
    at: float
    sender: str | None = None
    attachments: tuple[Any, ...] = attrs.field(default=(), converter=_attachments)


class InputState(enum.StrEnum):
    """SES-10a: queued, then delivered or cancelled; one way."""

    QUEUED = "queued"
    DELIVERED = "delivered"
    CANCELLED = "cancelled"


class Role(enum.StrEnum):
    """Who says a message. A summary stands for what compaction took away (SES-15)."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SUMMARY = "summary"


class CallOutcome(enum.StrEnum):
    """How a tool call ended, as its one result says (SES-9)."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    DENIED = "denied"
    LIMITED = "limited"
    TRUNCATED = "truncated"
    SUMMARIZED = "summarized"


@attrs.frozen(kw_only=True)
class ToolCall:
    """A call that a model asked for. ``arguments`` is always the JSON text of an object (SES-9).

    ``refused``: why it must never be run (its arguments were cut off, or no JSON object; its id stands twice in one
    reply), None for a good one. ``raw``: what the provider sent instead of a JSON object, cut to 2,000 characters.
    """

    id: str
    name: str
    arguments: str = "{}"
    refused: str | None = None
    raw: str | None = None


@attrs.frozen(kw_only=True)
class Message:
    """One message of a session. ``seq`` is its place, from 1; the results of a reply stand right after it.

    user: ``inputs``, what it was made of (SES-10), ``text`` as the model gets it. assistant: ``calls``, ``interrupted``
    (it was cut by a person, SES-5), ``provider`` (JSON that the same model's client needs to see again, such as signed
    reasoning), ``model``. tool: ``call_id``, ``tool``, ``outcome``, ``path`` (where all of a cut output is). summary:
    it stands for every message up to ``covers`` but those in ``keeps``.
    """

    seq: int
    role: Role
    text: str = ""
    at: float
    inputs: tuple[Input, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    interrupted: bool = False
    model: str | None = None
    provider: JSON = None
    usage: Usage | None = None
    call_id: str | None = None
    tool: str | None = None
    outcome: CallOutcome | None = None
    path: str | None = None
    covers: int | None = None
    keeps: tuple[int, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The message as a JSON object; fields that say nothing are left out. ``message_from_json`` is its inverse."""
        document: dict[str, Any] = {"seq": self.seq, "role": str(self.role), "text": self.text, "at": self.at}
        for field in attrs.fields(Message):
            value = getattr(self, field.name)
            if field.name not in document and value != field.default:
                document[field.name] = _plain(value)
        return document


def message_from_json(document: Mapping[str, Any]) -> Message:
    """The message that ``as_json`` wrote."""
    given = dict(document)
    given["role"] = Role(given["role"])
    given["inputs"] = tuple(Input(**each) for each in given.get("inputs", ()))
    given["calls"] = tuple(ToolCall(**each) for each in given.get("calls", ()))
    given["keeps"] = tuple(given.get("keeps", ()))
    if given.get("usage") is not None:
        given["usage"] = Usage(**given["usage"])
    if given.get("outcome") is not None:
        given["outcome"] = CallOutcome(given["outcome"])
    return Message(**given)


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if attrs.has(type(value)):
        return {
            field.name: _plain(getattr(value, field.name))
            for field in attrs.fields(type(value))
            if getattr(value, field.name) != field.default
        }
    return value

"""One reply while it streams: what has come, whether it grew (LSE-3), and what it is once it is complete (SES-13).

The law: nothing half is ever a reply. A call whose arguments were cut off or are no JSON object is in it, so that it can be
answered, but refused, with ``{}`` in place of what came.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

import attrs

from concorde_trio._sansio.model_events import (
    CallDelta,
    CallStarted,
    ModelEvent,
    ReasoningDelta,
    ReplyEnd,
    StopReason,
    TextDelta,
    TextSnapshot,
    UsageReport,
)
from concorde_trio.messages import ToolCall
from concorde_trio.records import JSON, Usage, storable_text

_RAW = 2_000
_NAME = 200


@attrs.frozen(kw_only=True)
class Reply:
    """A complete reply. ``calls`` are in the order in which they began; ids are never empty."""

    text: str
    calls: tuple[ToolCall, ...]
    usage: Usage | None
    reason: StopReason
    provider: JSON = None


@attrs.define
class _Call:
    id: str
    name: str
    arguments: list[str]


class ReplyBuilder:
    """Takes the events of one request as they come."""

    __slots__ = ("_calls", "_end", "_latest", "_text", "usage")

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls: list[_Call] = []
        self._latest: dict[int, _Call] = {}
        self._end: ReplyEnd | None = None
        self.usage: Usage | None = None
        """The last usage that was reported; it counts whatever becomes of the request (SES-16)."""

    def feed(self, event: ModelEvent) -> bool:
        """The next event; whether text, reasoning or arguments grew by it: progress (LSE-3)."""
        kind = type(event)
        if kind is TextDelta:
            self._text.append(event.text)  # type: ignore[union-attr]
            return bool(event.text)  # type: ignore[union-attr]
        match event:
            case ReasoningDelta(text):
                return bool(text)
            case CallDelta(index, arguments):
                call = self._latest.get(index)
                if call is not None:
                    call.arguments.append(arguments)
                return bool(arguments) and call is not None
            case CallStarted(index, id, name, arguments):
                call = self._latest[index] = _Call(id, name, [arguments])
                self._calls.append(call)
                return True
            case TextSnapshot(text):
                grew = len(text) > len(self.text)
                if grew:
                    self._text = [text]
                return grew
            case UsageReport(usage):
                self.usage = usage
            case ReplyEnd():
                self._end = event
        return False

    @property
    def text(self) -> str:
        """The text so far."""
        if len(self._text) > 1:
            self._text = ["".join(self._text)]
        return self._text[0] if self._text else ""

    @property
    def complete(self) -> bool:
        """Whether the provider said that this was all."""
        return self._end is not None

    def reply(self) -> Reply:
        """The reply, once it is complete."""
        assert self._end is not None
        cut = self._end.reason is StopReason.LENGTH
        seen: set[str] = set()
        calls: list[ToolCall] = []
        for number, call in enumerate(self._calls, 1):
            # A proper part of an object is none, so an earlier call that is cut shows it; one with nothing yet does not.
            may_be_cut = cut and (number == len(self._calls) or not "".join(call.arguments).strip())
            calls.append(_finished(call, number, cut=may_be_cut, seen=seen))
        return Reply(
            text=storable_text(self.text),
            calls=tuple(calls),
            usage=self.usage,
            reason=self._end.reason,
            provider=self._end.provider,
        )


def _finished(call: _Call, number: int, *, cut: bool, seen: set[str]) -> ToolCall:
    call_id = storable_text(call.id)[:_NAME] or f"call_{number}"
    name = storable_text(call.name)[:_NAME]
    text = storable_text("".join(call.arguments)).strip() or "{}"
    if call_id in seen:
        return ToolCall(
            id=call_id,
            name=name,
            refused=f"the id {call_id!r} stands twice in one reply, and this is the second call of it; it was not run. "
            "Give each call an id of its own",
            raw=text[:_RAW],
        )
    seen.add(call_id)
    if cut:
        problem: str | None = "the reply reached its length limit in this call, so its arguments may be cut off"
    else:
        problem = not_an_object(text)
    if problem is None:
        return ToolCall(id=call_id, name=name, arguments=text)
    return ToolCall(
        id=call_id, name=name, refused=f"{problem}; it was not run. Send the whole call again", raw=text[:_RAW]
    )


def not_an_object(text: str) -> str | None:
    """Why ``text`` is not the JSON text of an object, None if it is."""
    try:
        value: Any = json.loads(text, parse_constant=_no_constant)
    except ValueError as error:
        return f"its arguments are no JSON ({error})"
    except RecursionError:
        return "its arguments are nested too deep"
    if not isinstance(value, dict):
        return f"its arguments are a JSON {type(value).__name__}, not an object"
    return None


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")

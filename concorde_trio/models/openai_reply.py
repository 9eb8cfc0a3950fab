"""The chunks of a Chat Completions stream as model events, from any server that comes near the format.

The law: a reply is complete when the server gave a finish_reason, and not before. What a server leaves out (an index, an
id, usage, ``[DONE]``) is lived without; a field of a type nobody knows is passed over.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import attrs

from concorde_trio._sansio.model_events import (
    CallDelta,
    CallStarted,
    Ping,
    ReasoningDelta,
    ReplyEnd,
    StopReason,
    TextDelta,
    UsageReport,
)
from concorde_trio.errors import ModelError
from concorde_trio.models.halves import Halves
from concorde_trio.models.openai_wire import PROVIDER
from concorde_trio.models.settings import Prices, count
from concorde_trio.models.sse import ServerSentEvent
from concorde_trio.models.transport import loads, provider_words, shown
from concorde_trio.models.wire import ToolNames, storable
from concorde_trio.records import Usage
from concorde_trio.sessions.model import OnEvent

_REASONS = {
    "length": StopReason.LENGTH,
    "max_tokens": StopReason.LENGTH,
    "model_length": StopReason.LENGTH,
    "content_filter": StopReason.REFUSED,
    "refusal": StopReason.REFUSED,
}
_BROKEN = {"error": 500, "insufficient_system_resource": 503}
"""Reasons that say that the server gave up, and the status they stand for."""

_CODE = re.compile("[0-9]{3}")

_STATUS = (("rate_limit", 429), ("overloaded", 529), ("unavailable", 503), ("server_error", 500), ("internal", 500))


@attrs.define
class _Call:
    index: int
    id: str
    name: str | None = None  # None: not told yet, because the server has not said the name
    waiting: str = ""


class ChatReply:
    """One reply. ``names``: what the tools are called here."""

    def __init__(self, on_event: OnEvent, names: ToolNames, prices: Prices | None) -> None:
        self._on_event = Halves(on_event)
        self._names = names
        self._prices = prices
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._extras: dict[str, Any] = {}
        self._reason: str | None = None
        self._refused = False
        self._over = False

    def event(self, event: ServerSentEvent) -> bool:
        """The next event; True after ``[DONE]`` if the reply is complete."""
        if event.data is None or not event.data.strip():
            self._on_event(Ping())
            return False
        if event.data.strip() == "[DONE]":
            return self.ended()
        chunk = loads(event.data)
        if event.name == "error" or chunk.get("error"):
            _fail(chunk.get("error") or chunk)
        self._chunk(chunk)
        return False

    def whole(self, document: Any) -> None:
        """The server does not stream: all of the reply at once."""
        if document.get("error"):
            _fail(document["error"])
        self._chunk(document)
        if not self.ended():
            raise ModelError(f"it answered with JSON that is no reply: {shown(json.dumps(document))}")

    def ended(self) -> bool:
        """Tell of the end if the server did."""
        if self._reason is None or self._over:
            return self._over
        for call in self._calls:
            self._tell(call, call.name or "")
        self._over = True
        provider = storable({PROVIDER: {"calls": self._extras}}) if self._extras else None
        self._on_event(ReplyEnd(self._stop_reason(), provider))
        return True

    def _chunk(self, chunk: dict[str, Any]) -> None:
        told = False
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and count(choice.get("index")) == 0:
                told = self._choice(choice) or told
        if isinstance(chunk.get("usage"), dict):
            self._on_event(UsageReport(self._usage(chunk["usage"])))
            told = True
        if not told:
            self._on_event(Ping())

    def _choice(self, choice: dict[str, Any]) -> bool:
        told = False
        delta = choice.get("delta") if isinstance(choice.get("delta"), dict) else choice.get("message")
        if isinstance(delta, dict):
            told = self._delta(delta)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            if reason in _BROKEN:
                words = provider_words(choice.get("error")) or f"the reply ended with {reason!r}"
                raise ModelError(words, status=_BROKEN[reason])
            self._reason = reason
            told = True
        return told

    def _delta(self, delta: dict[str, Any]) -> bool:
        told = False
        # A server that sends both sends the same under both names.
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(reasoning, str) and reasoning:
            self._on_event(ReasoningDelta(reasoning))
            told = True
        content = delta.get("content")
        for part in [content] if isinstance(content, str) else content if isinstance(content, list) else ():
            told = self._part(part) or told
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refused = True
            self._on_event(TextDelta(refusal))
            told = True
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self._call(call)
                told = True
        return told

    def _part(self, part: Any) -> bool:
        """A piece of content, text or one of a list of parts."""
        if isinstance(part, dict):
            if part.get("type") == "thinking":
                words = part.get("thinking")
                pieces = words if isinstance(words, list) else [words]
                text = "".join(
                    piece if isinstance(piece, str) else str(piece.get("text", ""))
                    for piece in pieces
                    if isinstance(piece, str | dict)
                )
                if text:
                    self._on_event(ReasoningDelta(text))
                return bool(text)
            part = part.get("text")
        if isinstance(part, str) and part:
            self._on_event(TextDelta(part))
            return True
        return False

    def _call(self, delta: dict[str, Any]) -> None:
        function = delta.get("function") if isinstance(delta.get("function"), dict) else {}
        assert isinstance(function, dict)
        given_id = delta["id"] if isinstance(delta.get("id"), str) else ""
        name = function["name"] if isinstance(function.get("name"), str) else ""
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments)
        call = self._find(delta.get("index"), given_id, name)
        if delta.get("extra_content") is not None:
            self._extras[str(call.index)] = delta["extra_content"]
        call.id = call.id or given_id
        text = arguments if isinstance(arguments, str) else ""
        if call.name is not None:
            self._on_event(CallDelta(call.index, text))
            return
        call.waiting += text
        if name:
            self._tell(call, name)

    def _find(self, index: Any, given_id: str, name: str) -> _Call:
        """The call that a delta goes on with, or a new one."""
        known: _Call | None
        if isinstance(index, int):
            known = self._by_index.get(index)
            if known is not None and given_id and known.id and given_id != known.id:
                known = None  # a server that gives every call the same index
        elif given_id:
            known = next((call for call in self._calls if call.id == given_id), None)
        else:
            known = None if name or not self._calls else self._calls[-1]
        if known is None:
            known = _Call(len(self._calls), given_id)
            self._calls.append(known)
        if isinstance(index, int):
            self._by_index[index] = known
        return known

    def _tell(self, call: _Call, name: str) -> None:
        if call.name is None:
            call.name = name
            self._on_event(CallStarted(call.index, call.id, self._names.ours(name), call.waiting))

    def _usage(self, usage: dict[str, Any]) -> Usage:
        details = usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        found = Usage(
            input_tokens=count(usage.get("prompt_tokens")),
            output_tokens=count(usage.get("completion_tokens")),
            cached_tokens=count(usage.get("prompt_cache_hit_tokens") if cached is None else cached),
        )
        return attrs.evolve(found, cost=self._prices.cost(found)) if self._prices else found

    def _stop_reason(self) -> StopReason:
        reason = _REASONS.get(self._reason or "")
        if reason is not None:
            return reason
        if self._refused:
            return StopReason.REFUSED
        return StopReason.CALLS if self._calls else StopReason.STOP


def _fail(error: Any) -> NoReturn:
    """Raise what an error in the stream says. Its code may be a status, or a name that stands for one."""
    status: int | None = None
    told = error if isinstance(error, dict) else {}
    for key in ("status", "status_code", "code", "type"):
        value = told.get(key)
        if isinstance(value, str) and _CODE.fullmatch(value):
            value = int(value)
        if isinstance(value, int) and 400 <= value < 600:
            status = value
        elif isinstance(value, str):
            status = next((number for word, number in _STATUS if word in value.lower()), None)
        if status is not None:
            break
    words = provider_words(error) or "it sent an error without words"
    raise ModelError(f"an error in the reply: {words}", status=status)

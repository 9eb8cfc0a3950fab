"""The events of a Messages stream as model events.

The law: a reply is complete when the server said message_stop, or gave a stop_reason and closed the stream, and not before.
Blocks and events of kinds nobody knows are passed over.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

import attrs

from concorde_trio._sansio.model_events import (
    CallDelta,
    CallStarted,
    ModelEvent,
    Ping,
    ReasoningDelta,
    ReplyEnd,
    StopReason,
    TextDelta,
    UsageReport,
)
from concorde_trio.errors import ModelError
from concorde_trio.models.anthropic_wire import PROVIDER
from concorde_trio.models.halves import FIRST, SECOND, Halves
from concorde_trio.models.settings import Prices, count
from concorde_trio.models.sse import ServerSentEvent
from concorde_trio.models.transport import loads, provider_words, shown
from concorde_trio.models.wire import ToolNames, storable
from concorde_trio.records import JSON, Usage
from concorde_trio.sessions.model import OnEvent

HIDDEN = "…"
"""What stands for reasoning that the provider does not show."""

_REASONS = {
    "tool_use": StopReason.CALLS,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "refusal": StopReason.REFUSED,
}
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class MessagesReply:
    """One reply. ``names``: what the tools are called here."""

    def __init__(self, on_event: OnEvent, names: ToolNames, prices: Prices | None) -> None:
        self._on_event = Halves(on_event)
        self._names = names
        self._prices = prices
        self._blocks: dict[int, dict[str, Any]] = {}
        self._layout: list[dict[str, Any]] = []
        self._calls = 0
        self._usage: dict[str, Any] = {}
        self._reason: str | None = None
        self._over = False

    def event(self, event: ServerSentEvent) -> bool:
        """The next event; True after message_stop."""
        if event.data is None or not event.data.strip():
            self._on_event(Ping())
            return False
        document = loads(event.data)
        kind = document.get("type") or event.name
        match kind:
            case "message_start":
                message = document.get("message")
                self._count(message.get("usage") if isinstance(message, dict) else None)
            case "content_block_start":
                self._start(document.get("index"), document.get("content_block"))
            case "content_block_delta":
                self._delta(document.get("index"), document.get("delta"))
            case "message_delta":
                self._count(document.get("usage"))
                delta = document.get("delta")
                if isinstance(delta, dict) and isinstance(delta.get("stop_reason"), str):
                    self._reason = delta["stop_reason"]
            case "message_stop":
                self._reason = self._reason or "end_turn"
                return self.ended()
            case "error":
                _fail(document.get("error") or document)
            case _:
                self._on_event(Ping())
        return False

    def whole(self, document: Any) -> None:
        """The server does not stream: all of the reply at once."""
        if document.get("type") == "error" or document.get("error"):
            _fail(document.get("error") or document)
        content = document.get("content")
        self._count(document.get("usage"))
        for index, block in enumerate(content if isinstance(content, list) else ()):
            self._start(index, block)
        reason = document.get("stop_reason")
        self._reason = reason if isinstance(reason, str) else None
        if not self.ended():
            raise ModelError(f"it answered with JSON that is no reply: {shown(json.dumps(document))}")

    def ended(self) -> bool:
        """Tell of the end if the server did."""
        if self._reason is None or self._over:
            return self._over
        self._over = True
        reason = _REASONS.get(self._reason)
        if reason is None:
            reason = StopReason.CALLS if self._calls else StopReason.STOP
        self._on_event(ReplyEnd(reason, self._provider()))
        return True

    def _start(self, index: Any, block: Any) -> None:
        if not isinstance(block, dict) or not isinstance(index, int):
            self._on_event(Ping())
            return
        block = dict(block)
        self._blocks[index] = block
        match block.get("type"):
            case "text":
                place = {"text": 0}
                self._layout.append(place)
                block["place"] = place
                self._text(block, block.get("text"))
            case "thinking":
                block = self._blocks[index] = {"type": "thinking", "thinking": "", "signature": "", **block}
                self._layout.append({"reasoning": block})
                self._tell(ReasoningDelta(block["thinking"]) if block["thinking"] else Ping())
            case "redacted_thinking":
                self._layout.append({"reasoning": block})
                self._tell(ReasoningDelta(HIDDEN))
            case "tool_use":
                arguments = block.get("input")
                self._layout.append({"call": self._calls})
                block["call"] = self._calls
                self._calls += 1
                self._tell(
                    CallStarted(
                        block["call"],
                        str(block.get("id") or ""),
                        self._names.ours(str(block.get("name") or "")),
                        json.dumps(arguments) if arguments else "",
                    )
                )
            case _:
                self._tell(Ping())

    def _delta(self, index: Any, delta: Any) -> None:
        block = self._blocks.get(index) if isinstance(index, int) else None
        given = delta if isinstance(delta, dict) else {}
        match given.get("type"):
            case "text_delta" if block is not None and "place" in block:
                self._text(block, given.get("text"))
            case "input_json_delta" if block is not None and "call" in block:
                self._tell(CallDelta(block["call"], str(given.get("partial_json") or "")))
            case "thinking_delta" if block is not None and "thinking" in block:
                words = str(given.get("thinking") or "")
                block["thinking"] += words
                self._tell(ReasoningDelta(words) if words else Ping())
            case "signature_delta" if block is not None and "signature" in block:
                block["signature"] += str(given.get("signature") or "")
                # The signature of reasoning that was not shown is all that shows that there was some.
                self._tell(Ping() if block["thinking"] else ReasoningDelta(HIDDEN))
            case _:
                self._tell(Ping())

    def _text(self, block: dict[str, Any], text: Any) -> None:
        if isinstance(text, str) and text:
            joins = block.get("half", False) and SECOND[0] <= text[0] <= SECOND[1]
            block["half"] = FIRST[0] <= text[-1] <= FIRST[1]
            block["place"]["text"] += len(text) - joins
            self._tell(TextDelta(text))
        else:
            self._tell(Ping())

    def _tell(self, event: ModelEvent) -> None:
        self._on_event(event)

    def _count(self, usage: Any) -> None:
        """Counts are totals up to now; a later event may leave out what it does not change."""
        if not isinstance(usage, dict):
            self._on_event(Ping())
            return
        self._usage |= {key: value for key, value in usage.items() if value is not None}
        read = count(self._usage.get("cache_read_input_tokens"))
        written = count(self._usage.get("cache_creation_input_tokens"))
        found = Usage(
            input_tokens=count(self._usage.get("input_tokens")) + read + written,
            output_tokens=count(self._usage.get("output_tokens")),
            cached_tokens=read,
        )
        if self._prices:
            found = attrs.evolve(found, cost=self._prices.cost(found, written))
        self._on_event(UsageReport(found))

    def _provider(self) -> JSON:
        """The order of the blocks, if there is reasoning among them that has to go back."""
        if not any("reasoning" in each for each in self._layout):
            return None
        return {PROVIDER: {"blocks": storable(self._layout)}}


def _fail(error: Any) -> NoReturn:
    kind = error.get("type") if isinstance(error, dict) else None
    words = provider_words(error) or "it sent an error without words"
    status = _STATUS.get(kind) if isinstance(kind, str) else None
    raise ModelError(f"an error in the reply: {words}", status=status)

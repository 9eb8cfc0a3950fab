"""Model events as the bytes that a provider would have sent: the opposite of a model client, for tests of one.

The law: each event is one piece of the stream, so that a test can stop before any of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

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
from concorde_trio.errors import UsageError


class Dialect(Protocol):
    """One provider's way to say things. Write one of these to check a client of another API."""

    @property
    def base_path(self) -> str:
        """What stands between the server's address and the paths that the client adds: ``/v1``, or nothing."""
        ...

    def stream(self, events: Sequence[ModelEvent]) -> list[bytes]:
        """A stream that says these events, one piece each; the first may say what goes before, too."""
        ...

    def error_body(self, status: int, words: str) -> bytes:
        """The body of an answer with this status."""
        ...

    def error_in_stream(self, status: int, words: str) -> bytes:
        """A piece of a stream that says so; status is 429, 500 or 529."""
        ...


def sse(document: Any, name: str | None = None) -> bytes:
    """One server-sent event."""
    line = f"event: {name}\n" if name else ""
    return f"{line}data: {json.dumps(document)}\n\n".encode()


class OpenAIDialect:
    """Chat Completions."""

    base_path = "/v1"
    _REASONS: ClassVar = {
        StopReason.STOP: "stop",
        StopReason.CALLS: "tool_calls",
        StopReason.LENGTH: "length",
        StopReason.REFUSED: "content_filter",
    }

    def stream(self, events: Sequence[ModelEvent]) -> list[bytes]:
        """See Dialect."""
        return [self._piece(event) for event in events]

    def _piece(self, event: ModelEvent) -> bytes:
        match event:
            case TextDelta(text):
                return self._delta({"content": text})
            case ReasoningDelta(text):
                return self._delta({"reasoning_content": text})
            case CallStarted(index, id, name, arguments):
                function = {"name": name, "arguments": arguments}
                return self._delta({"tool_calls": [{"index": index, "id": id, "function": function}]})
            case CallDelta(index, arguments):
                return self._delta({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})
            case UsageReport(usage):
                counts = {
                    "prompt_tokens": usage.input_tokens,
                    "completion_tokens": usage.output_tokens,
                    "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
                }
                return sse({"object": "chat.completion.chunk", "choices": [], "usage": counts})
            case Ping():
                return b": keepalive\n\n"
            case ReplyEnd(reason):
                return self._delta({}, self._REASONS[reason]) + b"data: [DONE]\n\n"
        raise UsageError(f"Chat Completions has no way to say {event!r:.80}")

    def _delta(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return sse({"id": "x", "object": "chat.completion.chunk", "choices": [choice]})

    def error_body(self, status: int, words: str) -> bytes:
        """See Dialect."""
        return json.dumps({"error": {"message": words, "type": "scripted", "code": None}}).encode()

    def error_in_stream(self, status: int, words: str) -> bytes:
        """See Dialect."""
        kind = {429: "rate_limit_exceeded", 500: "server_error", 529: "overloaded_error"}[status]
        return sse({"error": {"message": words, "type": kind, "code": kind}})


class AnthropicDialect:
    """Messages."""

    base_path = ""
    _REASONS: ClassVar = {
        StopReason.STOP: "end_turn",
        StopReason.CALLS: "tool_use",
        StopReason.LENGTH: "max_tokens",
        StopReason.REFUSED: "refusal",
    }

    def stream(self, events: Sequence[ModelEvent]) -> list[bytes]:
        """See Dialect."""
        writer = _MessagesWriter()
        return [writer.piece(event) for event in events]

    def error_body(self, status: int, words: str) -> bytes:
        """See Dialect."""
        return json.dumps({"type": "error", "error": {"type": "scripted", "message": words}}).encode()

    def error_in_stream(self, status: int, words: str) -> bytes:
        """See Dialect."""
        kind = {429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}[status]
        return sse({"type": "error", "error": {"type": kind, "message": words}}, "error")


class _MessagesWriter:
    """Opens and closes blocks as they are needed."""

    def __init__(self) -> None:
        self._begun = False
        self._open: str | None = None
        self._block = -1
        self._blocks: dict[int, int] = {}

    def piece(self, event: ModelEvent) -> bytes:
        return self._begin() + self._said(event)

    def _said(self, event: ModelEvent) -> bytes:
        match event:
            case TextDelta(text):
                opened = self._in("text", {"type": "text", "text": ""})
                return opened + self._delta(self._block, {"type": "text_delta", "text": text})
            case ReasoningDelta(text):
                opened = self._in("thinking", {"type": "thinking", "thinking": "", "signature": ""})
                return opened + self._delta(self._block, {"type": "thinking_delta", "thinking": text})
            case CallStarted(index, id, name, arguments):
                opened = self._in(f"call {index}", {"type": "tool_use", "id": id, "name": name, "input": {}})
                self._blocks[index] = self._block
                return opened + (self._arguments(index, arguments) if arguments else b"")
            case CallDelta(index, arguments):
                return self._arguments(index, arguments)
            case UsageReport(usage):
                counts = {
                    "input_tokens": usage.input_tokens - usage.cached_tokens,
                    "cache_read_input_tokens": usage.cached_tokens,
                    "cache_creation_input_tokens": 0,
                    "output_tokens": usage.output_tokens,
                }
                return self._event("message_delta", {"delta": {"stop_reason": None}, "usage": counts})
            case Ping():
                return self._event("ping", {})
            case ReplyEnd(reason):
                stop = {"delta": {"stop_reason": AnthropicDialect._REASONS[reason], "stop_sequence": None}}
                return self._close() + self._event("message_delta", stop) + self._event("message_stop", {})
        raise UsageError(f"the Messages API has no way to say {event!r:.80}")

    def _begin(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        message: dict[str, Any] = {
            "id": "x",
            "type": "message",
            "role": "assistant",
            "content": [],
            "stop_reason": None,
        }
        return self._event("message_start", {"message": message})

    def _in(self, what: str, block: dict[str, Any]) -> bytes:
        if self._open == what:
            return b""
        closed = self._close()
        self._open = what
        self._block += 1
        return closed + self._event("content_block_start", {"index": self._block, "content_block": block})

    def _close(self) -> bytes:
        if self._open is None:
            return b""
        self._open = None
        return self._event("content_block_stop", {"index": self._block})

    def _arguments(self, index: int, arguments: str) -> bytes:
        return self._delta(self._blocks[index], {"type": "input_json_delta", "partial_json": arguments})

    def _delta(self, block: int, delta: dict[str, Any]) -> bytes:
        return self._event("content_block_delta", {"index": block, "delta": delta})

    def _event(self, name: str, fields: dict[str, Any]) -> bytes:
        return sse({"type": name, **fields}, name)

"""The three model APIs that agent programs speak, on a real socket, played by what the prompt itself says.

Each line of the last such prompt that begins with ``@@`` is one reply: ``@@ text WORDS``, ``@@ bash COMMAND`` (a call of
whatever the program calls its shell) or ``@@ stall`` (the beginning of a reply, then silence). Each reply uses 120 tokens, 20 of
them cached, and 7. A request to any other path is answered with pong: that is the agent server.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from concorde_trio._sansio.model_events import CallStarted, ModelEvent, ReplyEnd, StopReason, TextDelta, UsageReport
from concorde_trio.records import Usage
from concorde_trio.testing.model_dialects import OpenAIDialect, sse
from concorde_trio.testing.model_server import (
    HeardRequest,
    ModelServer,
    ServerAnswer,
    event_stream,
    open_model_server,
    whole,
)

USAGE = Usage(input_tokens=120, output_tokens=7, cached_tokens=20)

SHELLS = {"bash": "command", "Bash": "command", "shell_command": "command", "exec_command": "cmd"}
"""Names of shell tools, and of the argument that is the command."""


@asynccontextmanager
async def open_scripted_models() -> AsyncIterator[ModelServer]:
    """All three on one server, until the block is left."""
    async with open_model_server() as server:
        server.answers(_answer)
        yield server


def pings(server: ModelServer) -> list[str | None]:
    """The run tags of the requests to the agent server, in order."""
    return [each.headers.get("concorde-run-tag") for each in server.requests if each.path == "/ping"]


def asked(server: ModelServer, text: str) -> bool:
    """Whether the last request to a model has this text anywhere in it."""
    bodies = [each.body.decode() for each in server.requests if each.method == "POST" and _dialect(each.path)]
    return text in bodies[-1]


def _answer(request: HeardRequest) -> ServerAnswer:
    dialect = _dialect(request.path)
    if dialect is None or request.method != "POST":
        return ServerAnswer(pieces=(whole(200, b'{"pong": true}'),))
    body = json.loads(request.body)
    verb, words = _step(body)
    offered = {(tool.get("function") or tool).get("name") for tool in body.get("tools") or []}
    shell = next((name for name in SHELLS if name in offered), None)
    events: list[ModelEvent]
    if verb == "bash" and shell:
        arguments = {SHELLS[shell]: words} | ({"description": "as told"} if shell in ("Bash", "bash") else {})
        events = [CallStarted(0, f"call_{len(request.body)}", shell, json.dumps(arguments))]
        reason = StopReason.CALLS
    else:
        events, reason = [TextDelta(words)], StopReason.STOP
    if verb == "stall":
        return ServerAnswer(pieces=event_stream(dialect.stream(events))[:-1], then="stall")
    return ServerAnswer(pieces=event_stream(dialect.stream([*events, UsageReport(USAGE), ReplyEnd(reason)])))


def _dialect(path: str) -> OpenAIDialect | MessagesDialect | ResponsesDialect | None:
    endings = {
        "/chat/completions": OpenAIDialect,
        "/messages": MessagesDialect,
        "/responses": ResponsesDialect,
    }
    return next((dialect() for end, dialect in endings.items() if path.split("?")[0].endswith(end)), None)


def _step(body: dict[str, Any]) -> tuple[str, str]:
    turns = [_turn(one) for one in body.get("messages") or body.get("input") or []]
    for place in reversed(range(len(turns))):
        role, text = turns[place]
        lines = [line.strip()[3:] for line in text.split("\n") if line.strip().startswith("@@ ")]
        if role == "user" and lines:
            played = sum(after == "assistant" for after, _ in turns[place + 1 :])
            verb, _, words = (lines[played] if played < len(lines) else "text done").partition(" ")
            return verb, words
    return "text", "done"


def _turn(item: dict[str, Any]) -> tuple[str, str]:
    kind = item.get("type", "message")
    if kind.endswith("_call"):
        return "assistant", ""
    if kind.endswith("_output") or item.get("role") == "tool":
        return "tool", ""
    content = item.get("content")
    blocks = content if isinstance(content, list) else [{"text": content}]
    return item.get("role", ""), "\n".join(str(block.get("text", "")) for block in blocks)


class MessagesDialect:
    """Messages as the provider itself streams them: an id for each message, and usage with the stop reason."""

    def stream(self, events: list[ModelEvent]) -> list[bytes]:
        """See concorde_trio.testing.model_dialects.Dialect."""
        counts = {"input_tokens": 100, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 0}
        message: dict[str, Any] = {"id": f"msg_{secrets.token_hex(6)}", "type": "message", "role": "assistant"}
        opened = {**message, "model": "fake-1", "content": [], "usage": {**counts, "output_tokens": 1}}
        pieces = [self._event("message_start", message=opened)]
        for event in events:
            match event:
                case TextDelta(text):
                    pieces.append(
                        self._event("content_block_start", index=0, content_block={"type": "text", "text": ""})
                    )
                    pieces.append(
                        self._event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})
                    )
                case CallStarted(_, id, name, arguments):
                    block = {"type": "tool_use", "id": id, "name": name, "input": {}}
                    pieces.append(self._event("content_block_start", index=0, content_block=block))
                    delta = {"type": "input_json_delta", "partial_json": arguments}
                    pieces.append(self._event("content_block_delta", index=0, delta=delta))
                case ReplyEnd(reason):
                    pieces.append(self._event("content_block_stop", index=0))
                    stop = {"stop_reason": "tool_use" if reason is StopReason.CALLS else "end_turn"}
                    pieces.append(self._event("message_delta", delta=stop, usage={**counts, "output_tokens": 7}))
                    pieces.append(self._event("message_stop"))
        return pieces

    def _event(self, name: str, **fields: Any) -> bytes:
        return sse({"type": name, **fields}, name)


class ResponsesDialect:
    """Responses, as far as a scripted reply needs it."""

    def stream(self, events: list[ModelEvent]) -> list[bytes]:
        """See concorde_trio.testing.model_dialects.Dialect."""
        response: dict[str, Any] = {"id": "resp_1", "object": "response", "created_at": 0, "output": []}
        pieces = [self._event("response.created", response={**response, "status": "in_progress"})]
        for event in events:
            match event:
                case TextDelta(text):
                    item: dict[str, Any] = {"type": "message", "role": "assistant", "id": "item_1", "content": []}
                    pieces.append(self._event("response.output_item.added", output_index=0, item=item))
                    said = {"item_id": "item_1", "output_index": 0, "content_index": 0, "delta": text}
                    pieces.append(self._event("response.output_text.delta", **said))
                    done = {**item, "content": [{"type": "output_text", "text": text, "annotations": []}]}
                case CallStarted(_, id, name, arguments):
                    done = {
                        "type": "function_call",
                        "id": "item_1",
                        "call_id": id,
                        "name": name,
                        "arguments": arguments,
                    }
                case UsageReport(usage):
                    pieces.append(self._event("response.output_item.done", output_index=0, item=done))
                    counts = {
                        "input_tokens": usage.input_tokens,
                        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
                        "output_tokens": usage.output_tokens,
                        "output_tokens_details": {"reasoning_tokens": 0},
                        "total_tokens": usage.input_tokens + usage.output_tokens,
                    }
                    ended = {**response, "status": "completed", "output": [done], "usage": counts}
                    pieces.append(self._event("response.completed", response=ended))
        return pieces

    def _event(self, name: str, **fields: Any) -> bytes:
        return sse({"type": name, **fields}, name)

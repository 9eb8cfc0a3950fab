"""A model client and a server that plays bytes to it, for tests of what goes out and what comes back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from concorde_trio import AnthropicModel, OpenAIModel
from concorde_trio._sansio.model_events import ModelRequest, Purpose, ReplyEnd, ToolSpec
from concorde_trio.messages import CallOutcome, Input, Message, Role, ToolCall
from concorde_trio.testing.model_checks.asking import Heard, asked, hear
from concorde_trio.testing.model_dialects import AnthropicDialect, OpenAIDialect, sse
from concorde_trio.testing.model_server import HeardRequest, ServerAnswer, event_stream, open_model_server

BASE = {OpenAIModel: "/v1", AnthropicModel: ""}
DIALECTS = {OpenAIModel: OpenAIDialect(), AnthropicModel: AnthropicDialect()}


async def request_of(kind: Any, request: ModelRequest, **settings: Any) -> HeardRequest:
    """The HTTP request that a client of this kind makes of a request."""
    async with open_model_server() as server:
        server.answers(ServerAnswer(pieces=event_stream(DIALECTS[kind].stream([ReplyEnd()]))))
        model = kind("model-1", base_url=server.url + BASE[kind], **{"api_key": "sk-1", **settings})
        heard = await hear(model, request)
        assert heard.complete, heard.error
        (found,) = server.requests
    return found


async def body_of(kind: Any, request: ModelRequest, **settings: Any) -> dict[str, Any]:
    """The JSON body of it."""
    body: dict[str, Any] = json.loads((await request_of(kind, request, **settings)).body)
    return body


async def heard_of(
    kind: Any, pieces: Iterable[bytes] | ServerAnswer, request: ModelRequest | None = None, **settings: Any
) -> Heard:
    """What a client of this kind makes of a stream of these pieces, or of this answer."""
    answer = pieces if isinstance(pieces, ServerAnswer) else ServerAnswer(pieces=event_stream(pieces))
    async with open_model_server() as server:
        server.answers(answer)
        model = kind("model-1", base_url=server.url + BASE[kind], **{"api_key": "sk-1", **settings})
        return await hear(model, request or asked())


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> bytes:
    """A chunk of Chat Completions."""
    return sse({"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more})


def conversation(*messages: Message, tools: tuple[ToolSpec, ...] = (), system: str | None = None) -> ModelRequest:
    """A request with these messages."""
    return ModelRequest(session="ann", purpose=Purpose.TURN, messages=messages, tools=tools, system=system)


def user(seq: int, text: str = "hi", *attachments: Any) -> Message:
    """A message of a person."""
    said = Input(id=f"i{seq}", text=text, at=0.0, attachments=attachments)
    return Message(seq=seq, role=Role.USER, text=text, at=0.0, inputs=(said,))


def reply(seq: int, text: str = "", *calls: ToolCall, **more: Any) -> Message:
    """A message of the model."""
    return Message(seq=seq, role=Role.ASSISTANT, text=text, at=0.0, calls=calls, **more)


def result(seq: int, call_id: str, text: str = "done", outcome: CallOutcome = CallOutcome.OK) -> Message:
    """The result of a call."""
    return Message(seq=seq, role=Role.TOOL, text=text, at=0.0, call_id=call_id, tool="t", outcome=outcome)


def tool(name: str) -> ToolSpec:
    """A tool without arguments."""
    return ToolSpec(name=name, description="x", parameters={"type": "object", "properties": {}})

"""A request as the Messages API wants it: user and assistant in turn, results first in the user's.

The law: what goes out is a function of the request and the client's settings alone. Signed reasoning goes back to the
model that signed it, in its old place, and to no other.
"""

from __future__ import annotations

import json
from typing import Any

from concorde_trio._sansio.model_events import ModelRequest
from concorde_trio.models.wire import AssistantTurn, ToolNames, UserTurn, storable, turns

PROVIDER = "anthropic"
"""The key of Message.provider under which this client keeps what it must send back: the order of a reply's blocks."""

BEGIN = "(The conversation begins with a reply.)"
GO_ON = "(Go on.)"
CACHE = {"type": "ephemeral"}

Block = dict[str, Any]


def messages_body(request: ModelRequest, names: ToolNames, model: str, *, cache: bool) -> dict[str, Any]:
    """``messages``, ``system`` and ``tools``. ``cache``: mark what is to be cached, up to the end of the conversation.

    ModelError for an attachment that no client knows.
    """
    messages: list[dict[str, Any]] = []
    for turn in turns(request.messages, names, model):
        if isinstance(turn, UserTurn):
            _add(messages, "user", _user(turn))
        else:
            if not messages:
                _add(messages, "user", [{"type": "text", "text": BEGIN}])
            _add(messages, "assistant", _assistant(turn))
            _add(messages, "user", [_result(each) for each in turn.results])
    if not messages or messages[-1]["role"] == "assistant":
        _add(messages, "user", [{"type": "text", "text": GO_ON}])
    body: dict[str, Any] = {"messages": messages, **_tools(request, names)}
    if request.system:
        body["system"] = [{"type": "text", "text": request.system}]
    if cache:
        for place in (body.get("system"), messages[-1]["content"]):
            if place:
                place[-1]["cache_control"] = CACHE
    written: dict[str, Any] = storable(body)
    return written


def _add(messages: list[dict[str, Any]], role: str, blocks: list[Block]) -> None:
    if not blocks:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] += blocks
    else:
        messages.append({"role": role, "content": blocks})


def _user(turn: UserTurn) -> list[Block]:
    blocks: list[Block] = [
        {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}
        for image in turn.images
    ]
    # The API refuses text of spaces alone.
    if turn.text.strip() or not blocks:
        blocks.append({"type": "text", "text": turn.text if turn.text.strip() else "(no text)"})
    return blocks


def _result(result: Any) -> Block:
    block = {"type": "tool_result", "tool_use_id": result.id, "content": result.text}
    return {**block, "is_error": True} if result.is_error else block


def _assistant(turn: AssistantTurn) -> list[Block]:
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in turn.calls
    ]
    kept = turn.provider.get(PROVIDER) if isinstance(turn.provider, dict) else None
    layout = kept.get("blocks") if isinstance(kept, dict) else None
    if not isinstance(layout, list):
        return [*_text(turn.text), *calls]
    blocks: list[Block] = []
    rest, left = turn.text, list(calls)
    for each in layout:
        if not isinstance(each, dict):
            continue
        if "text" in each:
            # No text after a call: results must follow the calls.
            piece, rest = rest[: each["text"]], rest[each["text"] :]
            first_call = next((at for at, block in enumerate(blocks) if block["type"] == "tool_use"), len(blocks))
            blocks[first_call:first_call] = _text(piece)
        elif "call" in each:
            blocks += left[:1]
            del left[:1]
        elif isinstance(each.get("reasoning"), dict):
            blocks.append(each["reasoning"])
    first_call = next((at for at, block in enumerate(blocks) if block["type"] == "tool_use"), len(blocks))
    blocks[first_call:first_call] = _text(rest)
    return [*blocks, *left]


def _text(text: str) -> list[Block]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _tools(request: ModelRequest, names: ToolNames) -> dict[str, Any]:
    tools = [
        {
            "name": names.wire(tool.name),
            "description": tool.description,
            "input_schema": {"type": "object", "properties": {}, **tool.parameters},
        }
        for tool in request.tools
    ]
    if tools:
        return {"tools": tools}
    # A conversation with calls is refused without tools; these can be seen, and not called.
    called = dict.fromkeys(call.name for message in request.messages for call in message.calls)
    if not called:
        return {}
    return {
        "tools": [{"name": names.wire(name), "input_schema": {"type": "object", "properties": {}}} for name in called],
        "tool_choice": {"type": "none"},
    }

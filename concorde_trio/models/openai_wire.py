"""A request as Chat Completions wants it.

The law: what goes out is a function of the request and the client's settings alone.
"""

from __future__ import annotations

from typing import Any

from concorde_trio._sansio.model_events import ModelRequest
from concorde_trio.models.wire import AssistantTurn, ToolNames, UserTurn, storable, turns

PROVIDER = "openai"
"""The key of Message.provider under which this client keeps what it must send back."""


def chat_body(request: ModelRequest, names: ToolNames, model: str) -> dict[str, Any]:
    """``messages`` and ``tools``. ModelError for an attachment that no client knows."""
    messages: list[dict[str, Any]] = []
    if request.system:
        messages.append({"role": "system", "content": request.system})
    for turn in turns(request.messages, names, model):
        if isinstance(turn, UserTurn):
            messages.append(_user(turn))
        else:
            messages += _assistant(turn)
    body: dict[str, Any] = {"messages": messages}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": names.wire(tool.name),
                    "description": tool.description,
                    "parameters": {"type": "object", "properties": {}, **tool.parameters},
                },
            }
            for tool in request.tools
        ]
    written: dict[str, Any] = storable(body)
    return written


def _user(turn: UserTurn) -> dict[str, Any]:
    if not turn.images:
        return {"role": "user", "content": turn.text}
    parts: list[dict[str, Any]] = [
        {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{image.data}"}}
        for image in turn.images
    ]
    if turn.text:
        parts.append({"type": "text", "text": turn.text})
    return {"role": "user", "content": parts}


def _assistant(turn: AssistantTurn) -> list[dict[str, Any]]:
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in turn.calls
        ]
        for place, extra in _extras(turn):
            message["tool_calls"][place]["extra_content"] = extra
    results = [{"role": "tool", "tool_call_id": result.id, "content": result.text} for result in turn.results]
    return [message, *results]


def _extras(turn: AssistantTurn) -> list[tuple[int, Any]]:
    kept = turn.provider.get(PROVIDER) if isinstance(turn.provider, dict) else None
    extras = kept.get("calls") if isinstance(kept, dict) else None
    if not isinstance(extras, dict):
        return []
    return [(int(place), extra) for place, extra in extras.items() if place.isdigit() and int(place) < len(turn.calls)]

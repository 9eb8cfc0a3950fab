"""A transcript as turns that every API can write: what is said, the calls of a reply, and their results with it.

The law: the same transcript gives the same turns, and a longer one begins with the same ones, so that a provider's cache
holds. Ids and names that an API does not take are replaced; an id that comes again is made new, and its result follows
its call (SES-13).
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import attrs

from concorde_trio._sansio.model_events import ToolSpec
from concorde_trio.errors import InternalError, ModelError
from concorde_trio.messages import CallOutcome, Message, Role
from concorde_trio.records import JSON, storable_text

ID_LIMIT = 40
NAME_LIMIT = 64
"""Characters that every provider takes in an id and in a tool's name, of letters, digits, ``_`` and ``-``."""

SUMMARY = "[A summary of the conversation up to here, in place of its messages:]"
INTERRUPTED = "[The user interrupted this reply here.]"
NO_TEXT = "(no text)"
NO_OUTPUT = "(no output)"

_NOT_IN_AN_ID = re.compile("[^a-zA-Z0-9_-]")
_GOOD = (CallOutcome.OK, CallOutcome.TRUNCATED, CallOutcome.SUMMARIZED, None)


@attrs.frozen
class Image:
    """A picture, base64."""

    media_type: str
    data: str


@attrs.frozen
class UserTurn:
    """What a person says, or a summary. ``text`` may be empty only if there are images."""

    text: str
    images: tuple[Image, ...] = ()


@attrs.frozen
class WireCall:
    """A call; ``arguments`` is the JSON text of an object."""

    id: str
    name: str
    arguments: str


@attrs.frozen
class WireResult:
    """The result of the call with the same id. ``text`` is never empty."""

    id: str
    text: str
    is_error: bool


@attrs.frozen
class AssistantTurn:
    """A reply, with the results of its calls in call order. ``provider``: None if another model gave the reply."""

    text: str
    calls: tuple[WireCall, ...]
    results: tuple[WireResult, ...]
    provider: JSON


Turn: TypeAlias = UserTurn | AssistantTurn


class ToolNames:
    """Names of tools on the wire, both ways. A name that every provider takes is never changed."""

    __slots__ = ("_ours", "_wire")

    def __init__(self, tools: Iterable[ToolSpec], messages: Iterable[Message] = ()) -> None:
        self._wire: dict[str, str] = {}
        self._ours: dict[str, str] = {}
        names = list(dict.fromkeys(tool.name for tool in tools))
        names += dict.fromkeys(call.name for message in messages for call in message.calls)
        for name in names:
            if _allowed(name, NAME_LIMIT, "") == name:
                self._wire[name], self._ours[name] = name, name
        for name in names:
            if name not in self._wire:
                wire = _unused(_allowed(name, NAME_LIMIT, "unnamed"), self._ours, NAME_LIMIT)
                self._wire[name], self._ours[wire] = wire, name

    def wire(self, name: str) -> str:
        """What the API calls it."""
        return self._wire[name]

    def ours(self, wire: str) -> str:
        """What we call it; a name that the model made up stays as it is."""
        return self._ours.get(wire, wire)


def turns(messages: Sequence[Message], names: ToolNames, model: str) -> Iterator[Turn]:
    """The transcript as turns. ModelError for an attachment that no client knows."""
    used: set[str] = set()
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        match message.role:
            case Role.USER:
                images = tuple(_images(message))
                yield UserTurn(storable_text(message.text) or ("" if images else NO_TEXT), images)
            case Role.SUMMARY:
                yield UserTurn(f"{SUMMARY}\n{storable_text(message.text)}")
            case Role.ASSISTANT:
                results = []
                while at < len(messages) and messages[at].role is Role.TOOL:
                    results.append(messages[at])
                    at += 1
                turn = _assistant(message, results, names, used, model)
                if turn.text or turn.calls:
                    yield turn
            case Role.TOOL:
                raise InternalError(f"message {message.seq} is a result that stands after no call (SES-9)")


def _assistant(message: Message, results: list[Message], names: ToolNames, used: set[str], model: str) -> AssistantTurn:
    calls, ids = [], []
    for call in message.calls:
        wire = _unused(_allowed(call.id, ID_LIMIT, "call"), used, ID_LIMIT)
        used.add(wire)
        ids.append((call.id, wire))
        calls.append(WireCall(wire, names.wire(call.name), call.arguments))
    answers = []
    for result in results:
        place = next((place for place in ids if place[0] == result.call_id), None)
        if place is None:
            raise InternalError(f"message {result.seq} is a result for {result.call_id!r}, which has none open (SES-9)")
        ids.remove(place)
        text = storable_text(result.text)
        answers.append(WireResult(place[1], text if text.strip() else NO_OUTPUT, is_error=result.outcome not in _GOOD))
    text = storable_text(message.text)
    if message.interrupted:
        text = f"{text.rstrip()}\n{INTERRUPTED}".lstrip()
    elif not text.strip():
        text = ""
    return AssistantTurn(text, tuple(calls), tuple(answers), message.provider if message.model == model else None)


def _images(message: Message) -> Iterator[Image]:
    for each in message.inputs:
        for attachment in each.attachments:
            yield _image(attachment, each.id)


def _image(attachment: Any, input_id: str) -> Image:
    given = attachment if isinstance(attachment, dict) else {}
    if given.get("type") == "image":
        media_type, data = given.get("media_type"), given.get("data")
        if isinstance(media_type, str) and media_type.startswith("image/") and isinstance(data, str) and data:
            return Image(media_type, data)
        raise ModelError(
            f"the image attached to input {input_id!r} has no media_type like 'image/png' with base64 data; "
            "no request was sent"
        )
    raise ModelError(
        f"input {input_id!r} has an attachment of a type that this model client does not know, "
        f"{given.get('type', type(attachment).__name__)!r:.80}; it knows 'image'. No request was sent"
    )


def _allowed(text: str, limit: int, otherwise: str) -> str:
    return _NOT_IN_AN_ID.sub("_", text)[:limit] or otherwise


def _unused(wanted: str, used: Container[str], limit: int) -> str:
    name, number = wanted, 1
    while name in used:
        number += 1
        name = f"{wanted[: limit - len(str(number)) - 1]}_{number}"
    return name


def storable(value: JSON) -> JSON:
    """A JSON value with nothing in it that no provider and no store can hold; NaN, which some servers send, becomes None."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {storable_text(key): storable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [storable(each) for each in value]
    return value

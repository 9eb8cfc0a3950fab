"""The events of a scripted reply: ``[seconds, {"text": "..."}]`` and its like, each made what a model client would say.

The law of this module: an event has exactly one name, and means what a provider would mean by it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from concorde_trio._sansio.model_events import (
    CallStarted,
    ModelEvent,
    Ping,
    ReasoningDelta,
    ReplyEnd,
    TextDelta,
    UsageReport,
)
from concorde_trio.records import Usage
from concorde_trio.simulate.fields import Fields, refuse
from concorde_trio.simulate.session_script import ScriptedError, ScriptedStep

_NAMES = ("text", "reasoning", "call", "usage", "ping", "end", "error")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")  # what is a number in a Retry-After header


def step(value: object, place: str, index: int) -> ScriptedStep:
    """``[seconds after the one before, event]``; ``index``: which of its reply it is."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        refuse(place, "[seconds, event]", value)
    after = Fields.seconds_of(value[0], f"{place}[0]")
    return ScriptedStep(after, _event(value[1], f"{place}[1]", index))


def _event(value: object, place: str, index: int) -> ModelEvent | ScriptedError:
    fields = Fields(value, place, "an event", _NAMES)
    given = fields.one_of(*_NAMES)
    read: dict[str, Callable[[object, str], ModelEvent | ScriptedError]] = {
        "text": lambda given, where: TextDelta(_string(given, where)),
        "reasoning": lambda given, where: ReasoningDelta(_string(given, where)),
        "call": lambda given, where: _call(given, where, index),
        "usage": _usage,
        "ping": lambda given, where: _true(given, where, Ping()),
        "end": lambda given, where: _true(given, where, ReplyEnd()),
        "error": error,
    }
    return fields.need(given, read[given])


def error(value: object, place: str) -> ScriptedError:
    """``{"status": 429, "retry_after": 7}``; without a status the connection failed."""
    fields = Fields(value, place, "an error", ("status", "retry_after"))
    return ScriptedError(fields.optional("status", _status), fields.optional("retry_after", _retry_after))


def _status(value: object, place: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 100 <= value <= 999:
        refuse(place, "an HTTP status, a whole number from 100 to 999, or null for a failed connection", value)
    return value


def _retry_after(value: object, place: str) -> float | str:
    if not isinstance(value, str):
        return Fields.seconds_of(value, place, "seconds of at least 0, or the text of a Retry-After header")
    return float(value) if _SECONDS.fullmatch(value.strip()) else value


def _call(value: object, place: str, index: int) -> CallStarted:
    fields = Fields(value, place, "a call", ("id", "name", "arguments"))
    return CallStarted(
        index,
        fields.string("id", "the id of the call, a string"),
        fields.string("name", "the name of a tool, a string"),
        fields.optional("arguments", _arguments) or "{}",
    )


def _arguments(value: object, place: str) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        refuse(place, "an object, or a string that is passed on as it is", value)
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as wrong:
        refuse(place, f"an object that JSON can hold ({wrong})", value)


def _usage(value: object, place: str) -> UsageReport:
    fields = Fields(value, place, "a usage", ("input", "output"))
    given = fields.count("input", default=0, least=0), fields.count("output", default=0, least=0)
    return UsageReport(Usage(input_tokens=given[0] or 0, output_tokens=given[1] or 0))


def _string(value: object, place: str) -> str:
    if not isinstance(value, str):
        refuse(place, "a string", value)
    return value


def _true(value: object, place: str, event: Any) -> Any:
    if value is not True:
        refuse(place, "true", value)
    return event

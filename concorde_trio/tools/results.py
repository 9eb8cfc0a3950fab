"""What a tool's function returned, as a result for the model. The law: str as it is, other values as JSON, never a repr."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from concorde_trio.sessions.tool import ToolResult

DONE = ToolResult("done")
"""For a function that returns nothing."""


def as_result(value: Any, tool: str) -> ToolResult:
    """A ToolResult as it is; None is "done"; dataclasses, attrs classes, enums and dates become JSON too.

    What JSON cannot hold (bytes, NaN, a class of your own) is an error result that says so: the call was made, though.
    """
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, str):
        return ToolResult(str(value))
    if value is None:
        return DONE
    try:
        plain = msgspec.to_builtins(value, str_keys=True, builtin_types=(bytes, bytearray, memoryview))
        return ToolResult(json.dumps(plain, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"{type(value).__name__} ({error})"
        return ToolResult(
            f"{tool} was run, but what it returned is neither text nor JSON: {reason}. "
            "Its function should return a string, a JSON value or a ToolResult.",
            is_error=True,
        )

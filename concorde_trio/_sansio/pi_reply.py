"""What one message of pi's says: its text, how it ended, what it used.

The law: what is not there, or has another shape than pi's documentation gives it, is None, and never a zero or a guess.
"""

from __future__ import annotations

from typing import Any

import attrs

from concorde_trio.records import JSON, Usage

GOOD = ("stop", "length")
"""Stop reasons with which the model has said all that it would."""


@attrs.frozen(kw_only=True)
class PiReply:
    """One message of the model. ``stop_reason``: stop, length, toolUse, error, aborted, or what a later pi invents."""

    text: str | None
    stop_reason: str | None
    error: str | None
    usage: Usage | None


def read_reply(message: JSON) -> PiReply | None:
    """``message`` as a reply of the model; None if it is something else (a user's message, a tool's result)."""
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return None
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    text = "".join(
        block["text"]
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
    )
    return PiReply(
        text=text or None,
        stop_reason=_text(message.get("stopReason")),
        error=_text(message.get("errorMessage")),
        usage=_usage(message.get("usage")),
    )


def last_reply(messages: JSON) -> PiReply | None:
    """The last reply among the messages that an ``agent_end`` repeats, None if there is none."""
    for message in reversed(messages if isinstance(messages, list) else []):
        reply = read_reply(message)
        if reply is not None:
            return reply
    return None


def total(one: Usage | None, other: Usage | None) -> Usage | None:
    """Both together; None if neither is known."""
    if one is None or other is None:
        return one or other
    costs = [usage.cost for usage in (one, other) if usage.cost is not None]
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
        cost=sum(costs) if costs else None,
    )


def _usage(told: Any) -> Usage | None:
    """pi says zero of everything where nobody told it: that is not known, and so is the cost of a model without prices."""
    if not isinstance(told, dict):
        return None
    fresh, read, written, output = (_count(told.get(name)) for name in ("input", "cacheRead", "cacheWrite", "output"))
    if not fresh + read + written + output:
        return None
    cost = told.get("cost")
    price = cost.get("total") if isinstance(cost, dict) else None
    if not isinstance(price, int | float) or isinstance(price, bool) or not 0 < price < 1e12:
        price = None
    return Usage(
        input_tokens=fresh + read + written,
        output_tokens=output,
        cached_tokens=read,
        cost=None if price is None else float(price),
    )


def _count(value: Any) -> int:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53
    return int(value) if fits else 0


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None

"""Whether messages make a valid transcript, as a provider would judge it (SES-9).

The law: this knows nothing of how transcripts are made. It is the second opinion that tests and scripted models ask for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from concorde_trio.messages import Message, Role, ToolCall


def message_shape(messages: Sequence[Message]) -> str | None:
    """What is wrong, as a sentence; None if nothing is.

    Each call is answered exactly once, right after its message, in call order, with nothing between; its arguments are the
    JSON text of an object; no result is without a call; seqs rise (a summary stands before messages that it keeps).
    """
    last_seq = 0
    owner: Message | None = None
    waiting: list[ToolCall] = []
    for message in messages:
        if message.role is not Role.SUMMARY:
            if message.seq <= last_seq:
                return f"message {message.seq} stands after message {last_seq}"
            last_seq = message.seq
        if message.role is Role.TOOL:
            if not waiting:
                after = f"message {owner.seq}, whose calls all have one" if owner else "no message with calls"
                return f"message {message.seq} is a result for {message.call_id!r}, after {after}"
            call = waiting.pop(0)
            if message.call_id != call.id:
                return f"message {message.seq} is a result for {message.call_id!r} where that of {call.id!r} belongs"
            continue
        if waiting and owner:
            return (
                f"message {message.seq} ({message.role}) stands before the result of {_calls(waiting)} of {owner.seq}"
            )
        owner = None
        if message.role is Role.ASSISTANT:
            for call in message.calls:
                if not call.id:
                    return f"a call of message {message.seq} has no id: {call!r:.200}"
                if not _is_object(call.arguments):
                    return (
                        f"the arguments of {call.id!r} of message {message.seq} are no object: {call.arguments!r:.200}"
                    )
            owner, waiting = message, list(message.calls)
        elif message.calls:
            return f"message {message.seq} ({message.role}) has calls"
    if waiting and owner:
        return f"the messages end before the result of {_calls(waiting)} of message {owner.seq}"
    return None


def _calls(calls: list[ToolCall]) -> str:
    return ", ".join(repr(call.id) for call in calls)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        return False


def _refuse(text: str) -> None:
    raise ValueError(text)

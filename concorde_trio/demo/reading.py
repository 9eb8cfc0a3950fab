"""What a transcript says of the errand that is being done: its prompt, what was said meanwhile, and the results so far.

The law: the latest errand that a person or a handler gave counts, and it ends with an answer that makes no call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from concorde_trio.messages import Message, Role

_NUMBER = re.compile(r"^This is errand (\d{1,6})\b", re.MULTILINE)
_PLACE = re.compile(r"^Work in the ([a-z]+)\b", re.MULTILINE)
_TAG = re.compile(r"^Your run tag is (\S+)", re.MULTILINE)


@attrs.frozen(kw_only=True)
class Reading:
    """``number``: 0 for what is no errand. ``seq``: of the message that asked for it. ``said``: what was asked.

    ``heard``: the messages that joined it later. ``results``: of its calls. ``earlier``: what was answered before it.
    """

    number: int
    seq: int
    said: str
    heard: tuple[Message, ...]
    results: tuple[Message, ...]
    earlier: tuple[str, ...]

    @property
    def place(self) -> str | None:
        """Where to work."""
        return _found(_PLACE, self.said)

    @property
    def tag(self) -> str | None:
        """What to send along."""
        return _found(_TAG, self.said)


def read_errand(messages: Sequence[Message]) -> Reading:
    """The errand that a request with these messages is about."""
    begun, over = 0, True
    for place, message in enumerate(messages):
        if message.role is Role.USER and (over or _NUMBER.search(message.text)):
            begun, over = place, False
        elif message.role is Role.ASSISTANT and not message.calls:
            over = True
    first, rest = messages[begun], messages[begun + 1 :]
    return Reading(
        number=int(_found(_NUMBER, first.text) or 0),
        seq=first.seq,
        said=first.text,
        heard=tuple(each for each in rest if each.role is Role.USER),
        results=tuple(each for each in rest if each.role is Role.TOOL),
        earlier=tuple(
            each.text for each in messages[:begun] if each.role is Role.ASSISTANT and each.text and not each.calls
        ),
    )


def _found(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return None if match is None else match[1]

"""A character that a stream cut in two is one again: JSON may write those beyond U+FFFF as two escapes, and servers that
count so cut between them.

The law: no piece of text that is told ends with the first half of a character. It waits for the second, in its own text,
reasoning or call, and stands for itself as U+FFFD if the reply ends before.
"""

from __future__ import annotations

from concorde_trio._sansio.model_events import (
    CallDelta,
    CallStarted,
    ModelEvent,
    Ping,
    ReasoningDelta,
    ReplyEnd,
    TextDelta,
)
from concorde_trio.records import storable_text
from concorde_trio.sessions.model import OnEvent

FIRST = ("\ud800", "\udbff")
SECOND = ("\udc00", "\udfff")


class Halves:
    """Stands before another OnEvent."""

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event
        self._held: dict[str | int, str] = {}  # by "text", "reasoning" or the call's index

    def __call__(self, event: ModelEvent) -> None:
        """The next event."""
        match event:
            case TextDelta(text):
                whole = self._whole("text", text)
                event = TextDelta(whole) if whole or not text else Ping()
            case ReasoningDelta(text):
                whole = self._whole("reasoning", text)
                event = ReasoningDelta(whole) if whole or not text else Ping()
            case CallDelta(index, arguments):
                event = CallDelta(index, self._whole(index, arguments))
            case CallStarted(index, id, name, arguments):
                event = CallStarted(index, id, name, self._whole(index, arguments))
            case ReplyEnd():
                self._end()
        self._on_event(event)

    def _whole(self, of: str | int, text: str) -> str:
        if not text or (text.isascii() and not self._held):
            return text
        text = self._held.pop(of, "") + text
        if FIRST[0] <= text[-1] <= FIRST[1]:
            self._held[of], text = text[-1], text[:-1]
        return storable_text(text)

    def _end(self) -> None:
        held, self._held = self._held, {}
        for of in held:
            if of == "text":
                self._on_event(TextDelta("\ufffd"))
            elif isinstance(of, int):
                self._on_event(CallDelta(of, "\ufffd"))

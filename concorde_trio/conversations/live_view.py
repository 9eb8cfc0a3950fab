"""What a session streams, as named documents for who watches it: text as it grows, calls, results, what it waits for.

The law: every text is masked, a text that comes in pieces over their borders too (TAG-4). A name in small letters is a piece
of what the model says; every other is that of an event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from concorde_trio._sansio import model_events
from concorde_trio._sansio.masked_stream import MaskedStream
from concorde_trio._sansio.model_events import ModelEvent
from concorde_trio.conversations.views import Document, Mask, cut
from concorde_trio.events import (
    ApprovalAsked,
    CallEnded,
    CallStarted,
    Event,
    InputAccepted,
    ModelFailed,
    ModelRequested,
    TurnEnded,
)
from concorde_trio.messages import Input, Message, Role, ToolCall
from concorde_trio.sessions.live import Seen
from concorde_trio.sessions.loop import SessionLoop

Named: TypeAlias = tuple[str, Document]


class LiveView:
    """One watcher's view. ``feed`` gives what to show of one thing that was seen, in order."""

    def __init__(self, loop: SessionLoop, mask: Callable[[str], str], mask_json: Mask) -> None:
        self._loop = loop
        self._mask = mask
        self._mask_json = mask_json
        self._name = "text"
        self._stream = MaskedStream(mask)
        self._whole: list[str] = []  # this reply's text, for a host that is polled and tells all of it

    def feed(self, seen: Seen) -> list[Named]:
        """What to show of this."""
        if isinstance(seen, Event):
            return [*self._before(seen), (seen.name, self._event(seen))]
        return self._model(seen)

    # --- what the model says --------------------------------------------------------------------------------

    def _model(self, seen: ModelEvent) -> list[Named]:
        match seen:
            case model_events.TextDelta(text):
                self._whole.append(text)
                return self._piece("text", text)
            case model_events.TextSnapshot(text):
                return self._snapshot(text)
            case model_events.ReasoningDelta(text):
                return self._piece("reasoning", text)
            case model_events.CallStarted():
                call = {"call_id": seen.id, "tool": seen.name}
                return [*self._over(), ("calling", cut(self._mask_json(call)))]
            case model_events.ReplyEnd():
                self._whole.clear()
                return self._over()
        return []

    def _snapshot(self, text: str) -> list[Named]:
        before, self._whole = "".join(self._whole), [text]
        if text.startswith(before):
            return self._piece("text", text[len(before) :])
        return [*self._over(), ("dropped", {"reason": "the text began anew"}), *self._piece("text", text)]

    def _piece(self, name: str, text: str) -> list[Named]:
        ended = self._over() if name != self._name else []
        self._name = name
        shown = self._stream.feed(text)
        return [*ended, (name, {"text": shown})] if shown else ended

    def _over(self) -> list[Named]:
        rest = self._stream.end()
        return [(self._name, {"text": rest})] if rest else []

    # --- what became of it ----------------------------------------------------------------------------------

    def _before(self, seen: Event) -> list[Named]:
        """A reply that ended without saying so: what was held back is shown, and what is dropped said to be."""
        if not isinstance(seen, ModelRequested | ModelFailed | TurnEnded):
            return []
        self._whole.clear()
        return self._over()

    def _event(self, seen: Event) -> Document:
        found = seen.as_json()
        match seen:
            case InputAccepted(input_id=input_id):
                given = self._input(input_id)
                found |= (
                    {"text": None, "sender": None} if given is None else {"text": given.text, "sender": given.sender}
                )
            case CallStarted(call_id=call_id) | ApprovalAsked(call_id=call_id):
                call = self._call(call_id)
                found["arguments"] = None if call is None else call.arguments
            case CallEnded(call_id=call_id):
                result = self._result(call_id)
                found["text"] = None if result is None else result.text
        shown: Document = cut(self._mask_json(found))
        return shown

    def _input(self, input_id: str) -> Input | None:
        machine = self._loop.machine
        if input_id in machine.linked:
            return machine.linked[input_id].input
        queued = next((each for each in machine.books.queue if each.id == input_id), None)
        return queued or next(
            (each for message in reversed(self._messages()) for each in message.inputs if each.id == input_id), None
        )

    def _call(self, call_id: str) -> ToolCall | None:
        return next(
            (call for message in reversed(self._messages()) for call in message.calls if call.id == call_id), None
        )

    def _result(self, call_id: str) -> Message | None:
        found = (each for each in reversed(self._messages()) if each.role is Role.TOOL and each.call_id == call_id)
        return next(found, None)

    def _messages(self) -> tuple[Message, ...]:
        return self._loop.machine.books.transcript.messages

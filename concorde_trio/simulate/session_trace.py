"""What happened in a play of a session, from its events and its stored messages, and the result that is printed of it.

The law of this module: everything in a result was told by an event or stands in the store; nothing is worked out here but
seconds from ticks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from concorde_trio import events
from concorde_trio._sansio.session_books import seconds as in_words
from concorde_trio.messages import CallOutcome, Message, Role
from concorde_trio.simulate.ticks import Ticks


@attrs.define
class _Turn:
    started: float
    ended: float | None = None
    outcome: str | None = None


@attrs.define
class _Abandoned:
    call: str
    since: float
    ended: float | None = None


class SessionTrace:
    """Listens to one session. Times are ticks until ``result``."""

    def __init__(self, ticks: Ticks) -> None:
        self._ticks = ticks
        self._turns: list[_Turn] = []
        self._expired: list[events.HoldExpired] = []
        self._dropped: list[events.ReplyDropped] = []
        self._abandoned: dict[int, _Abandoned] = {}
        self.requests = 0
        self.rejected: list[int] = []
        """The places in the file of inputs that were refused, for the queue was full (SES-10)."""
        self.faults: list[str] = []
        """What must never happen."""

    def note(self, noted: Sequence[events.Event]) -> None:
        """Take in the events of one step."""
        for event in noted:
            match event:
                case events.TurnStarted(at=at):
                    self._turns.append(_Turn(at))
                case events.TurnEnded(at=at, outcome=outcome):
                    self._turns[-1].ended, self._turns[-1].outcome = at, outcome
                case events.ModelRequested(purpose="turn"):
                    self.requests += 1
                case events.HoldExpired():
                    self._expired.append(event)
                case events.ReplyDropped():
                    self._dropped.append(event)
                case events.WorkAbandoned(at=at, work=work, call_id=call_id):
                    self._abandoned[work] = _Abandoned(call_id, at)
                case events.AbandonedEnded(at=at, work=work):
                    self._abandoned[work].ended = at
                case events.SettleFailed(what=what, error=error):
                    self.faults.append(f"settling {what}: {error}")
                case _:
                    pass

    def result(self, messages: Iterable[Message], *, status: str, locked: bool) -> dict[str, Any]:
        """The result as JSON; ``simulate`` says what is in it. Times in seconds."""
        transcript = [self._message(each) for each in messages]
        return {
            "transcript": transcript,
            "roles": [each["role"] for each in transcript],
            "turns": [
                {"started": self._seconds(turn.started), "ended": self._seconds(turn.ended), "outcome": turn.outcome}
                for turn in self._turns
            ],
            "expired": [
                {
                    "kind": each.what,
                    **self._which(each),
                    "waited": self._seconds(each.waited),
                    "reason": each.reason,
                    "at": self._seconds(each.at),
                }
                for each in self._expired
            ],
            "dropped": [
                {"kind": each.what, **self._which(each), "at": self._seconds(each.at)} for each in self._dropped
            ],
            "abandoned": [
                {"call": each.call, "since": self._seconds(each.since), "ended": self._seconds(each.ended)}
                for each in self._abandoned.values()
            ],
            "requests": self.requests,
            "status": status,
            "locked": locked,
            "rejected": self.rejected,
        }

    def _seconds(self, ticks: float | None) -> float | None:
        return None if ticks is None else self._ticks.seconds(ticks)

    def _which(self, event: events.HoldExpired | events.ReplyDropped) -> dict[str, Any]:
        call = event.what in ("tool", "result")
        return {"call": event.call_id} if call else {"epoch": event.epoch}

    def _message(self, message: Message) -> dict[str, Any]:
        said: dict[str, Any] = {"role": str(message.role), "text": message.text}
        if message.role is Role.ASSISTANT:
            said["calls"] = [call.id for call in message.calls]
        elif message.role is Role.TOOL:
            text = self._in_seconds(message)
            said = {"role": "tool", "call": message.call_id, "outcome": str(message.outcome), "text": text}
        return said

    def _in_seconds(self, message: Message) -> str:
        """A result that says how long was waited says it in the session's seconds, which are ticks here."""
        if message.outcome is not CallOutcome.TIMEOUT:
            return message.text
        for each in self._expired:
            said = f" after {in_words(each.waited)}."
            if each.call_id == message.call_id and said in message.text:
                return message.text.replace(said, f" after {in_words(self._ticks.seconds(each.waited))}.", 1)
        return message.text

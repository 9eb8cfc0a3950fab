"""What a person sees of a talk: text as it grows, everything else on a line of its own, in short.

The law: as for ``show``: text from outside is shown and never interpreted.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from typing import Any

from concorde_trio.cli.sessions import approval_in_words, short, waits_in_words
from concorde_trio.cli.show import lasting, on_terminal, plural, visible, visible_lines

QUIET = 15.0
"""Seconds without a word after which it is said what is waited for."""
PATIENCE = 1.0
"""Seconds after which that is worth a word."""
TOLD = ("lock", "backoff", "summary", "compaction", "stopping")
"""What is said at once when it is waited for; the model and tools show themselves."""


class TalkScreen:
    """Prints the events of one session. ``asked``: the calls that wait for y or n; ``mine``: ids of what was typed here."""

    def __init__(self) -> None:
        self.asked: deque[str] = deque()
        self.mine: set[str] = set()
        self._at_start = True
        self._said_at = time.monotonic()
        self._waits: str | None = None
        self._answered = True  # so far as is known: a turn may be under way
        self._styled = on_terminal() and os.environ.get("TERM") != "dumb"

    def show(self, name: str, event: Any) -> None:
        """One event, see ``conversations.live_view``."""
        match name:
            case "session":
                self._begin(event)
            case "text":
                self._answered |= bool(event["text"].strip())
                self._write(visible_lines(event["text"]))
            case "reasoning":
                self._write(self._dim(visible_lines(event["text"])), ends=event["text"].endswith("\n"))
            case "dropped":
                self.tell(f"! {event['reason']}")
            case "waiting_on":
                self._wait(event["waiting_on"])
            case _:
                said = self._in_words(name, event)
                if said:
                    self.tell(said)

    def _in_words(self, name: str, event: Any) -> str | None:
        match name:
            case "InputAccepted":
                return self._accepted(event)
            case "TurnStarted":
                self._answered = False
            case "InputSettled":
                cancelled = event["state"] == "cancelled" and event["input_id"] in self.mine
                return "! what you said was cancelled before it was taken" if cancelled else None
            case "CallStarted":
                return f"> {event['tool']} {short(event['arguments'] or '')}"
            case "CallEnded":
                self._forget(event["call_id"])
                return f"< {event['tool']} {event['outcome']}: {short(event['text'] or '')}"
            case "ApprovalAsked":
                self.asked.append(event["call_id"])
                return f"? {approval_in_words({**event, 'left': event['seconds']})} [y/n]"
            case "ApprovalAnswered":
                self._forget(event["call_id"])
                return "allowed" if event["allowed"] else "denied"
            case "ModelFailed":
                again = "" if event["retry_in"] is None else f"; trying again in {lasting(event['retry_in'])}"
                return f"! {short(event['error'])}{again}"
            case "WorkAbandoned":
                return f"! {event['what']} {event['number'] or ''} of call {event['call_id']} goes on without being waited for"
            case "Compacted":
                said = f"{plural(event['messages'], 'message')} became a summary"
                return said if event["error"] is None else f"! no summary could be made: {short(event['error'])}"
            case "TurnEnded":
                self.asked.clear()
                self.line()
                if event["outcome"] != "ok":
                    return f"! {event['outcome']}: {short(event['error'] or '')}"
                return None if self._answered else "(no answer)"
        return None

    def _begin(self, session: Any) -> None:
        self.tell(
            f"{session['name']}: {plural(session['messages'], 'message')}, waits for {waits_in_words(session['waiting_on'])}"
        )
        for given in session["queue"]:
            self.tell(f"queued: {short(given['text'])}")
        for each in session["approvals"]:
            self.asked.append(each["call_id"])
            self.tell(f"? {approval_in_words(each)} [y/n]")

    def _accepted(self, event: Any) -> str | None:
        if event["input_id"] not in self.mine:
            return f"{event['sender'] or 'somebody'} says: {short(event['text'] or '')}"
        if event["waits_for"] is None or event["queued"] <= 1 and event["waits_for"].startswith("no run"):
            return None
        return f"queued behind: {event['waits_for']}"

    def _wait(self, waiting: Any) -> None:
        quiet = time.monotonic() - self._said_at >= QUIET and waiting["on"] != "input"
        new = waiting["about"] != self._waits and waiting["on"] in TOLD and (waiting["since"] or 0) > PATIENCE
        if quiet or new:
            self._waits = waiting["about"]
            self.tell(f"... {waits_in_words(waiting)}")

    def _forget(self, call_id: str) -> None:
        if call_id in self.asked:
            self.asked.remove(call_id)

    # --- printing -------------------------------------------------------------------------------------------

    def tell(self, text: str) -> None:
        """A line of its own about what happens."""
        self.line()
        self._write(self._dim(visible(text)) + "\n", ends=True)

    def line(self) -> None:
        """Go to the start of a line."""
        if not self._at_start:
            self._write("\n")

    def typed(self) -> None:
        """The person ended a line, and with it ours."""
        self._at_start = True

    def farewell(self, name: str) -> None:
        """They leave."""
        self.tell(f"left; `concorde-trio chat {name}` comes back")

    def _write(self, text: str, *, ends: bool | None = None) -> None:
        if text:
            self._said_at = time.monotonic()
            self._at_start = text.endswith("\n") if ends is None else ends
            sys.stdout.write(text)
            sys.stdout.flush()

    def _dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self._styled else text

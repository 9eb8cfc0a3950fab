"""Say one thing to a session of a running worker and print the answer: ``send --wait``, and ``chat`` in a pipe.

The law: stdout has the answer and nothing else; what happens meanwhile is told on stderr. What a reply that failed had
begun to say is not printed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from concorde_trio.cli.client import open_client
from concorde_trio.cli.sessions import approval_in_words, short, waits_in_words
from concorde_trio.cli.show import document, lasting, note, say, visible, visible_lines
from concorde_trio.errors import ServerGone, WrongState
from concorde_trio.server.endpoint import Endpoint

if TYPE_CHECKING:
    from concorde_trio.signals.documents import Document

PATIENCE = 1.0
"""Seconds after which a wait for a run is worth a word."""


def ask_and_wait(endpoint: Endpoint, name: str, body: Document, *, as_json: bool, tell_id: bool = False) -> int:
    """Send the input and wait for the end of the turn that takes it; the exit status: 1 if the turn did not end well."""
    return trio.run(_ask_and_wait, endpoint, name, body, as_json, tell_id)


async def _ask_and_wait(endpoint: Endpoint, name: str, body: Document, as_json: bool, tell_id: bool) -> int:
    async with open_client(endpoint) as client, client.watch(name) as events:
        receipt = await client.send(name, **body)
        if tell_id and not as_json:
            say(visible(receipt["id"]))
        answer = Answer(receipt["id"], quiet=as_json)
        if receipt["again"] and receipt["input"] != "queued":
            raise WrongState(
                f"input {receipt['id']} was sent before, and is {receipt['input']}; its answer is in `concorde-trio sessions`"
            )
        async for event in events:
            answer.take(event.name, event.data)
            if answer.outcome is not None:
                break
        else:
            raise ServerGone(f"the worker at {client.url} went away: its stream ended", unheard=False)
    if as_json:
        document({**receipt, "outcome": answer.outcome, "error": answer.error, "text": answer.said})
    elif answer.outcome != "ok":
        note(f"{answer.outcome}: {answer.error or 'no reason was given'}")
    return 0 if answer.outcome == "ok" else 1


class Answer:
    """What came of one input: the replies of the turn that took it, printed as each is complete.

    ``outcome``: None until it is over; then the turn's, or "cancelled". ``said``: the last reply.
    """

    def __init__(self, input_id: str, *, quiet: bool = False) -> None:
        self.outcome: str | None = None
        self.error: str | None = None
        self.said: str | None = None
        self._input_id = input_id
        self._quiet = quiet
        self._delivered = False
        self._text: list[str] = []  # in pieces: a long reply comes in many
        self._told: str | None = None

    def take(self, name: str, event: Any) -> None:
        """The next event."""
        match name:
            case "InputSettled" if event["input_id"] == self._input_id:
                self._delivered = event["state"] == "delivered"
                if not self._delivered:
                    self.outcome, self.error = "cancelled", "the input was cancelled before a turn took it"
            case "text":
                self._text.append(event["text"])
            case "ModelRequested" | "CallStarted" | "ApprovalAsked":
                self._complete()
                if name == "ApprovalAsked":
                    self._tell(approval_in_words({**event, "left": event["seconds"]}))
                elif name == "CallStarted":
                    self._tell(f"> {event['tool']} {short(event['arguments'] or '')}")
            case "ModelFailed" | "dropped":
                self._text.clear()
                if event.get("retry_in") is not None:
                    self._tell(f"{event['error']}; trying again in {lasting(event['retry_in'])}")
            case "CallEnded":
                self._tell(f"< {event['tool']} {event['outcome']}: {short(event['text'] or '')}")
            case "TurnEnded":
                if event["outcome"] in ("ok", "interrupted", "limited"):
                    self._complete()
                self._text.clear()
                if self._delivered:
                    self.outcome, self.error = event["outcome"], event["error"]
            case "waiting_on" if event["waiting_on"]["on"] == "lock" and (event["waiting_on"]["since"] or 0) > PATIENCE:
                self._tell(waits_in_words({**event["waiting_on"], "since": None}))

    def _complete(self) -> None:
        text = "".join(self._text)
        self._text.clear()
        if text and self._delivered:
            self.said = text
            if not self._quiet:
                say(visible_lines(text))

    def _tell(self, text: str) -> None:
        if not self._quiet and text != self._told:
            self._told = text
            note(text)

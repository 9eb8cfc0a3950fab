"""The built-in kind ``session.input``: input for a session whose run is not in flight, as a signal like all others (SES-20)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from concorde_trio.errors import UsageError
from concorde_trio.messages import Input
from concorde_trio.records import NewSignal, Prompt, Signal
from concorde_trio.signals.emit import new_signal

SESSION_INPUT = "session.input"
"""The kind. Its payload: ``session``, ``input`` (the id in the ledger), ``text``, ``sender``, ``at``."""

SessionResources = Callable[[str], Iterable[str]]
"""The resources that a run of a session's input needs, by the session's name."""


def signal_for(session: str, given: Input) -> NewSignal:
    """The signal that an input becomes. InvalidValue if it is too long for one (SIG-5)."""
    payload = {"session": session, "input": given.id, "text": given.text, "sender": given.sender, "at": given.at}
    return new_signal(SESSION_INPUT, payload, emitted_at=given.at)


class SessionInputHandler:
    """Turns such a signal into one run of its session, with the resources that ``session_resources`` says (none by default).

    Runs without resources may use the same workspace, account or budget at the same time as other runs: name here what
    your own handlers name for this session.
    """

    repeatable = True

    def __init__(self, session_resources: SessionResources | None = None) -> None:
        if session_resources is not None and not callable(session_resources):
            raise UsageError(
                f"session_resources is a function of a session's name that gives names of resources, not {session_resources!r:.80}"
            )
        self._resources = session_resources or (lambda session: ())

    def handle(self, signal: Signal) -> list[Prompt]:
        """One run."""
        payload = signal.payload
        if (
            not isinstance(payload, dict)
            or not isinstance(payload.get("session"), str)
            or not isinstance(payload.get("text"), str)
        ):
            raise UsageError(
                f'the payload of {SESSION_INPUT} is {{"session": NAME, "text": TEXT}}, not {payload!r:.80}; people talk to a '
                "session by `concorde-trio send`, POST /sessions/NAME/input or InProcessRuntime.submit"
            )
        session = payload["session"]
        return [Prompt(session=session, text=payload["text"], resources=tuple(self._resources(session)))]

"""The seam between a session and whoever does its work: sends requests, executes calls, reports what comes of them.

The law: a host decides nothing. It does what it is told, stops what it is told to stop if it can, and hands back with every
report the context or the registration that it was given (SES-2).
"""

from __future__ import annotations

from typing import Any, Protocol

from concorde_trio._sansio.model_events import ModelEvent, Purpose
from concorde_trio._sansio.session_terms import CallReport, RequestFailure, StartCall, StartRequest
from concorde_trio.messages import ToolCall
from concorde_trio.sessions.tool import Leftover


class Work(Protocol):
    """Something that a host does. Both methods may be called at any time, and do nothing once it is over."""

    def stop(self, reason: str) -> None:
        """End it, if it can be ended; a report says when it is over."""
        ...

    def extend(self, deadline: float) -> None:
        """Its hold lasts until then now, on the session's clock (SES-3)."""
        ...


class Port(Protocol):
    """Where a host reports to: a session's loop. Nothing here waits."""

    @property
    def name(self) -> str:
        """The session's name."""
        ...

    def progress(self, epoch: int | None, purpose: Purpose | None, event: ModelEvent) -> None:
        """Something of a request's stream came."""
        ...

    def request_over(self, epoch: int | None, purpose: Purpose | None, failure: RequestFailure | None = None) -> None:
        """A request has ended: with ReplyEnd (None), or without a reply."""
        ...

    def request_stopped(self, epoch: int) -> None:
        """A request's work is over because it was stopped; it has no reply."""
        ...

    def request_fired(self, epoch: int) -> None:
        """A request's work was ended by its own deadline."""
        ...

    def call_over(
        self, call_id: str | None, registration: int | None, report: CallReport, *, fired: bool = False
    ) -> None:
        """A call's work is over. ``fired``: its own deadline ended it."""
        ...

    def left(self, registration: int, call: ToolCall, leftover: Leftover) -> Any:
        """A call leaves work behind; a LeftWork."""
        ...


class Host(Protocol):
    """Does the work of sessions. ``stoppable``: whether stopping a Work ends it."""

    @property
    def stoppable(self) -> bool:
        """False for one that can only stop listening: late results are expected then."""
        ...

    def request(self, port: Port, start: StartRequest) -> Work:
        """Begin a request, and report to ``port``; must not wait."""
        ...

    def execute(self, port: Port, start: StartCall) -> Work:
        """Begin a call, and report to ``port``; must not wait."""
        ...

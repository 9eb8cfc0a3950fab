"""A host that can't stop what it does, and only stops listening: late replies and results do come back from it (SES-2)."""

from __future__ import annotations

from typing import Any

import trio

from concorde_trio import SessionHarness
from concorde_trio._sansio.model_events import ModelEvent
from concorde_trio._sansio.session_terms import CallReport, RequestFailure, StartCall, StartRequest
from concorde_trio.errors import ModelError
from concorde_trio.sessions.host import Port
from concorde_trio.sessions.tool import ToolContext, ToolResult


class _Deaf:
    """Work that nothing stops."""

    def stop(self, reason: str) -> None:
        """It does not hear."""

    def extend(self, deadline: float) -> None:
        """It has no deadline."""


class DeafHost:
    """Sends requests and executes calls; what has begun comes to its own end, however late."""

    stoppable = False

    def __init__(
        self, nursery: trio.Nursery, harness: SessionHarness, starts: list[Any] | None, *, forgetful: bool = False
    ) -> None:
        self._nursery, self._harness, self._forgetful = nursery, harness, forgetful
        self._starts = [] if starts is None else starts

    def request(self, port: Port, start: StartRequest) -> _Deaf:
        """Begin a request."""
        self._starts.append((port, start))
        self._nursery.start_soon(self._request, port, start)
        return _Deaf()

    def execute(self, port: Port, start: StartCall) -> _Deaf:
        """Begin a call."""
        self._nursery.start_soon(self._call, port, start)
        return _Deaf()

    async def _request(self, port: Port, start: StartRequest) -> None:
        epoch, purpose = (None, None) if self._forgetful else (start.epoch, start.request.purpose)

        def on_event(event: ModelEvent) -> None:
            port.progress(epoch, purpose, event)

        failure = None
        try:
            await self._harness.model.stream(start.request, on_event)
        except ModelError as error:
            failure = RequestFailure(str(error), status=error.status, connection=error.connection)
        port.request_over(epoch, purpose, failure)

    async def _call(self, port: Port, start: StartCall) -> None:
        context: Any = ToolContext.__new__(ToolContext)
        object.__setattr__(context, "call_id", start.call.id)
        result = await self._harness.tools()[start.call.name].call({}, context)
        assert isinstance(result, ToolResult)
        port.call_over(start.call.id, None if self._forgetful else start.registration, CallReport(result.text))


def deaf_host(nursery: trio.Nursery, harness: SessionHarness, *, starts: list[Any] | None = None) -> DeafHost:
    """For ``make_host``. ``starts`` gets (port, StartRequest) of each request."""
    return DeafHost(nursery, harness, starts)


def forgetful_host(nursery: trio.Nursery, harness: SessionHarness) -> DeafHost:
    """For ``make_host``: one that drops the context, so that no report says what it is of (SES-2)."""
    return DeafHost(nursery, harness, None, forgetful=True)

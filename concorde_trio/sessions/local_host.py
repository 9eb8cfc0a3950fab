"""The host in this process: each request and each call is a task in a cancel scope whose deadline is its hold's (SES-3).

The law: a task here reports once, whatever ends it, and its failure is a report: nothing a model client or a tool raises
reaches the session's loop or its neighbours. A scope that fires only reports; the sweep is what changes the lock.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import attrs
import trio

from concorde_trio import spans
from concorde_trio._sansio.json_values import decode
from concorde_trio._sansio.model_events import (
    CallDelta,
    CallStarted,
    ModelEvent,
    Purpose,
    ReasoningDelta,
    TextDelta,
    TextSnapshot,
)
from concorde_trio._sansio.session_terms import CallReport, RequestFailure, StartCall, StartRequest
from concorde_trio.errors import ModelError
from concorde_trio.failures import describe, not_cancelled, travels
from concorde_trio.processes.programs_lease import current_lease, living_under
from concorde_trio.records import storable_text
from concorde_trio.sessions.host import Port, Work
from concorde_trio.sessions.kept_output import keep_whole
from concorde_trio.sessions.model import Model
from concorde_trio.sessions.output_folders import output_folder
from concorde_trio.sessions.retry_after import retry_after_seconds
from concorde_trio.sessions.tool import Tool, ToolContext, ToolResult
from concorde_trio.watchdog import named_work

logger = logging.getLogger("concorde_trio.sessions")

WORDS = 10_000
"""Characters of a failed request's words that are told."""
REPLY = 10_000_000
"""Characters that may come in one reply, a call counted as 1,000 more: no model says as much, and memory has an end."""


class LocalWork:
    """A task's cancel scope, and why it was told to stop."""

    __slots__ = ("reason", "scope")

    def __init__(self, deadline: float) -> None:
        self.scope = trio.CancelScope(deadline=deadline)
        self.reason: str | None = None

    def stop(self, reason: str) -> None:
        """Cancel it."""
        if self.reason is None:
            self.reason = reason
            self.scope.cancel(reason)

    def extend(self, deadline: float) -> None:
        """Move its deadline."""
        self.scope.deadline = deadline


@attrs.frozen(kw_only=True)
class Surroundings:
    """What tools are called in: see ToolContext for the fields. ``outputs`` has a folder for each session."""

    env: Mapping[str, str]
    outputs: Path
    queue: str
    programs_lock: Path | None = None


class LocalHost:
    """Runs the requests and calls of all sessions of one harness, in the harness's nursery."""

    stoppable = True

    def __init__(
        self,
        nursery: trio.Nursery,
        *,
        model: Model,
        summary_model: Model,
        tools: Callable[[], Mapping[str, Tool]],
        surroundings: Surroundings,
        keep: Callable[[str, Callable[[], Awaitable[None]]], None],
        keep_over: int | None = None,
        wall_clock: Callable[[], float],
    ) -> None:
        self._nursery = nursery
        self._lease = current_lease()
        self._model = model
        self._summary_model = summary_model
        self._tools = tools
        self._surroundings = surroundings
        self._keep = keep
        self._keep_over = keep_over
        self._wall_clock = wall_clock

    def request(self, port: Port, start: StartRequest) -> Work:
        """Begin a request."""
        work = LocalWork(start.deadline)
        self._nursery.start_soon(self._request, port, start, work, name=f"{start.request.purpose} of {port.name}")
        return work

    def execute(self, port: Port, start: StartCall) -> Work:
        """Begin a call."""
        work = LocalWork(start.deadline)
        with living_under(self._lease):  # not what the task lives under that was the first to ask for the session
            self._nursery.start_soon(self._execute, port, start, work, name=f"{start.call.name} of {port.name}")
        return work

    @named_work(lambda here: f"the model client {here['model'].name} for session {here['port'].name!r}")
    async def _request(self, port: Port, start: StartRequest, work: LocalWork) -> None:
        epoch, purpose = start.epoch, start.request.purpose
        model = self._summary_model if purpose is Purpose.SUMMARY else self._model
        failure: RequestFailure | None = None
        span = spans.opened(lambda tracer: tracer.open_request(port.name, purpose.value, model))
        ended: str | None = "cancelled"

        came = 0

        def on_event(event: ModelEvent) -> None:
            nonlocal came
            came += _size(event)
            if came > REPLY:
                raise ModelError(f"the model {model.name} sent a reply of more than {REPLY:,} characters")
            port.progress(epoch, purpose, event)

        def on_traced_event(event: ModelEvent) -> None:
            span.heard(event)
            on_event(event)

        try:
            with work.scope:
                try:
                    await model.stream(start.request, on_event if span is spans.NOTHING else on_traced_event)
                except trio.Cancelled:
                    raise
                except BaseException as error:  # noqa: ASYNC103 - a cancellation does travel
                    if travels(error, exits=False):
                        self._tell_end(f"the client of model {model.name}", port, error)
                        raise
                    failure = self._failure(error, model)
            if not work.scope.cancelled_caught:
                ended = None if failure is None else _kind_of(failure)
                port.request_over(epoch, purpose, failure)
            elif work.reason is None:
                ended = "timeout"
                port.request_fired(epoch)
            else:
                port.request_stopped(epoch)
        finally:
            span.end(ended)

    def _tell_end(self, what: str, port: Port, error: BaseException) -> None:
        cause = not_cancelled(error)
        if cause is not None and not isinstance(cause, GeneratorExit):
            logger.error("%s of session %s raised %s, which stops the program", what, port.name, describe(error))

    def _failure(self, error: BaseException, model: Model) -> RequestFailure:
        cause = not_cancelled(error) or error
        while isinstance(cause, BaseExceptionGroup) and len(cause.exceptions) == 1:
            cause = cause.exceptions[0]
        if isinstance(cause, ModelError):
            return RequestFailure(
                storable_text(str(cause)[:WORDS]),
                status=cause.status,
                retry_after=retry_after_seconds(cause.retry_after, self._wall_clock()),
                connection=cause.connection,
            )
        logger.error("the client of model %s raised what is no ModelError", model.name, exc_info=error)
        return RequestFailure(f"the client of model {model.name} failed: {describe(error)}")

    async def _execute(self, port: Port, start: StartCall, work: LocalWork) -> None:
        call, registration = start.call, start.registration
        report = CallReport(None)
        span = spans.opened(lambda tracer: tracer.open_call(port.name, call.id, call.name))
        ended: str | None = "cancelled"
        try:
            with work.scope:
                try:
                    report = await self._call(port, start)
                    ended = "tool_error" if report.error else None
                except BaseException as error:  # noqa: ASYNC103 - a cancellation does travel
                    if travels(error, exits=False):
                        self._tell_end(f"tool {call.name}", port, error)
                        raise
                    ended = "tool_error"
                    report = CallReport(describe(error), error=True)
                    logger.info("tool %s of session %s raised", call.name, port.name, exc_info=error)
            fired = work.scope.cancelled_caught and work.reason is None
            ended = "timeout" if fired else ended
            port.call_over(call.id, registration, report, fired=fired)
        finally:
            span.end(ended)

    @named_work(lambda here: f"tool {here['call'].name!r} (call {here['call'].id}) of session {here['port'].name!r}")
    async def _call(self, port: Port, start: StartCall) -> CallReport:
        call = start.call
        tool = self._tools().get(call.name)
        if tool is None:
            return CallReport(f"The tool {call.name!r} is gone; it was not run.", error=True)
        around = self._surroundings
        context = ToolContext(
            session=port.name,
            call_id=call.id,
            env=around.env,
            outputs=output_folder(around.outputs, port.name),
            queue=around.queue,
            programs_lock=around.programs_lock,
            left=functools.partial(port.left, start.registration, call),
            keep=functools.partial(self._keep, port.name),
        )
        result = await tool.call(decode(call.arguments), context)
        if not isinstance(result, ToolResult):
            return CallReport(
                f"the tool {call.name!r} must give a ToolResult, and gave a {type(result).__name__}", error=True
            )
        result = await keep_whole(result, context, self._keep_over)
        return CallReport(result.text, error=result.is_error, path=result.path)


def _size(event: ModelEvent) -> int:
    match event:
        case TextDelta(text) | ReasoningDelta(text):
            return len(text)
        case CallDelta(_, arguments):
            return len(arguments)
        case CallStarted(_, _, _, arguments):
            return 1_000 + len(arguments)
        case TextSnapshot(text) if len(text) > REPLY:
            return len(text)
    return 0


def _kind_of(failure: RequestFailure) -> str:
    """What went wrong, of a few."""
    if failure.status is not None:
        return str(failure.status)
    return "connection" if failure.connection else "model_error"

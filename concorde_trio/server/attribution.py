"""Which run a request came from (TAG-3, SRV-8).

The law: it is decided once, when the request arrives, from the tag headers as they were received; every hook,
handler and task of that request then sees the same answer, although the run may end meanwhile. There is no fallback.

The answer is carried in a context variable, which Trio hands on to child tasks and to ``trio.to_thread``. So a task
that a request leaves behind keeps the run it was started for. Attribution is for bookkeeping and no access control
(TAG-5): runs that share files can read each other's tags there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import attrs

from concorde_trio.errors import OutsideRequest
from concorde_trio.log_context import note_request
from concorde_trio.records import RunInfo
from concorde_trio.server.asgi import App, Receive, Scope, Send
from concorde_trio.server.seam import Worker

TAG_HEADER = "concorde-run-tag"
_HEADER = TAG_HEADER.encode()


@attrs.frozen
class _Answer:
    run: RunInfo | None


_answer: ContextVar[_Answer] = ContextVar("concorde_trio_run")


def current_run() -> RunInfo | None:
    """The run that the current request came from: id, signal_id, session, context; None when it came from no run.

    For any route, hook, websocket or nested blueprint of a gateway's app, or of one with an ``agent_server``, their child tasks
    and threads included. OutsideRequest anywhere else.
    """
    try:
        return _answer.get().run
    except LookupError:
        raise OutsideRequest(
            "current_run() answers for a request: call it in a route or hook of an app that a Gateway (or agent_server) is part "
            "of, or in a task started there; anywhere else nobody is asking"
        ) from None


class Attribution:
    """ASGI middleware that decides for each request and websocket which run it came from."""

    def __init__(self, app: App, worker: Worker) -> None:
        self._app = app
        self._worker = worker

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Decide, and let the app answer."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        run = self._worker.attribute(tag_values(scope))
        if run is not None:
            note_request(run.id, run.signal_id, run.session)
        token = _answer.set(_Answer(run))
        try:
            await self._app(scope, receive, send)
        finally:
            _answer.reset(token)


def tag_values(scope: Scope) -> Sequence[str]:
    """The value of every tag header of a request, one by one, each byte a character."""
    headers: Any = scope["headers"]
    return [value.decode("latin-1") for name, value in headers if name.lower() == _HEADER]

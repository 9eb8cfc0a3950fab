"""ASGI middleware between the server and an app: what a client can do to a request is bounded, and answered.

The law, for each request: the app never sees more than ``max_body`` bytes; what a client sends is always read, so that
neither side waits for the other for ever; the app is told that its client is gone only while its answer isn't complete;
and a request gets an answer of its own, or its connection ends. When the server closes, what is still being answered
has ``grace`` seconds, then it is cancelled: a request without an answer gets a 503, an event stream ends as whole.

Telling an app of a disconnect after its last chunk would make Quart-Trio cancel the task in which the server is still
finishing the connection, which then never becomes idle; a body that nobody reads would fill the server's queue and
block it.

A request is answered in the task that it came in: an app that reads is given what it asks for, and only what one leaves
unread is read by a task of ours. Tasks for each request would be a fifth of what a small request costs.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from http import HTTPStatus

import trio
from quart.wrappers import base
from werkzeug.exceptions import HTTPException

from concorde_trio.server.asgi import App, Message, Receive, Scope, Send
from concorde_trio.server.faults import describe, leaves
from concorde_trio.server.heads import RequestLimits, check_head, too_large
from concorde_trio.server.problems import ProblemDocument
from concorde_trio.server.websockets import Websocket

logger = logging.getLogger("concorde_trio.server")

_CLIENT_GONE: tuple[type[BaseException], ...] = (OSError, getattr(base, "ClientDisconnectedError", OSError))
"""What an app that goes on reading or writing meets when its client is gone; Quart 0.23 has its own."""


class Harden:
    """The middleware. ``closing`` is set when the server begins to stop; ``mask`` hides live tags (TAG-4)."""

    def __init__(
        self,
        app: App,
        *,
        closing: trio.Event,
        limits: RequestLimits | None = None,
        mask: Callable[[str], str] = str,
    ) -> None:
        self._app = app
        self._closing = closing
        self._limits = RequestLimits() if limits is None else limits
        self._mask = mask
        self._answering: set[_Exchange] = set()
        self._late = False

    async def watch(self) -> None:
        """Hurry what is still being answered when the server closes; run it beside the server, until that is gone."""
        await self._closing.wait()
        await trio.sleep(self._limits.grace)
        self._late = True
        for exchange in self._answering:
            exchange.hurry()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request or websocket."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        problem = check_head(scope, self._limits)
        if scope["type"] == "websocket":
            if problem is None:
                await Websocket(self._closing, self._limits.grace, receive, send).run(self._app, scope)
            else:
                await send({"type": "websocket.close"})
            return
        exchange = _Exchange(self._closing, self._limits, self._mask, scope, receive, send)
        self._answering.add(exchange)
        if self._late:
            exchange.hurry()
        try:
            await exchange.run(self._app, problem)
        finally:
            self._answering.discard(exchange)


class _Exchange:
    """One request and its answer."""

    def __init__(
        self,
        closing: trio.Event,
        limits: RequestLimits,
        mask: Callable[[str], str],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        self._closing = closing
        self._limits = limits
        self._mask = mask
        self._scope = scope
        self._receive = receive
        self._send = send
        self._working = trio.CancelScope()
        self._draining: trio.CancelScope | None = None
        self._hurried = False
        self._heard: deque[Message] = deque()
        self._heard_all = False
        self._drained: trio.Event | None = None
        self._discards = False
        self._size = 0
        self._most = limits.max_body
        self._gone = False
        self._verdict: ProblemDocument | None = None
        self._started = self._complete = self._streams_events = False

    async def run(self, app: App, problem: ProblemDocument | None) -> None:
        """Let the app answer, unless ``problem`` does."""
        if problem is None:
            with self._working:
                try:
                    if not _announces_body(self._scope):
                        await (
                            self._hear()
                        )  # That there is none is here at once; an app that does not read needs no other task.
                    await app(self._scope, self._give, self._take)
                except Exception as error:  # noqa: BLE001 - becomes an answer
                    self._verdict = self._fault(error)
            problem = self._verdict
        await self._conclude(problem)

    def hurry(self) -> None:
        """Time is up: the server closes."""
        self._verdict = self._verdict or ProblemDocument(
            status=503, detail="the server is stopping; ask again once it is back", headers={"retry-after": "5"}
        )
        self._hurried = True
        self._working.cancel()
        if self._draining is not None:
            self._draining.cancel()

    async def _hear(self) -> None:
        """The next thing that the client sends."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self._heard_all = not message.get("more_body", False)
            if self._size > self._most:
                self._refuse_more()
                message = {"type": "http.disconnect"}
        else:
            self._gone = True
        if (self._heard_all or self._gone) and self._drained is not None:
            self._drained.set()
        if self._gone or not self._discards:
            self._heard.append(message)

    async def _hear_rest(self) -> None:
        while not self._gone:
            await self._hear()

    def _refuse_more(self) -> None:
        if self._discards:
            if self._drained is not None:
                self._drained.set()
        elif self._started:
            # Too late to say it. The app must not take what it has for the whole.
            self._gone = True
        else:
            self._verdict = too_large(self._limits)
            self._discard()
            self._working.cancel()

    def _discard(self) -> None:
        """Nobody wants more of the body; it is read on, up to a bound."""
        if not self._discards:
            self._discards = True
            self._most = self._size + self._limits.drain_size

    async def _give(self) -> Message:
        """What the app receives."""
        while not self._heard:
            await self._hear()
        if self._complete:
            await trio.sleep_forever()
        return self._heard.popleft()

    async def _take(self, message: Message) -> None:
        """What the app sends."""
        if message["type"] == "http.response.start":
            message = {**message, "headers": await self._response_headers(message)}
            self._started = True
            await self._send(message)
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            if not self._heard_all:
                # The client may have what we say before it has said all itself, but the connection can't go on.
                await self._send({**message, "more_body": True})
                message = {"type": "http.response.body", "body": b""}
                await self._drain(self._limits.drain_time)
            self._complete = True
            await self._send(message)
        else:
            await self._send(message)

    async def _response_headers(self, message: Message) -> list[tuple[bytes, bytes]]:
        headers = list(message.get("headers", []))
        for name, value in headers:
            if name.lower() == b"content-type":
                self._streams_events = value.lower().startswith(b"text/event-stream")
        if message["status"] >= 400 and not self._heard_all:
            # A small body is here in a moment; for a large one it is kinder to say at once that it was in vain.
            await self._drain(0.05)
            if not self._heard_all:
                headers.append((b"connection", b"close"))
        return headers

    async def _drain(self, seconds: float) -> None:
        """Wait for the end of the body, of which nobody wants more; not for ever, nor for any amount."""
        self._discard()
        self._drained = drained = trio.Event()
        with trio.move_on_after(0 if self._hurried else seconds) as self._draining:
            async with trio.open_nursery() as nursery:
                # The app may be reading at the same time; whoever meets the end of it says so.
                nursery.start_soon(self._hear_rest)
                await drained.wait()
                nursery.cancel_scope.cancel()
        self._draining = None

    def _fault(self, error: Exception) -> ProblemDocument:
        for leaf in leaves(error):
            if isinstance(leaf, HTTPException) and leaf.code in set(HTTPStatus) and 400 <= leaf.code < 500:
                return ProblemDocument(status=leaf.code, detail=str(leaf.description))
        if not self._gone or not all(isinstance(leaf, _CLIENT_GONE) for leaf in leaves(error)):
            logger.error("an app raised %s", self._mask(describe(error)))
        return ProblemDocument(status=500, detail="the server failed to answer; its log says where")

    async def _conclude(self, problem: ProblemDocument | None) -> None:
        """The answer that the app did not give; or the end of the connection."""
        if self._complete or self._gone:
            return
        if not self._started:
            problem = problem or ProblemDocument(status=500, detail="the app gave no answer")
            body, headers = problem.encode(self._mask)
            raw = [(name.encode(), value.encode()) for name, value in headers.items()]
            await self._take({"type": "http.response.start", "status": problem.status, "headers": raw})
            await self._take({"type": "http.response.body", "body": body})
        elif self._streams_events and self._closing.is_set():
            # Events end with an empty line, so that a client knows a cut one; the stream itself ended as it should.
            await self._take({"type": "http.response.body", "body": b""})


def _announces_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])

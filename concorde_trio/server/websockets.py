"""Websockets when the server stops: they are told that it goes away, instead of losing the connection."""

from __future__ import annotations

import logging

import trio

from concorde_trio.server.asgi import App, Message, Receive, Scope, Send
from concorde_trio.server.faults import describe

logger = logging.getLogger("concorde_trio.server")


class Websocket:
    """One websocket: closed with "going away" when the server closes and its handler has not done so."""

    def __init__(self, closing: trio.Event, grace: float, receive: Receive, send: Send) -> None:
        self._closing = closing
        self._grace = grace
        self._receive = receive
        self._send = send
        self._open = False

    async def run(self, app: App, scope: Scope) -> None:
        """Let the app answer."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hurry, nursery.cancel_scope)
            try:
                await app(scope, self._receive, self._take)
            except Exception as error:  # noqa: BLE001 - its connection ends
                logger.error("an app raised %s", describe(error))
            nursery.cancel_scope.cancel()

    async def _take(self, message: Message) -> None:
        if message["type"] == "websocket.accept":
            self._open = True
        elif message["type"] == "websocket.close":
            self._open = False
        await self._send(message)

    async def _hurry(self, working: trio.CancelScope) -> None:
        await self._closing.wait()
        await trio.sleep(self._grace)
        if self._open:
            await self._take({"type": "websocket.close", "code": 1001, "reason": "going away"})
        working.cancel()

"""A reader of ``/events`` on a plain socket: what a browser would make of it, and how it ended."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import trio

from tests.server.house import OPERATOR, Wire, request


class EventReader:
    """One stream. ``last_id`` is what a browser would send as Last-Event-ID; comments and ids alone are no events."""

    def __init__(self, connection: Wire) -> None:
        self._wire = connection
        self.last_id: str | None = None
        self.comments = 0
        self.ended = False
        self._text = b""

    async def next(self) -> tuple[str, Any] | None:
        """The next event: its name and document; None when the stream has ended as a whole."""
        while True:
            while b"\n\n" in self._text:
                block, _, self._text = self._text.partition(b"\n\n")
                event = self._event(block.decode())
                if event is not None:
                    return event
            data = await self.piece()
            if not data:
                assert not self._text
                return None
            self._text += data

    async def piece(self) -> bytes:
        """What was told in one write, nothing at the end of the stream."""
        size = await self._wire.piece(b"\r\n")
        if size is None:
            raise EOFError("the stream was torn")
        data = await self._wire._exactly(int(size, 16))
        await self._wire._exactly(2)
        self.ended = not data
        return data

    def _event(self, block: str) -> tuple[str, Any] | None:
        fields: dict[str, str] = {}
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        self.comments += "" in fields
        self.last_id = fields.get("id", self.last_id)
        return (fields["event"], json.loads(fields["data"])) if "data" in fields else None

    async def until(self, name: str) -> Any:
        """The document of the next event of this name."""
        while (event := await self.next()) is not None:
            if event[0] == name:
                return event[1]
        raise EOFError(f"the stream ended without {name}")

    async def rest(self) -> list[tuple[str, Any]]:
        """All events up to the end of the stream."""
        found = []
        while (event := await self.next()) is not None:
            found.append(event)
        return found


@asynccontextmanager
async def plain(url: str, receive_buffer: int | None = None) -> AsyncIterator[Wire]:
    """A connection; what it does not read stays with the server, but for ``receive_buffer`` bytes."""
    parts = urlsplit(url)
    sock = trio.socket.socket()
    if receive_buffer is not None:
        sock.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, receive_buffer)
    await sock.connect((parts.hostname, parts.port))
    async with trio.SocketStream(sock) as stream:
        yield Wire(stream)


@asynccontextmanager
async def reading(
    url: str, query: str = "", *headers: str, receive_buffer: int | None = None
) -> AsyncIterator[EventReader]:
    """A stream that has begun. ``receive_buffer``: bytes that the system keeps for a reader that does not read."""
    async with plain(url, receive_buffer) as connection:
        await connection.send(request(f"/events{query}", f"authorization: Bearer {OPERATOR}", *headers))
        head = await connection.piece(b"\r\n\r\n")
        assert head is not None and head.startswith(b"HTTP/1.1 200"), head
        assert b"content-type: text/event-stream" in head.lower()
        yield EventReader(connection)


async def until(true: Any) -> None:
    """Wait until this is so."""
    while not true():
        await trio.sleep(0.005)

"""A running gateway asked by a Trio program: requests, and the events of one session as they come.

The law: as for ``client``: only the gateway that the endpoint file names, every wait bounded, what went wrong as an exception.
HTTP/1.0 is asked for, in which a body ends with its connection: an event needs no unpacking.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import trio

from concorde_trio.cli.client import PATIENCE, WorkerGone, read_answer
from concorde_trio.server.endpoint import Endpoint

SILENCE = 30.0
"""Seconds without an event after which a gateway is given up; a living one says something every few."""
_BOUND = 256 * 1024 * 1024


class LiveClient:
    """Asks one gateway. Every request is a connection of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        """``endpoint`` is what ``read_endpoint`` found."""
        self.endpoint = endpoint
        parts = urlsplit(endpoint.url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._prefix = parts.path.rstrip("/")

    async def ask(self, method: str, *segments: str, body: Any = None) -> Any:
        """The JSON document that answers."""
        async with self._request(method, segments, body) as (stream, status, data):
            with self.bounded(PATIENCE):
                while len(data) < _BOUND and (more := await self.receive(stream)):
                    data += more
        return read_answer(status, bytes(data), self.endpoint.url)

    @asynccontextmanager
    async def watch(self, session: str) -> AsyncIterator[Events]:
        """The events of one session from now on."""
        async with self._request("GET", ("sessions", session, "live"), None) as (stream, status, data):
            if status != 200:
                with self.bounded(PATIENCE):
                    while more := await self.receive(stream):
                        data += more
                read_answer(status if status >= 300 else 500, bytes(data), self.endpoint.url)
            yield Events(self, stream, data)

    @asynccontextmanager
    async def _request(
        self, method: str, segments: tuple[str, ...], body: Any
    ) -> AsyncIterator[tuple[trio.SocketStream, int, bytearray]]:
        """Send it; the stream, the status, and what came of the body with the head."""
        sent = b"" if body is None else json.dumps(body).encode()
        path = self._prefix + "".join("/" + quote(segment, safe="") for segment in segments)
        host = f"[{self._host}]" if ":" in self._host else self._host
        head = (
            f"{method} {path} HTTP/1.0\r\nhost: {host}:{self._port}\r\nauthorization: Bearer {self.endpoint.token}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(sent)}\r\n\r\n"
        )
        with self.bounded(PATIENCE):
            try:
                stream = await trio.open_tcp_stream(self._host, self._port)
            except OSError as error:
                raise self.gone(str(error.strerror or error), unheard=True) from None
        async with stream:
            data = bytearray()
            with self.bounded(PATIENCE):
                try:
                    await stream.send_all(head.encode("ascii") + sent)
                except trio.BrokenResourceError:
                    pass  # it may have answered before it heard all
                while b"\r\n\r\n" not in data:
                    more = await self.receive(stream)
                    if not more:
                        raise self.gone("it closed the connection")
                    data += more
            answer, _, rest = bytes(data).partition(b"\r\n\r\n")
            status = answer.split(b" ", 2)[1:2]
            if not answer.startswith(b"HTTP/1.") or not status or not status[0].isdigit():
                raise self.gone("what listens there speaks no HTTP")
            yield stream, int(status[0]), bytearray(rest)

    def gone(self, why: str, *, unheard: bool = False) -> WorkerGone:
        """The exception that says so."""
        return WorkerGone(f"the worker at {self.endpoint.url} went away: {why}", unheard=unheard)

    @contextmanager
    def bounded(self, seconds: float) -> Iterator[None]:
        """A wait that ends as WorkerGone."""
        try:
            with trio.fail_after(seconds):
                yield
        except trio.TooSlowError:
            raise self.gone(f"it has not answered for {seconds:.0f} seconds") from None

    async def receive(self, stream: trio.SocketStream) -> bytes:
        """What comes, nothing at the end."""
        try:
            return bytes(await stream.receive_some(65536))
        except trio.BrokenResourceError:
            raise self.gone("the connection broke") from None


class Events:
    """Server-sent events, one at a time."""

    def __init__(self, client: LiveClient, stream: trio.SocketStream, data: bytearray) -> None:
        self._client, self._stream, self._data = client, stream, data

    async def next(self) -> tuple[str, Any] | None:
        """The next event's name and document; None when the stream has ended as it should."""
        while b"\n\n" not in self._data:
            with self._client.bounded(SILENCE):
                more = await self._client.receive(self._stream)
            if not more:
                if self._data:
                    raise self._client.gone("its stream broke off")
                return None
            self._data += more
        event, _, rest = bytes(self._data).partition(b"\n\n")
        self._data = bytearray(rest)
        fields = dict(line.split(": ", 1) for line in event.decode().split("\n") if ": " in line)
        return fields.get("event", ""), json.loads(fields.get("data", "null"))

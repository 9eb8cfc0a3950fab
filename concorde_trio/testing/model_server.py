"""A small HTTP/1.1 server on a real loopback socket that plays bytes: for tests of model clients.

The law: it does what its answers say and notes what it saw. It can fall silent or go away after any byte, and tells when
it has said all that it was to say and when the client has gone, so that no test needs to sleep.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Literal

import attrs
import trio

from concorde_trio.errors import UsageError

_LEAVING = 2.0
_HEAD_LIMIT = 100_000
LAST_CHUNK = b"0\r\n\r\n"


@attrs.frozen
class HeardRequest:
    """A request that came. Names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@attrs.frozen(kw_only=True)
class ServerAnswer:
    """What to do with a request: send ``pieces`` one after another, then close, reset or keep the connection in silence.

    ``deaf``: do not even read the request, say nothing, keep the connection.
    """

    pieces: tuple[bytes, ...] = ()
    then: Literal["close", "reset", "stall"] = "close"
    deaf: bool = False


@attrs.define(eq=False)
class Exchange:
    """One connection. ``played``: all that its answer says is sent; ``gone``: the client has closed it, or broken it."""

    request: HeardRequest | None = None
    played: trio.Event = attrs.field(factory=trio.Event)
    gone: trio.Event = attrs.field(factory=trio.Event)


Answering = Callable[[HeardRequest], ServerAnswer]


class ModelServer:
    """``url``: where it is. ``exchanges``: all connections, in order of coming."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.exchanges: list[Exchange] = []
        self._answer: Answering = lambda request: ServerAnswer(pieces=(whole(500, b"no answer was set"),))
        self._deaf = False
        self._came = trio.Event()

    def answers(self, answer: ServerAnswer | Iterable[ServerAnswer] | Answering) -> None:
        """From now on every request gets this answer, or each the next one, or what a function says of it."""
        self._deaf = isinstance(answer, ServerAnswer) and answer.deaf
        if isinstance(answer, ServerAnswer):
            only = answer
            self._answer = lambda request: only
        elif callable(answer):
            self._answer = answer
        else:
            rest = iter(answer)
            self._answer = lambda request: next(rest)

    @property
    def requests(self) -> list[HeardRequest]:
        """The requests that were read."""
        return [each.request for each in self.exchanges if each.request is not None]

    async def exchange(self, number: int) -> Exchange:
        """The ``number``-th connection, from 0, once it has come."""
        while len(self.exchanges) <= number:
            await self._came.wait()
        return self.exchanges[number]

    async def serve(self, stream: trio.SocketStream) -> None:
        """One connection, to its end."""
        exchange = Exchange()
        self.exchanges.append(exchange)
        came, self._came = self._came, trio.Event()
        came.set()
        try:
            if self._deaf:
                exchange.played.set()
                await self._until_gone(stream, exchange)
                return
            request = await _read_request(stream)
            if request is None:
                exchange.gone.set()
                return
            exchange.request = request
            answer = self._answer(request)
            try:
                for piece in answer.pieces:
                    await stream.send_all(piece)
            except trio.BrokenResourceError:
                exchange.gone.set()
                return
            exchange.played.set()
            if answer.then == "stall":
                await self._until_gone(stream, exchange)
            elif answer.then == "reset":
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        finally:
            with trio.move_on_after(_LEAVING, shield=True):
                await stream.aclose()

    async def _until_gone(self, stream: trio.SocketStream, exchange: Exchange) -> None:
        try:
            while await stream.receive_some():
                pass
        except trio.BrokenResourceError:
            pass
        exchange.gone.set()


@asynccontextmanager
async def open_model_server() -> AsyncIterator[ModelServer]:
    """A server on a free port of 127.0.0.1 until the block is left."""
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server = ModelServer(f"http://127.0.0.1:{listener.socket.getsockname()[1]}")
        nursery.start_soon(trio.serve_listeners, server.serve, [listener])
        yield server
        nursery.cancel_scope.cancel()


def head(status: int = 200, headers: Mapping[str, str] | None = None, *, reason: str = "Scripted") -> bytes:
    """A status line and headers, the empty line after them included."""
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in (headers or {}).items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def whole(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    """A whole answer with a length."""
    return (
        head(status, {"content-type": "application/json", **(headers or {}), "content-length": str(len(body))}) + body
    )


def chunk(piece: bytes) -> bytes:
    """One chunk of a body of unknown length."""
    return f"{len(piece):x}\r\n".encode() + piece + b"\r\n"


def event_stream(pieces: Iterable[bytes], *, chunked: bool = True) -> tuple[bytes, ...]:
    """An answer that streams these pieces: its head, then each of them, then its end."""
    headers = {"content-type": "text/event-stream"}
    if not chunked:
        return (head(200, {**headers, "connection": "close"}), *pieces)
    return (head(200, {**headers, "transfer-encoding": "chunked"}), *map(chunk, pieces), LAST_CHUNK)


async def _read_request(stream: trio.SocketStream) -> HeardRequest | None:
    data = b""
    try:
        while b"\r\n\r\n" not in data:
            if len(data) > _HEAD_LIMIT:
                raise UsageError(f"a request's head is longer than {_HEAD_LIMIT:,} bytes")
            piece = await stream.receive_some()
            if not piece:
                return None
            data += piece
        first, _, body = data.partition(b"\r\n\r\n")
        line, *fields = first.decode("latin-1").split("\r\n")
        method, path, _ = line.split(" ", 2)
        headers = {name.strip().lower(): value.strip() for name, _, value in (each.partition(":") for each in fields)}
        length = int(headers.get("content-length", "0"))
        while len(body) < length:
            piece = await stream.receive_some()
            if not piece:
                return None
            body += piece
    except trio.BrokenResourceError:
        return None
    return HeardRequest(method, path, headers, body)

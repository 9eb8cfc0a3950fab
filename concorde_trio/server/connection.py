"""One TCP connection of HTTP/1: bytes to Hypercorn's protocol and back, with every wait bounded.

The law: a client decides nothing about how long we wait. Reading a request's head, an idle connection, a write, and the
farewell each have a bound; a write that passes its own aborts the socket, for what was sent can't be taken back. When
the server stops, idle connections end at once and every other bound shrinks to the stop's.

Hypercorn's own TCP server is not used: it shields its writes without a bound, so that one client that stops reading
holds up every stop; it also lets a client switch to HTTP/2, and closes sockets with unread bytes, which resets them
before the answer was read. As there, a client that ends its side of the connection is taken to be gone.
"""

from __future__ import annotations

import logging
import os
import socket
import struct

import attrs
import h11
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.events import Body, EndBody, Response
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ConnectionState, H11SendableEvent

from concorde_trio.server.problems import ProblemDocument

logger = logging.getLogger("concorde_trio.server")

READ_SIZE = 16 * 1024
DEAF = 0.5
"""Seconds in which an app takes the news that its client is gone, or is cancelled."""
_ABORT = struct.pack("ii", 1, 0)


@attrs.frozen(kw_only=True)
class ConnectionLimits:
    """Bounds of one connection, in seconds.

    ``idle``: from the end of an answer, or the connection's begin, to the end of the next request's head. ``write``: one
    write. ``linger``: after the last answer, for the client to stop sending. ``stop_write``: write and linger from the
    moment the server stops.
    """

    idle: float = 15.0
    write: float = 30.0
    linger: float = 2.0
    stop_write: float = 0.5


class LastRequest(h11.Connection):
    """An h11 connection that ignores what comes after the request that its client said to be the last one.

    To h11 that is an error, and Hypercorn would answer it in place of the request that is still being answered.
    """

    def receive_data(self, data: bytes) -> None:
        """Take bytes, empty ones at the end."""
        if self.their_state is not h11.MUST_CLOSE or not data:
            super().receive_data(data)

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        """What the bytes say."""
        if self.their_state is h11.MUST_CLOSE and self.trailing_data[0]:
            return h11.NEED_DATA
        return super().next_event()


class Http1(H11Protocol):
    """Hypercorn's HTTP/1 protocol, which answers bad requests with problem documents and knows no HTTP/2.

    ``deaf``: an app could not be told that its client is gone.
    """

    deaf = False
    _head = b""

    async def stream_send(self, event: StreamEvent) -> None:
        """What an app has said. The head of an answer goes out with the first of its body, as ASGI asks: one write, not two."""
        if isinstance(event, Response) and event.status_code >= 200:
            headers = [*event.headers, *self.config.response_headers("h11")]
            self._head = self._encode(h11.Response(headers=headers, status_code=event.status_code))
        elif isinstance(event, Body):
            await self._send_with_head(self._encode(h11.Data(data=event.data)))
        elif isinstance(event, EndBody):
            await self._send_with_head(self._encode(h11.EndOfMessage()))
        else:
            await super().stream_send(event)

    async def _send_with_head(self, data: bytes) -> None:
        head, self._head = self._head, b""
        await self.send(RawData(data=head + data if head else data))

    def _encode(self, event: H11SendableEvent) -> bytes:
        try:
            return self.connection.send(event) or b""
        except h11.LocalProtocolError:
            if self.connection.their_state is not h11.ERROR:
                raise
            return b""  # The client broke the protocol meanwhile; its connection ends.

    async def _check_protocol(self, event: h11.Request) -> None:
        """Requests to upgrade to HTTP/2 are not taken up, which HTTP allows: they are answered in HTTP/1."""

    async def _create_stream(self, request: h11.Request) -> None:
        try:
            await super()._create_stream(request)
        except (ValueError, AttributeError):
            # The headers of a websocket's handshake are decoded here, whatever bytes they are.
            self.stream = None
            await self._send_error_response(400)
            await self.send(Closed())

    async def _close_stream(self) -> None:
        # An app that has returned, or is stuck, reads nothing; its queue may be full for ever.
        with trio.move_on_after(DEAF) as bound:
            await super()._close_stream()
        if bound.cancelled_caught:
            self.stream = None
            self.deaf = True

    async def _send_error_response(self, status_code: int) -> None:
        detail = "the head of the request is too large" if status_code == 431 else "this is no valid HTTP/1.1 request"
        body, headers = ProblemDocument(status=status_code, detail=detail, headers={"connection": "close"}).encode(str)
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self._send_h11_event(
            h11.Response(status_code=status_code, headers=raw + self.config.response_headers("h11"))
        )
        await self._send_h11_event(h11.Data(data=body))
        await self._send_h11_event(h11.EndOfMessage())


class Connection:
    """Serves one accepted stream until either side ends it."""

    def __init__(
        self,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        limits: ConnectionLimits,
        stream: trio.SocketStream,
    ) -> None:
        self._app = app
        self._config = config
        self._context = context
        self._limits = limits
        self._stream = stream
        self._stopping = False
        self._idle = True
        self._heard_all = False
        self._unread = False
        self._broken = False
        self._writing = trio.Lock()
        self._reading = trio.CancelScope()
        self._life = trio.CancelScope()
        self._bounds: set[trio.CancelScope] = set()

    async def run(self) -> None:
        """Serve it. Raises only what is a fault of ours or of a library's."""
        try:
            with self._life:
                await self._serve()
        finally:
            await self._close()  # noqa: ASYNC102 (shielded and bounded inside)

    @property
    def idle_until(self) -> float | None:
        """When it is closed for saying nothing, on Trio's clock; None while a request is being answered."""
        return self._reading.deadline if self._idle else None

    def stop(self) -> None:
        """No further request; what is being written has ``stop_write`` seconds."""
        self._stopping = True
        if self._idle:
            self._reading.cancel()
        for bound in self._bounds:
            bound.deadline = min(bound.deadline, trio.current_time() + self._limits.stop_write)

    def abort(self) -> None:
        """End it now, whatever is in flight."""
        self._stopping = self._broken = True
        self._life.cancel()
        for bound in self._bounds:
            bound.cancel()

    async def _serve(self) -> None:
        try:
            local, remote = self._stream.socket.getsockname(), self._stream.socket.getpeername()
        except OSError:
            self._broken = True  # It was reset before it was looked at.
            return
        self._reading.deadline = trio.current_time() + self._limits.idle
        async with TaskGroup() as tasks:
            protocol = Http1(
                self._app,
                self._config,
                self._context,
                tasks,
                ConnectionState({}),
                False,
                remote[:2],
                local[:2],
                self._send,
            )
            protocol.connection = LastRequest(
                h11.SERVER, max_incomplete_event_size=self._config.h11_max_incomplete_size
            )
            with self._reading:
                await self._read(protocol)
            await protocol.handle(Closed())
            if protocol.deaf:
                self._life.cancel()
        http = protocol.connection
        self._unread = http.their_state in (h11.SEND_BODY, h11.ERROR) or bool(http.trailing_data[0])

    async def _read(self, protocol: Http1) -> None:
        while not self._heard_all:
            try:
                data = await self._stream.receive_some(READ_SIZE)
            except trio.BrokenResourceError:
                self._broken = True
                return
            self._heard_all = not data
            await protocol.handle(RawData(bytes(data)))

    async def _send(self, event: Event) -> None:
        match event:
            case RawData() if event.data:
                await self._write(event.data)
            case Closed():
                self._reading.cancel()
            case Updated():
                self._set_idle(event.idle)

    def _set_idle(self, idle: bool) -> None:
        self._idle = idle
        self._reading.deadline = trio.current_time() + self._limits.idle if idle else float("inf")

    async def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        if not (self._broken or self._writing.locked()):
            rest = rest[self._write_now(rest) :]
        if rest and not self._broken:
            await self._write_all(rest)
        if self._broken:
            self._reading.cancel()
        # The one place where an answer without end can notice that it was cancelled, and where others get their turn.
        await trio.lowlevel.checkpoint()

    def _write_now(self, data: memoryview) -> int:
        """Write what the system takes at once, which is nearly always all, without the cost of waiting; how much that was."""
        try:
            return os.write(self._stream.socket.fileno(), data)
        except BlockingIOError:
            return 0
        except OSError:
            self._broken = True
            return 0

    async def _write_all(self, data: memoryview) -> None:
        # Shielded, since half a write would garble everything after it; and bounded, whatever the client does.
        with self._bound(self._limits.write) as bound:
            async with self._writing:
                if not self._broken:
                    try:
                        await self._stream.send_all(data)
                    except (trio.BrokenResourceError, trio.ClosedResourceError):
                        self._broken = True
        if bound.cancelled_caught:
            self._broken = True

    async def _close(self) -> None:
        """Say that there will be no more, let the client finish its sentence, and close; or abort."""
        sock = self._stream.socket
        if not self._broken:
            with self._bound(self._limits.linger) as bound:
                try:
                    await self._stream.send_eof()
                    # Bytes that nobody read when a socket closes reset it, and the answer may be lost on its way.
                    while self._unread and not self._heard_all and await self._stream.receive_some(READ_SIZE):
                        pass
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    self._broken = True
            self._broken = self._broken or bound.cancelled_caught
        if self._broken:
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
            except OSError:
                pass  # It is gone already.
        sock.close()

    def _bound(self, seconds: float) -> _Bound:
        return _Bound(self, self._limits.stop_write if self._stopping else seconds)

    def watch(self, scope: trio.CancelScope) -> None:
        """``scope`` follows the server's stop until it is forgotten."""
        self._bounds.add(scope)

    def forget(self, scope: trio.CancelScope) -> None:
        """The wait of ``scope`` is over."""
        self._bounds.discard(scope)


class _Bound:
    """A shielded wait of at most some seconds, which the server's stop can shorten."""

    def __init__(self, connection: Connection, seconds: float) -> None:
        self._connection = connection
        self._scope = trio.CancelScope(shield=True, deadline=trio.current_time() + seconds)

    def __enter__(self) -> trio.CancelScope:
        self._connection.watch(self._scope)
        return self._scope.__enter__()

    def __exit__(self, *error: object) -> bool | None:
        self._connection.forget(self._scope)
        return self._scope.__exit__(*error)  # type: ignore[arg-type]

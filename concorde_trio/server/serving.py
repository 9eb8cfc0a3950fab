"""One app on one address: listen, serve, and stop in about a second whatever the clients do (SRV-1).

The law of a stop: nothing new is accepted and idle connections end at once; requests have ``RequestLimits.grace`` to be
answered, writes ``ConnectionLimits.stop_write`` to be read, and then sockets are aborted; the app's after_serving
functions run last, when nobody asks it anything any more. A cancelled server does the same without the grace.
"""

from __future__ import annotations

import errno
import logging
import resource
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import attrs
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.logging import Logger
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper
from quart_trio import QuartTrio
from quart_trio.asgi import TrioASGIHTTPConnection

from concorde_trio.errors import CannotServe
from concorde_trio.server.connection import Connection, ConnectionLimits
from concorde_trio.server.faults import describe
from concorde_trio.server.harden import Harden
from concorde_trio.server.heads import RequestLimits
from concorde_trio.server.lifespan import Lifespan
from concorde_trio.server.problems import ProblemDocument
from concorde_trio.watchdog import named_work

logger = logging.getLogger("concorde_trio.server")

named_work(lambda here: f"the handler of {here['request'].url_rule.rule}")(TrioASGIHTTPConnection.handle_request)

BACKLOG = 1024
DEAD_PEER = 30.0
"""Seconds after which the system gives up a connection whose peer acknowledges nothing."""

UNSENT = 64 * 1024
"""Bytes that the system takes for a connection beyond what its client has room for."""


@attrs.frozen(kw_only=True)
class ServerLimits:
    """Every bound of a server. ``stop``: seconds from its stop's begin until what is left is aborted.

    ``connections``: how many there may be, at most half of the files that the process may have open. For one more the one that has been idle for longest is closed; where every one has a
    request that is being answered, the new one gets a 503.
    """

    request: RequestLimits = attrs.field(factory=RequestLimits)
    connection: ConnectionLimits = attrs.field(factory=ConnectionLimits)
    connections: int = 5_000
    stop: float = 1.0


async def listen(host: str, port: int) -> trio.SocketListener:
    """A listening socket. ``host``: an address or name, IPv6 with or without brackets; ``port`` 0: any free one.

    CannotServe, in a sentence, when the address cannot be had.
    """
    bare = host.strip("[]")
    where = f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"
    if not bare:
        raise CannotServe("the host to listen on is empty; write 127.0.0.1, or 0.0.0.0 for every address")
    if not 0 <= port < 65536:
        raise CannotServe(f"cannot listen on {where}: a port is 0 (any) to 65535")
    try:
        found = await trio.socket.getaddrinfo(bare, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise CannotServe(f"cannot listen on {where}: {_reason(error)}") from None
    # A name can have several addresses; IPv4 is what everything on this machine tries.
    family, _, _, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    sock = trio.socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, bare != "::")
        if sys.platform == "linux":
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(DEAD_PEER * 1000))
            # Connections inherit it: else the system keeps megabytes of its own for each client that reads nothing.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT)
        await sock.bind(address)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise CannotServe(
                f"cannot listen on {where}: the port is in use; stop what uses it, or choose another"
            ) from None
        raise CannotServe(f"cannot listen on {where}: {_reason(error)}") from None
    return trio.SocketListener(sock)


def url_of(listener: trio.SocketListener) -> str:
    """Where programs on this machine reach a listener: ``http://HOST:PORT``."""
    host, port = listener.socket.getsockname()[:2]
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{local}]:{port}" if ":" in local else f"http://{local}:{port}"


async def serve(
    app: QuartTrio,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    closing: trio.Event | None = None,
    limits: ServerLimits | None = None,
    mask: Callable[[str], str] = str,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve ``app`` until ``closing`` is set; start it with ``nursery.start``, which gives the URL.

    ``closing`` is set when the server stops for another reason, too; long answers should watch it and end. ``mask`` hides
    live tags in what the server itself says. Raises CannotServe before it has started, and what ended the app's own tasks.
    """
    closing = trio.Event() if closing is None else closing
    limits = ServerLimits() if limits is None else limits
    listener = await listen(host, port)
    async with listener:
        hardened = Harden(app, closing=closing, limits=limits.request, mask=mask)  # type: ignore[arg-type]
        server = _Server(ASGIWrapper(hardened), limits)  # type: ignore[arg-type]
        lifespan = Lifespan(app)
        async with trio.open_nursery() as nursery:
            await nursery.start(lifespan.run)
            try:
                async with trio.open_nursery() as serving:
                    serving.start_soon(hardened.watch)
                    await server.run(listener, closing, partial(task_status.started, url_of(listener)))
                    serving.cancel_scope.cancel()
            finally:
                await lifespan.stop()  # noqa: ASYNC102 (shielded and bounded inside)


class _Server:
    def __init__(self, app: AppWrapper, limits: ServerLimits) -> None:
        self._app = app
        self._limits = limits
        self._most = _affordable(limits.connections)
        self._config = _config(limits)
        self._context = WorkerContext(None)
        self._connections: set[Connection] = set()
        self._stopping = False
        self._quiet = trio.Event()

    async def run(self, listener: trio.SocketListener, closing: trio.Event, started: Callable[[], None]) -> None:
        async with trio.open_nursery() as connections:
            try:
                async with trio.open_nursery() as accepting:
                    accepting.start_soon(
                        partial(trio.serve_listeners, self._handle, [listener], handler_nursery=connections)
                    )
                    started()
                    await closing.wait()
                    accepting.cancel_scope.cancel()
            finally:
                closing.set()
                self._stopping = True
                await self._context.terminated.set()  # noqa: ASYNC102 (async by name; it never waits)
                for connection in self._connections:
                    connection.stop()
            with trio.move_on_after(self._limits.stop):
                while self._connections:
                    await self._quiet.wait()
            for connection in self._connections:
                connection.abort()

    async def _handle(self, stream: trio.SocketStream) -> None:
        connection = Connection(self._app, self._config, self._context, self._limits.connection, stream)
        if len(self._connections) >= self._most and not self._make_room():
            await _refuse(stream)
            return
        self._connections.add(connection)
        if self._stopping:
            connection.stop()
        try:
            await connection.run()
        except Exception as error:  # noqa: BLE001 - one connection's
            # A fault of ours or of a library's on what one client sent; the others do not suffer for it.
            logger.error("a connection ended with %s", describe(error))
        finally:
            self._connections.discard(connection)
            if self._stopping and not self._connections:
                self._quiet.set()

    def _make_room(self) -> bool:
        """Close the connection that has said nothing for longest; False if there is none that is idle."""
        idle = [(until, id(one), one) for one in self._connections if (until := one.idle_until) is not None]
        if not idle:
            return False
        oldest = min(idle)[2]
        self._connections.discard(oldest)
        oldest.stop()
        return True


async def _refuse(stream: trio.SocketStream) -> None:
    """Say that there are too many, in one write into an empty buffer, and close."""
    body, headers = ProblemDocument(
        status=503,
        detail="the server has as many connections as it can have; close some, or try again",
        headers={"connection": "close", "retry-after": "5"},
    ).encode(str)
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with trio.move_on_after(1), suppress(trio.BrokenResourceError):
        await stream.send_all(f"HTTP/1.1 503 Service Unavailable\r\n{head}\r\n".encode() + body)
    await trio.aclose_forcefully(stream)


class _QuietLogger(Logger):
    """Hypercorn's log, through ours, with no text that could have come from a client."""

    async def access(self, *about: object) -> None:
        """Nothing: a path can hold what a log must not."""

    async def exception(self, message: str, *about: object, **how: object) -> None:
        """What the message is about, without what the exception says."""
        error = sys.exc_info()[1]
        logger.error("%s: %s", message, "unknown" if error is None else describe(error))


def _config(limits: ServerLimits) -> Config:
    config = Config()
    config.accesslog = None
    config.errorlog = logger
    config.logger_class = _QuietLogger
    config.h11_max_incomplete_size = limits.request.max_head
    config.websocket_max_message_size = limits.request.max_body
    config.include_server_header = False
    config.keep_alive_max_requests = sys.maxsize
    return config


def _affordable(connections: int) -> int:
    # The other half is for the store, for programs and models of runs, and for who is told that there is no room.
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return connections if files == resource.RLIM_INFINITY else min(connections, max(1, files // 2))


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)

"""A proxy before a database that loses, holds back and delays what goes through it: a small Trio program of its own.

``python proxy.py COUNT SOCKET``: COUNT ports on 127.0.0.1, each a way to the unix socket SOCKET. It prints the ports as a JSON list, then
takes lines on stdin, and answers each with ``ok``: ``WAY cut`` (what is connected is closed, and what connects is closed at
once), ``WAY stall`` (nothing gets through, and nothing is closed), ``WAY delay SECONDS`` (every piece is held back so long),
``WAY heal``. It ends with its stdin. Standard library and Trio only.
"""

from __future__ import annotations

import json
import sys

import trio

PIECE = 65536


class Way:
    """One port, and what is wrong with it."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path
        self._open = trio.Event()
        self._open.set()
        self._is_cut = False
        self._delay = 0.0
        self._connections: set[trio.CancelScope] = set()

    def tell(self, what: str, *seconds: str) -> None:
        """Take an order."""
        self._is_cut = what == "cut"
        self._delay = float(seconds[0]) if what == "delay" else 0.0
        if what == "stall":
            if self._open.is_set():
                self._open = trio.Event()
        else:
            self._open.set()
        if self._is_cut:
            for connection in self._connections:
                connection.cancel()

    async def serve(self, client: trio.SocketStream) -> None:
        """Pass on what one client and the database say to each other, until either has gone."""
        with trio.CancelScope() as scope:
            self._connections.add(scope)
            try:
                async with client:
                    if self._is_cut:
                        return
                    await self._open.wait()
                    try:
                        server = await trio.open_unix_socket(self._socket_path)
                    except OSError:
                        return  # it is being restarted
                    async with server, trio.open_nursery() as nursery:
                        nursery.start_soon(self._pass_on, client, server, nursery.cancel_scope)
                        nursery.start_soon(self._pass_on, server, client, nursery.cancel_scope)
            finally:
                self._connections.discard(scope)

    async def _pass_on(self, source: trio.SocketStream, sink: trio.SocketStream, both: trio.CancelScope) -> None:
        try:
            async for data in source:
                await trio.sleep(self._delay)
                await self._open.wait()
                await sink.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        both.cancel()


async def main(count: int, socket_path: str) -> None:
    """Serve until stdin ends."""
    async with trio.open_nursery() as nursery:
        ways, ports = [], []
        for _ in range(count):
            way = Way(socket_path)
            [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
            ways.append(way)
            ports.append(listener.socket.getsockname()[1])
            nursery.start_soon(trio.serve_listeners, way.serve, [listener])
        print(json.dumps(ports), flush=True)
        async with trio.lowlevel.FdStream(0) as orders:
            rest = b""
            async for data in orders:
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    number, *words = line.decode().split()
                    ways[int(number)].tell(*words)
                    print("ok", flush=True)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, int(sys.argv[1]), sys.argv[2])

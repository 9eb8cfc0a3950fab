"""The proxy of the fault driver: what is cut, held back and delayed really is, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.fleet import proxy

pytestmark = pytest.mark.slow


@asynccontextmanager
async def proxied(folder: Path) -> AsyncIterator[tuple[list[int], trio.Process]]:
    """A server that echoes, and two ways to it."""
    socket = trio.socket.socket(trio.socket.AF_UNIX)
    await socket.bind(str(folder / "socket"))
    socket.listen()

    async def echo(stream: trio.SocketStream) -> None:
        async with stream:
            async for data in stream:
                await stream.send_all(data)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, echo, [trio.SocketListener(socket)])
        process = await trio.lowlevel.open_process(
            [sys.executable, proxy.__file__, "2", str(folder / "socket")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None and process.stdout is not None
        ports = b""
        while not ports.endswith(b"\n"):
            ports += await process.stdout.receive_some()
        yield json.loads(ports), process
        await process.stdin.aclose()
        assert await process.wait() == 0
        nursery.cancel_scope.cancel()


async def tell(process: trio.Process, order: str) -> None:
    """Give an order, and wait until it is heeded."""
    assert process.stdin is not None and process.stdout is not None
    await process.stdin.send_all(f"{order}\n".encode())
    answer = b""
    while not answer.endswith(b"\n"):
        answer += await process.stdout.receive_some()
    assert answer == b"ok\n"


async def said(stream: trio.SocketStream, word: bytes) -> bytes:
    """What comes back, b"" when it is closed."""
    try:
        await stream.send_all(word)
        return bytes(await stream.receive_some())
    except trio.BrokenResourceError:
        return b""


async def test_a_way_is_cut_stalled_delayed_and_healed_by_itself(tmp_path: Path) -> None:
    """Q-20: a connection that hangs is another fault than one that is closed; the other way goes on."""
    with trio.fail_after(60):
        async with proxied(tmp_path) as (ports, process):
            first, other = [await trio.open_tcp_stream("127.0.0.1", port) for port in ports]
            assert await said(first, b"a") == b"a"
            await tell(process, "0 stall")
            with trio.move_on_after(0.1) as waited:
                await said(first, b"b")
            assert waited.cancelled_caught
            assert await said(other, b"c") == b"c"
            await tell(process, "0 heal")
            assert await first.receive_some() == b"b"  # nothing was lost
            await tell(process, "0 delay 0.1")
            began = time.monotonic()
            assert await said(first, b"d") == b"d"
            assert time.monotonic() - began >= 0.2
            await tell(process, "0 cut")
            assert await said(first, b"e") == b""
            async with await trio.open_tcp_stream("127.0.0.1", ports[0]) as refused:
                assert await said(refused, b"f") == b""
            assert await said(other, b"g") == b"g"
            await tell(process, "0 heal")
            async with await trio.open_tcp_stream("127.0.0.1", ports[0]) as again:
                assert await said(again, b"h") == b"h"
            await first.aclose()
            await other.aclose()

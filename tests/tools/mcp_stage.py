"""What tests of MCP tools share: a running server, and calls of its tools by the server's own names."""

from __future__ import annotations

import contextlib
import itertools
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NoReturn

import trio

from concorde_trio import McpServer
from concorde_trio.processes.runner import open_program
from concorde_trio.processes.sweep import new_marker
from concorde_trio.sessions.tool import ToolContext, ToolResult
from concorde_trio.tools.mcp_tool import McpTool
from tests.processes.census import Census

UNRULY = str(Path(__file__).with_name("mcp_server.py"))
BARE = str(Path(__file__).with_name("mcp_bare_server.py"))

_numbers = itertools.count(1)


def _unused(*_: object) -> NoReturn:
    raise AssertionError("an MCP tool leaves nothing behind")


class Stage:
    """A server that runs. ``call`` makes a call as a session would."""

    def __init__(self, server: McpServer, outputs: Path) -> None:
        self.server = server
        self._outputs = outputs

    def tool(self, name: str) -> McpTool | None:
        return {tool.spec.name: tool for tool in self.server.tools()}.get(f"{self.server.name}__{name}")

    async def call(self, name: str, /, **arguments: Any) -> ToolResult:
        tool = self.tool(name)
        assert tool is not None, [tool.spec.name for tool in self.server.tools()]
        return await call(tool, self._outputs, **arguments)

    async def up(self, name: str = "echo") -> None:
        """Until it is connected and offers the tool."""
        await until(lambda: "is connected" in self.server.status() and self.tool(name) is not None)

    async def down(self) -> None:
        await until(lambda: "cannot be reached" in self.server.status())


async def call(tool: McpTool, outputs: Path, **arguments: Any) -> ToolResult:
    context = ToolContext(
        session="s",
        call_id=f"call/{next(_numbers)}",
        env={},
        outputs=outputs,
        queue="tests",
        programs_lock=None,
        left=_unused,
        keep=_unused,
    )
    return await tool.call(arguments, context)


@contextlib.asynccontextmanager
async def running(server: McpServer, outputs: Path = Path("/nonexistent")) -> AsyncIterator[Stage]:
    """The server, from its first success or failure until the block is left."""
    async with trio.open_nursery() as nursery:
        with trio.fail_after(60):
            await nursery.start(server.run)
        yield Stage(server, outputs)
        nursery.cancel_scope.cancel()


def unruly(census: Census, *, name: str = "un", env: dict[str, str] | None = None) -> McpServer:
    return McpServer.stdio(
        [sys.executable, UNRULY, "stdio"], name=name, env={**census.env, **(env or {})}, connect_timeout=60
    )


@contextlib.asynccontextmanager
async def http_server(census: Census, port: int) -> AsyncIterator[None]:
    """The unruly server over HTTP, killed when the block is left."""
    async with open_program(
        [sys.executable, UNRULY, "http", str(port)],
        env=census.env,
        cwd="/",
        marker=new_marker("tests"),
        ladder=(),
    ):
        yield


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Poll until it is true; the bound only turns a hang into a failure."""
    with trio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110
            await trio.sleep(0.01)

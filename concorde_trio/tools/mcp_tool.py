"""One tool of an MCP server, as a session sees it. The law: a server that is down, dies or answers nonsense is a result
with ``is_error`` that says so, never an exception."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from concorde_trio._sansio.model_events import ToolSpec
from concorde_trio.sessions.tool import ExecKind, ToolContext, ToolResult


class McpTool:
    """Made by McpServer, one object for each name, whatever the server's list says later."""

    def __init__(
        self,
        *,
        timeout: float,
        concurrent: bool,
        call: Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolResult]],
    ) -> None:
        self._timeout = timeout
        self._concurrent = concurrent
        self._call = call
        self.kind: ExecKind = "execute"
        self.spec = ToolSpec(name="", description="", parameters={})

    @property
    def timeout(self) -> float:
        """Seconds."""
        return self._timeout

    @property
    def concurrent(self) -> bool:
        """Whether it may overlap with its neighbours."""
        return self._concurrent

    async def call(self, arguments: Mapping[str, Any], context: ToolContext, /) -> ToolResult:
        """Ask the server. The server checks the arguments."""
        return await self._call(arguments, context)

    def __repr__(self) -> str:
        return f"<McpTool {self.spec.name}>"

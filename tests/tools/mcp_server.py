"""A real MCP server for tests: ``python mcp_server.py stdio | http PORT``. Its tools are as unruly as servers get."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Image
from mcp.types import CallToolResult, ToolAnnotations

server = MCPServer("unruly")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def echo(text: str) -> str:
    """Says it again."""
    return text


@server.tool(annotations=ToolAnnotations(open_world_hint=True))
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
async def hang(started: str, ended: str = "") -> str:
    """Writes a file, then waits for ever; writes the other one when it is cancelled."""
    Path(started).touch()
    try:
        await anyio.sleep_forever()
    finally:
        if ended:
            Path(ended).touch()
    return ""


@server.tool()
def die(text: str, code: int = 3) -> str:
    """Ends the server, with a word on stderr."""
    print(text, file=sys.stderr, flush=True)
    os._exit(code)


@server.tool()
def big(size: int) -> str:
    """So many characters."""
    return "x" * size


@server.tool()
def picture() -> Image:
    """An image."""
    return Image(data=b"12345", format="png")


@server.tool(name="odd.name/with spaces")
def odd() -> str:
    """A name that providers refuse."""
    return "odd"


@server.tool()
def refuse(text: str) -> CallToolResult:
    """Fails in its own words."""
    return CallToolResult.model_validate({"content": [{"type": "text", "text": text}], "is_error": True})


@server.tool()
def number() -> str:
    """Its process."""
    return str(os.getpid())


@server.tool()
def variables() -> str:
    """The names of its environment."""
    return ",".join(sorted(os.environ))


@server.tool()
async def learn(name: str, ctx: Context) -> str:
    """Offers a new tool from now on."""
    server.add_tool(lambda: f"I am {name}", name=name, description="new")
    await ctx.notify_tools_changed()
    return "learnt"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", port=int(sys.argv[2]))

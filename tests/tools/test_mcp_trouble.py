"""Programs that are no MCP servers, and servers that keep to no manners."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from concorde_trio import McpServer
from concorde_trio.tools import mcp_stdio
from tests.processes.census import Census
from tests.tools.mcp_stage import BARE, call, running, until

pytestmark = pytest.mark.slow


def bare(census: Census, *more: str) -> McpServer:
    return McpServer.stdio([sys.executable, BARE, *more], name="bare", env=census.env, connect_timeout=60)


@pytest.mark.parametrize(
    ("argv", "connect_timeout", "words"),
    [
        (["no-such-program-anywhere"], 60, ["no-such-program-anywhere", "no folder of the PATH"]),
        (["sh", "-c", "echo no licence >&2; exit 7"], 60, ["exit status 7", "no licence"]),
        (
            ["sh", "-c", "echo 'Usage: server [options]'"],
            60,
            ["exit status 0", "Usage: server [options]", "no MCP message"],
        ),
        (["sleep", "600"], 0.5, ["did not answer as an MCP server within 0.5 s"]),
        (["sh", "-c", "echo waiting for a database >&2; sleep 600"], 0.5, ["within 0.5 s", "waiting for a database"]),
        (["cat"], 60, ["cannot be reached"]),
    ],
)
async def test_what_is_no_server_has_no_tools_and_says_why(
    census: Census, caplog: pytest.LogCaptureFixture, argv: list[str], connect_timeout: float, words: list[str]
) -> None:
    """The start of a session goes on without its tools; the reason is in its status and in the log, once."""
    server = McpServer.stdio(argv, name="none", env=census.env, connect_timeout=connect_timeout)
    with caplog.at_level(logging.WARNING, logger="concorde_trio.tools"):
        async with running(server) as stage:
            assert stage.server.tools() == ()
            for each in words:
                assert each in stage.server.status()
    assert len(caplog.records) == 1
    assert words[-1] in caplog.text


async def test_an_older_server_is_understood(census: Census) -> None:
    """The old handshake, a list in pages, tools without a description."""
    async with running(bare(census)) as stage:
        assert [tool.spec.name for tool in stage.server.tools()] == [
            f"bare__{name}" for name in ("first", "surrogate", "chatter", "grow", "huge", "flood")
        ]
        first = stage.tool("first")
        assert first is not None
        assert (first.spec.parameters, first.spec.description, first.kind) == ({"type": "object"}, "first", "execute")
        assert (await stage.call("first")).text == "first done"


async def test_an_older_server_tells_of_a_change_by_a_notification(census: Census) -> None:
    """Nobody has to subscribe."""
    async with running(bare(census)) as stage:
        await stage.call("grow")
        await until(lambda: stage.tool("grown"))


async def test_text_that_is_no_unicode_and_lines_that_are_no_messages_do_no_harm(census: Census) -> None:
    """A lone surrogate is replaced; what a server prints beside its messages is passed over."""
    async with running(bare(census)) as stage:
        assert (await stage.call("surrogate")).text == "before ? after \u0000"
        assert (await stage.call("chatter")).text == "chatter done"


async def test_a_server_beyond_the_bounds_is_broken_off(census: Census, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that is too long, and more messages than anybody reads: an error result that says so, and a new start."""
    monkeypatch.setattr(mcp_stdio, "LONGEST_MESSAGE", 100_000)
    monkeypatch.setattr(mcp_stdio, "UNREAD", 100)
    async with running(bare(census)) as stage:
        huge = await stage.call("huge")
        assert huge.is_error
        assert "100,000 are allowed" in huge.text
        await stage.up("first")
        flood = await stage.call("flood")
        assert flood.is_error
        assert "more than 100 messages" in flood.text
        await stage.up("first")
        assert (await stage.call("first")).text == "first done"


async def test_a_stubborn_server_is_killed(census: Census) -> None:
    """It ends neither with its stdin nor on SIGTERM: gone all the same within the bounds (the census looks)."""
    async with running(bare(census, "stubborn")) as stage:
        assert census.alive() != []
        assert (await stage.call("first")).text == "first done"
    assert census.alive() == []


async def test_a_tool_kept_beyond_its_server_says_so(census: Census) -> None:
    """A call of a tool after the server was stopped is an error result, no exception."""
    async with running(bare(census)) as stage:
        tool = stage.tool("first")
    assert tool is not None
    result = await call(tool, Path("/nonexistent"))
    assert result.is_error
    assert "was stopped" in result.text


async def test_a_tool_that_no_client_can_read_costs_its_server_no_other(
    census: Census, caplog: pytest.LogCaptureFixture
) -> None:
    """It is left out with a line in the log, once, however often the list is read; calls of the others work."""
    with caplog.at_level(logging.WARNING, logger="concorde_trio.tools"):
        async with running(bare(census, "sloppy")) as stage:
            names = [tool.spec.name.removeprefix("bare__") for tool in stage.server.tools()]
            assert names == ["first", "surrogate", "chatter", "grow", "huge", "flood"]
            assert (await stage.call("first")).text == "first done"
            await stage.call("grow")
            await until(lambda: stage.tool("grown"))
    said = [record.getMessage() for record in caplog.records]
    for name in ("no_schema", "text", "hidden", "odd", "odder", "5"):
        (line,) = [each for each in said if f"the tool {name!r}, which is left out: " in each]
        assert line.startswith("the MCP server 'bare' lists ")
    assert len(said) == 6

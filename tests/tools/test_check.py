"""The check that people run on tools of their own: ours pass it, and each fault is found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trio

from concorde_trio import ShellTool, ToolContext, ToolResult, file_tools, tool
from concorde_trio._sansio.model_events import ToolSpec
from concorde_trio.testing import check_tool
from tests.processes.census import Census

pytestmark = pytest.mark.slow


@tool(concurrent=True, kind="read")
async def wait(seconds: float = 0) -> str:
    """Wait a while."""
    await trio.sleep(seconds)
    return "waited"


class Faulty:
    """A tool with one fault."""

    timeout = 5.0
    concurrent = False
    kind: Any = "read"
    spec = ToolSpec(name="faulty", description="", parameters={"type": "object"})

    async def call(self, arguments: Mapping[str, Any], context: ToolContext, /) -> ToolResult:
        """Give a good result, or what ``result`` is."""
        await trio.lowlevel.checkpoint()
        return ToolResult("x")


class Deaf(Faulty):
    """Hears no cancellation for a while."""

    async def call(self, arguments: Mapping[str, Any], context: ToolContext, /) -> ToolResult:
        if arguments:
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
        return ToolResult("x")


def faulty(**changes: Any) -> Any:
    thing = Faulty()
    for name, value in changes.items():
        setattr(thing, name, value)
    return thing


async def test_a_function_passes() -> None:
    """SES-13: one of ours."""
    await check_tool(
        wait, good_arguments={}, bad_arguments=[{"seconds": "x"}, {"y": 1}], slow_arguments={"seconds": 600}
    )


async def test_the_file_tools_pass(tmp_path: Path) -> None:
    """Each of them."""
    read, write, edit, find, search = file_tools(tmp_path)
    await check_tool(
        write, good_arguments={"path": "a", "content": "x"}, bad_arguments=[{"path": "../a", "content": ""}]
    )
    await check_tool(read, good_arguments={"path": "a"}, bad_arguments=[{"path": "b"}])
    await check_tool(find, good_arguments={}, bad_arguments=[{"pattern": "/"}])
    await check_tool(search, good_arguments={"text": "x"}, bad_arguments=[{"text": ""}])
    with pytest.raises(AssertionError, match="good result"):
        await check_tool(edit, good_arguments={"path": "a", "old": "x", "new": "y"})  # it is done once only


@pytest.mark.slow
async def test_the_shell_tool_passes(census: Census, tmp_path: Path) -> None:
    """SES-8: also when it leaves something running."""
    tool = ShellTool(tmp_path / "{session}", env=census.env)
    await check_tool(
        tool,
        good_arguments={"command": "sleep $LABEL & echo x"},
        bad_arguments=[{"command": "false"}, {"command": ""}],
        slow_arguments={"command": "sleep $LABEL & sleep $LABEL"},
    )


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (faulty(spec=ToolSpec(name="a b", description="", parameters={"type": "object"})), "1 to 64"),
        (faulty(spec=ToolSpec(name="a", description="", parameters={})), "JSON Schema of an object"),
        (faulty(timeout=0), "above 0"),
        (faulty(kind="delete"), "SES-18"),
        (faulty(call=lambda arguments, context: ToolResult("x")), "must be async"),
        (faulty(), "error result"),
        (Deaf(), "had not returned"),
    ],
)
async def test_each_fault_is_found(thing: Any, words: str) -> None:
    """The sentence names it."""
    bad = [] if isinstance(thing, Deaf) else [{"x": 1}]
    with pytest.raises(AssertionError) as caught:
        await check_tool(thing, good_arguments={}, bad_arguments=bad, slow_arguments={"slow": 1}, stops_within=0.1)
    assert words in str(caught.value)

"""Input schemas of MCP tools that would cost every request of a session, and tools of two sources with one name."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest
import trio

from concorde_trio import McpServer, MemoryStore, SessionHarness
from concorde_trio.errors import UsageError
from concorde_trio.models.scripted import ScriptedModel
from concorde_trio.tools.mcp_schema import schema_fault
from tests.field.stage import FieldTool


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({}, None),
        ({"type": "object", "properties": {"a": {"type": "string"}, "b": True}, "required": ["a"], "$defs": {}}, None),
        ({"type": "array"}, "not 'object'"),
        ({"type": ["object", "null"]}, "not 'object'"),
        ({"properties": []}, "no object"),
        ({"properties": {"a": "string"}}, "no schema"),
        ({"required": "a"}, "required"),
        ({"required": [1]}, "required"),
        ({"description": "\ud800"}, "cannot be sent"),
        ({"default": float("nan")}, "cannot be sent"),
        ({"description": "x" * 1_100_000}, "cannot be sent"),
    ],
)
def test_a_schema_that_providers_refuse_is_seen(schema: dict[str, Any], words: str | None) -> None:
    """SES-11: a provider that finds a fault in it refuses the whole request."""
    fault = schema_fault(schema)
    assert fault is None if words is None else words in (fault or "")


class Source:
    """A source of tools."""

    def __init__(self, told: str, *names: str) -> None:
        self._told = told
        self._tools = [FieldTool(name) for name in names]

    def __repr__(self) -> str:
        return self._told

    async def run(self, *, task_status: Any, **more: Any) -> None:
        task_status.started()
        await trio.sleep_forever()

    def tools(self) -> Sequence[Any]:
        return self._tools


def test_of_two_tools_with_one_name_the_first_stays_and_the_log_says_whose_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SES-13: a name means one tool, the same at every request; the session's own go before those of any source."""
    own, one, two = FieldTool("mine"), Source("<one>", "mine", "same", "a"), Source("<two>", "same", "b")
    harness = SessionHarness(store=MemoryStore(), model=ScriptedModel([]), tools=[one, own, two])
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            found = harness.tools()
    assert found == {"mine": own, "same": one.tools()[1], "a": one.tools()[2], "b": two.tools()[1]}
    assert [each.getMessage() for each in caplog.records] == [
        "the tool 'mine' of <one> is left out: this session has one of that name",
        "the tool 'same' of <two> is left out: <one> has one of that name",
    ]


def test_two_servers_with_one_name_are_refused_and_both_are_named() -> None:
    """SES-13: without their secrets."""
    servers = [McpServer.http(f"https://{host}.example/mcp?key=hidden", name="notes") for host in ("one", "two")]
    with pytest.raises(UsageError, match="'notes': .*one.example.* and .*two.example") as refused:
        SessionHarness(store=MemoryStore(), model=ScriptedModel([]), tools=servers)
    assert "hidden" not in str(refused.value)

"""A session that has the tools of MCP servers."""

from __future__ import annotations

import importlib.abc
import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import trio

from concorde_trio import McpServer, ScriptedModel, SessionHarness, SqliteStore
from concorde_trio._sansio.model_events import CallStarted, ReplyEnd, StopReason, TextDelta
from concorde_trio.messages import CallOutcome, Role
from concorde_trio.models.scripted import Script
from tests.processes.census import Census
from tests.tools.mcp_stage import unruly

pytestmark = pytest.mark.slow


def calls(*made: tuple[str, dict[str, Any]]) -> Script:
    """A reply that makes these calls."""
    started = [
        (0.0, CallStarted(index, f"c{index}", f"un__{name}", json.dumps(given)))
        for index, (name, given) in enumerate(made)
    ]
    return [*started, (0.0, ReplyEnd(StopReason.CALLS))]


SAID: Script = [(0.0, TextDelta("done")), (0.0, ReplyEnd())]


async def test_a_turn_goes_on_whatever_its_servers_do(census: Census, tmp_path: Path) -> None:
    """SES-9: an answer with NUL in it, a failure, a death and a call to a dead server are each one result, and the turn
    ends well. A server that is none keeps no session from opening."""
    model = ScriptedModel(
        [
            calls(("echo", {"text": "a\u0000b"}), ("refuse", {"text": "no"}), ("die", {"text": "out of cheese"})),
            calls(("echo", {"text": "there?"})),
            SAID,
        ]
    )
    missing = McpServer.stdio(["no-such-program-anywhere"], name="missing", env=census.env)
    harness = SessionHarness(
        store=SqliteStore(tmp_path / "sessions.db"),
        model=model,
        tools=[missing, unruly(census)],
        outputs=tmp_path / "out",
    )
    with trio.fail_after(100):
        async with harness.open():
            ended = await harness.turn("ann", "go")
            messages = await harness.store.messages("ann")
    assert (ended.outcome, ended.error) == ("ok", None)
    results = [message for message in messages if message.role is Role.TOOL]
    assert [message.outcome for message in results] == [
        CallOutcome.OK,
        CallOutcome.ERROR,
        CallOutcome.ERROR,
        CallOutcome.ERROR,
    ]
    assert "out of cheese" in results[2].text
    assert "cannot be reached" in results[3].text
    assert {tool.name.split("__")[0] for tool in model.requests[0].tools} == {"un"}


class _Watch(importlib.abc.MetaPathFinder):
    """Finds nothing, and notes in which thread one module was looked for."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.threads: list[threading.Thread] = []

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Note it."""
        if fullname == self.module:
            self.threads.append(threading.current_thread())


async def test_the_mcp_library_is_loaded_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, census: Census, tmp_path: Path
) -> None:
    """F-28: loading it takes a second or more, in which no session would go on and no limit would be kept."""
    watch = _Watch("concorde_trio.tools.mcp_connection")
    monkeypatch.delitem(sys.modules, watch.module, raising=False)
    monkeypatch.setattr(sys, "meta_path", [watch, *sys.meta_path])
    harness = SessionHarness(store=SqliteStore(tmp_path / "s.db"), model=ScriptedModel([SAID]), tools=[unruly(census)])
    async with harness.open():
        assert (await harness.turn("ann", "hello")).text == "done"
    assert watch.threads
    assert threading.current_thread() not in watch.threads

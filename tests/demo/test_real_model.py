"""The demo with a model behind an address: whatever it answers, the demo ends and says what could not be checked."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from concorde_trio._sansio.model_events import CallStarted, ModelEvent, ReplyEnd, StopReason, TextDelta
from concorde_trio.testing.model_dialects import OpenAIDialect
from concorde_trio.testing.model_server import (
    HeardRequest,
    ModelServer,
    ServerAnswer,
    event_stream,
    open_model_server,
    whole,
)
from tests.demo.test_demo import environment, processes

pytestmark = pytest.mark.slow


PROGRAM = [sys.executable, "-m", "concorde_trio", "demo"]
IMPATIENT = """
import sys
from concorde_trio.demo import play
from concorde_trio.__main__ import main
play.REAL_TIME_LIMIT = 6.0
sys.argv[1:1] = ["demo"]
sys.exit(main())
"""


async def demo(
    server: ModelServer, folder: Path, *arguments: str, program: list[str] | None = None
) -> tuple[int, str, str]:
    """Exit status, output and errors."""
    command = [*(program or PROGRAM), "--model", "nonsense", "--base-url", f"{server.url}/v1"]
    done = await trio.run_process(
        [*command, *arguments], env=environment(folder), capture_stdout=True, capture_stderr=True, check=False
    )
    assert processes(folder) == []
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def says(*events: ModelEvent) -> ServerAnswer:
    return ServerAnswer(pieces=event_stream(OpenAIDialect().stream(events)))


def nonsense(request: HeardRequest) -> ServerAnswer:
    """A tool that is not there, a command that is none, the budget for somebody else; then some words."""
    messages: list[dict[str, Any]] = json.loads(request.body)["messages"]
    results = 0
    for message in reversed(messages):
        if message["role"] == "user":
            break
        results += message["role"] == "tool"
    calls = [
        CallStarted(0, f"a{len(messages)}", "teleport", "{}"),
        CallStarted(0, f"b{len(messages)}", "shell", '{"command": "errand 4 made-up-tag-of-mine spend 5 tea; errand"}'),
        CallStarted(0, f"c{len(messages)}", "shell", '{"command": "errand 99 - spend 1 x"}'),
    ]
    if results < len(calls):
        return says(calls[results], ReplyEnd(StopReason.CALLS))
    return says(TextDelta("Sure! I did it all."), ReplyEnd())


async def test_a_model_that_does_nonsense_breaks_nothing(tmp_path: Path) -> None:
    """TAG-3, LCK-2: no fault of ours; what it did otherwise is listed, and nothing is called right."""
    async with open_model_server() as server:
        server.answers(nonsense)
        status, out, err = await demo(server, tmp_path, "--json", "--svg", str(tmp_path / "timeline.svg"))
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert (found["right"], found["model"]) == (True, "nonsense")
    checks = {check["name"]: check for check in found["checks"]}
    assert [check["faults"] for check in checks.values()] == [[]] * 11
    assert checks["every errand was done once, as it was asked for"]["not_checked"]
    assert checks["every tagged request was attributed to its run"]["not_checked"]
    assert checks["no other request was attributed to anybody"]["not_checked"] == []
    assert found["budget"]["left"] == found["budget"]["at_first"]


async def test_a_model_that_refuses_everything_ends_it_with_its_words(tmp_path: Path) -> None:
    """SES-11: a wrong key is told as the provider tells it, and no errand done is no good end."""
    async with open_model_server() as server:
        server.answers(ServerAnswer(pieces=(whole(401, OpenAIDialect().error_body(401, "no such key")),)))
        status, out, _ = await demo(server, tmp_path)
    assert status == 1
    assert "no such key" in out
    assert "No errand was done; see above what nonsense answered." in " ".join(out.split())


async def test_a_model_that_never_answers_is_not_waited_for(tmp_path: Path) -> None:
    """RUN-6: what it has not done is cancelled after a while, and the report is made all the same."""
    async with open_model_server() as server:
        server.answers(ServerAnswer(then="stall"))
        program = [sys.executable, "-c", IMPATIENT]
        status, out, _ = await demo(server, tmp_path, "--json", program=program)
    assert status == 1
    found = json.loads(out)
    assert {run["state"] for message in found["messages"] for run in message["runs"]} <= {"cancelled", "failed"}
    assert [check["faults"] for check in found["checks"]] == [[]] * 11
    assert all(check["not_checked"] for check in found["checks"] if check["name"].startswith("every"))

"""STP-3, STP-4: what ignores its cancellation holds a served program up for a bounded time, and the next one goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.running import Command, script

pytestmark = pytest.mark.slow

PROGRAM = """
import trio
from concorde_trio import CallStarted, Gateway, InProcessRuntime, ReplyEnd, Role, ScriptedModel, StopReason, TextDelta, tool


@tool
async def stubborn() -> str:
    "Go on for ever."
    print("it goes on", flush=True)
    while True:
        try:
            await trio.sleep(0.05)
        except trio.Cancelled:
            await trio.lowlevel.cancel_shielded_checkpoint()


def reply(request):
    if request.messages[-1].text == "go":
        return [(0, CallStarted(0, "a", "stubborn", "{}")), (0, ReplyEnd(StopReason.CALLS))]
    return [(0, TextDelta("here")), (0, ReplyEnd())]


runtime = InProcessRuntime(model=ScriptedModel(reply), tools=[stubborn], stop_wait=0.3)
gateway = Gateway(store="sqlite:///concorde.db", runtime=runtime, stop_grace=1.0)
"""


def test_a_tool_that_ignores_its_cancellation_holds_ctrl_c_up_for_a_bounded_time(here: Path, command: Command) -> None:
    """STP-3: its run is recorded, its call has a result that says so, the program ends with status 1 and a line in the log."""
    (here / "house.py").write_text(PROGRAM)
    log = here / "log.txt"
    with log.open("wb") as stderr:
        serving = subprocess.Popen(
            [script(), "serve", "house:gateway", "--json"], cwd=here, stdout=subprocess.PIPE, stderr=stderr
        )
    assert serving.stdout is not None
    try:
        assert json.loads(serving.stdout.readline())["pid"] == serving.pid
        sent = command("send", "ann", "go", "--json")
        assert sent.status == 0
        assert serving.stdout.readline() == b"it goes on\n"
        for asked in (1, 2, 3):
            serving.send_signal(signal.SIGINT)
            while log.read_text().count("stopping:") < asked:
                time.sleep(0.02)
        assert serving.wait(timeout=60) == 1
    finally:
        serving.kill()
        serving.wait()
        serving.stdout.close()
    said = log.read_text()
    assert "the cancelling stop is not over after 10 s" in said and "Traceback" not in said
    assert "tool stubborn (call a) of session ann goes on though it was cancelled" in said
    shown = command("sessions", "ann", "--json")
    assert shown.status == 0, shown
    run = command("runs", "--json").json
    assert [each["state"] for each in run["runs"]] == ["cancelled"], run

"""A gateway with sessions in a process of its own: its model does what it is told in the first word."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.running import script

PROGRAM = """
import json
from concorde_trio import CallStarted, Gateway, InProcessRuntime, ReplyEnd, Role, ScriptedModel, StopReason, TextDelta
from concorde_trio import ToolResult, ToolSpec
from concorde_trio.errors import ModelError


class Work:
    spec = ToolSpec(name="work", description="Do it.", parameters={"type": "object"})
    timeout, concurrent, kind = 60.0, False, "execute"

    async def call(self, arguments, context):
        return ToolResult("worked on " + arguments["what"])


def reply(request):
    last = request.messages[-1]
    if last.role is Role.TOOL:
        return [(0, TextDelta(f"It {last.outcome}: {last.text}")), (0, ReplyEnd())]
    word, _, rest = last.text.partition(" ")
    if word in ("work", "ask"):
        call = CallStarted(0, "call-" + str(last.seq), "work", json.dumps({"what": last.text}))
        return [(0, TextDelta("Let me see.")), (0, call), (0, ReplyEnd(StopReason.CALLS))]
    if word == "stall":
        return [(0, TextDelta("I begin "))]
    if word == "fail":
        return [(0, TextDelta("half")), (0, ModelError("the key is wrong", status=401))]
    return [(0, TextDelta("You said: ")), (0, TextDelta(last.text)), (0, ReplyEnd())]


def policy(call, kind):
    return "ask" if "ask" in call.arguments else "allow"


gateway = Gateway(
    store="sqlite:///concorde.db", runtime=InProcessRuntime(model=ScriptedModel(reply), tools=[Work()], policy=policy)
)
"""


@contextmanager
def serving_sessions(here: Path) -> Iterator[subprocess.Popen[bytes]]:
    """``concorde.db`` in this folder is served."""
    (here / "house.py").write_text(PROGRAM)
    with (here / "log.txt").open("ab") as log:
        process = subprocess.Popen(
            [script(), "serve", "house:gateway", "--json", "--drain-for", "0.1s", "--park-for", "0.1s"],
            cwd=here,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, (here / "log.txt").read_text()
    assert json.loads(line)["url"]
    try:
        yield process
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=20) == 0
            assert "Traceback" not in (here / "log.txt").read_text()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()

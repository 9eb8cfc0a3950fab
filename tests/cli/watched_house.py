"""A gateway in a process of its own that can be killed and started anew: its runs last as long as their model does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

from tests.cli.running import script

PROGRAM = """
from concorde_trio import Gateway, InProcessRuntime, Prompt, ReplyEnd, ScriptedModel, TextDelta


def reply(request):
    text = request.messages[-1].text
    if text == "stall":
        return [(0, TextDelta("I begin "))]
    return [(0, TextDelta("You said: " + text)), (0, ReplyEnd())]


gateway = Gateway(store="sqlite:///concorde.db", runtime=InProcessRuntime(model=ScriptedModel(reply)))


@gateway.handler("message")
async def on_message(signal):
    return [Prompt(session=session, text=text, resources=resources) for session, text, resources in signal.payload]
"""


class House:
    """``concorde.db`` in a folder, which is served while ``process`` lives."""

    def __init__(self, here: Path) -> None:
        (here / "house.py").write_text(PROGRAM)
        self._here = here
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Serve it, and wait until it is."""
        with (self._here / "log.txt").open("ab") as log:
            self.process = subprocess.Popen(
                [script(), "serve", "house:gateway", "--json", "--drain-for", "0.1s", "--park-for", "0.1s"],
                cwd=self._here,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line and json.loads(line)["url"], (self._here / "log.txt").read_text()

    def stop(self) -> None:
        """As a service manager does."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Power cut."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        if process.poll() is None:
            os.killpg(process.pid, number) if number == signal.SIGKILL else process.send_signal(number)
        assert process.stdout is not None
        try:
            process.wait(timeout=20)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

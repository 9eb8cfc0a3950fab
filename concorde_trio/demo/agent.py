"""The demo's agent: a program that does what the steps of its prompt say. It runs by itself: ``python -I agent.py FILE``.

The law: it knows its errand and its run tag from the prompt alone, and writes all that it does into the journal, which
is what the household is checked by. It imports nothing of this package. FILE is where it keeps its conversation.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PAUSE = 0.4
"""Seconds between reading the budget and writing it: long enough for anybody who may to come between."""
STUCK = 120.0
"""Seconds after which even a stuck agent that nobody stops goes away."""


class GaveUp(Exception):
    """The agent cannot do what it was asked."""


class Stopped(BaseException):
    """Somebody sent SIGTERM."""


class Agent:
    """One run: the prompt, what came of it, and the ways to the files, the journal and the agent server."""

    def __init__(self, prompt: str, conversation: Path) -> None:
        self.prompt = prompt
        self.conversation = conversation
        self.errand = _number(_found(r"^This is errand (\d+)\b", prompt))
        self.place = _found(r"^Work in the ([a-z]+)\b", prompt)
        self.tag = _found(r"^Your run tag is (\S+)", prompt)
        self.said: list[str] = []

    def work(self) -> None:
        """Ask who we are, then take the steps, one by one."""
        self.journal("start")
        self.think(40 + len(self.prompt) // 4, 10)
        if self.tag is not None:
            status, run = self.ask("GET", "/runs/current")
            self.journal("told", told=run["context"]["errand"] if status == 200 else None)
        steps = [line[2:].strip() for line in self.prompt.splitlines() if line.startswith("- ")]
        for step in steps:
            self.take(step)
        if not steps:
            self.said.append(f"I know no more than these steps: {', '.join(SHOWN)}.")

    def take(self, step: str) -> None:
        """One step. GaveUp if it means nothing to us."""
        for pattern, action in STEPS:
            match = re.fullmatch(pattern, step)
            if match is not None:
                self.think(20 + len(step), 8)
                action(self, *match.groups())
                return
        raise GaveUp(f"I don't know how to {step!r}; I can: {', '.join(SHOWN)}")

    def think(self, tokens_in: int, tokens_out: int) -> None:
        """Say what a model would have used for this."""
        tell(type="usage", input=tokens_in, output=tokens_out)

    def journal(self, what: str, **more: Any) -> None:
        """Append a line to the journal, in one write."""
        line = {
            "at": time.monotonic_ns(),
            "what": what,
            "errand": self.errand,
            "session": os.environ["DEMO_SESSION"],
            "place": self.place,
            "pid": os.getpid(),
            **more,
        }
        with open(os.environ["DEMO_JOURNAL"], "ab", buffering=0) as journal:
            journal.write(json.dumps(line).encode() + b"\n")

    def ask(self, method: str, path: str, body: Any = None, *, tagged: bool = True) -> tuple[int, Any]:
        """Ask the agent server: status and JSON. Each request says which errand it is from, and bears our tag."""
        server = urlsplit(os.environ["AGENT_SERVER_URL"])
        headers = {"content-type": "application/json", "demo-errand": str(self.errand)}
        if tagged and self.tag is not None:
            headers["concorde-run-tag"] = self.tag
        connection = http.client.HTTPConnection(server.hostname or "", server.port, timeout=10)
        try:
            connection.request(method, path, json.dumps(body).encode() if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise GaveUp(f"the agent server gave no answer: {error}") from None
        finally:
            connection.close()

    def file(self, name: str) -> Path:
        """A file of the workspace; no way leads out of it."""
        if self.place is None:
            raise GaveUp(f"nobody told me where to work, so I don't know where {name} is")
        if not re.fullmatch(r"[a-z][a-z.]*", name):
            raise GaveUp(f"{name!r} is no name for a file")
        return Path(self.place) / name

    # --- steps ----------------------------------------------------------------------------------------------------

    def read(self, name: str) -> None:
        """Read a file aloud."""
        try:
            text = self.file(name).read_text(encoding="utf-8")
        except OSError:
            raise GaveUp(f"there is no {name} in the {self.place}") from None
        self.said.append(f"{name} says: {'; '.join(text.splitlines())}.")

    def write(self, name: str, text: str) -> None:
        """Write a file anew."""
        self.file(name).write_text(f"{text}\n", encoding="utf-8")
        self.said.append(f"I wrote {name}: {text}.")

    def add(self, name: str, text: str) -> None:
        """Add a line to a file, by reading it all and writing it all."""
        file = self.file(name)
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        time.sleep(PAUSE / 2)
        file.write_text("".join(f"{line}\n" for line in [*lines, text]), encoding="utf-8")
        self.said.append(f"{name} has {len(lines) + 1} line{'s' if lines else ''} now, the last: {text}.")

    def remember(self, text: str) -> None:
        """Keep something for later runs of this session."""
        with self.conversation.open("a", encoding="utf-8") as conversation:
            conversation.write(json.dumps({"errand": self.errand, "text": text}) + "\n")
        self.said.append("I will remember that.")

    def recall(self) -> None:
        """Say what earlier runs of this session kept."""
        lines = self.conversation.read_text(encoding="utf-8").splitlines() if self.conversation.exists() else []
        kept = [json.loads(line)["text"] for line in lines]
        self.said.append(f"I remember: {'; '.join(kept)}." if kept else "I remember nothing of this.")

    def look(self, without: str | None) -> None:
        """Look at the budget, without the tag if that is said."""
        _, found = self.ask("GET", "/budget", tagged=without is None)
        self.said.append(f"There are {found['left']} left in the budget.")

    def spend(self, amount: str, thing: str) -> None:
        """Read the budget, and after a while write what is left: right only for who has the budget alone."""
        _, found = self.ask("GET", "/budget")
        left = found["left"] - int(amount)
        if left < 0:
            raise GaveUp(f"{thing} would cost {amount}, and there are only {found['left']} left")
        time.sleep(PAUSE)
        status, answer = self.ask("PUT", "/budget", {"left": left, "spent": int(amount), "thing": thing})
        if status != 200:
            raise GaveUp(f"I was not let near the budget: {answer.get('detail', status)}")
        self.journal("spent", amount=int(amount))
        self.said.append(f"I bought {thing} for {amount}; {left} are left.")

    def busy(self, seconds: str) -> None:
        """Work that takes its time."""
        time.sleep(float(seconds))

    def dream(self, thing: str) -> None:
        """Think, and think again: this is what usage limits are for."""
        for _ in range(100):
            self.think(180, 60)
            time.sleep(0.1)
        self.said.append(f"I have thought about {thing}.")

    def wait(self, thing: str) -> None:
        """Wait for something that does not come, with a child that hears no SIGTERM in a session of its own."""
        until = time.monotonic() + STUCK
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while time.monotonic() < until:
            self.journal("beat")
            time.sleep(0.1)
        os._exit(1)


STEPS: tuple[tuple[str, Callable[..., None]], ...] = (
    (r"read (\S+)", Agent.read),
    (r"write (\S+): (.+)", Agent.write),
    (r"add to (\S+): (.+)", Agent.add),
    (r"remember: (.+)", Agent.remember),
    (r"recall", Agent.recall),
    (r"look at the budget( without the tag)?", Agent.look),
    (r"spend (\d{1,6}) on (.+)", Agent.spend),
    (r"work for (\d{1,2}(?:\.\d)?) s", Agent.busy),
    (r"think about (.+)", Agent.dream),
    (r"wait for (.+)", Agent.wait),
)
SHOWN = (
    "read FILE",
    "write FILE: TEXT",
    "add to FILE: TEXT",
    "remember: TEXT",
    "recall",
    "look at the budget",
    "spend N on THING",
    "work for N s",
)


def tell(**record: Any) -> None:
    """Print one record of our output."""
    print(json.dumps(record), flush=True)


def main() -> int:
    """One run, from stdin to the last record."""
    signal.signal(signal.SIGTERM, _stop)
    agent = Agent(sys.stdin.buffer.read().decode("utf-8", "replace"), Path(sys.argv[1]))
    try:
        agent.work()
    except GaveUp as error:
        agent.journal("finish", how="failed")
        tell(type="failed", error=str(error))
        return 1
    except Stopped:
        agent.journal("finish", how="stopped")
        return 128 + signal.SIGTERM
    agent.journal("finish", how="done")
    tell(type="done", text=" ".join(agent.said))
    return 0


def _stop(number: int, frame: object) -> None:
    raise Stopped


def _found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else None


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


if __name__ == "__main__":
    sys.exit(main())

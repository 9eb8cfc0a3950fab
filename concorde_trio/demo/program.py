"""The household's own command, which its agents run in the shell: ``errand NUMBER TAG look | spend N THING | work SECONDS | wait``.

The law: it knows its errand and its tag from its arguments alone, and writes what it does into the journal, which is what
the household is checked by. It imports nothing of this package. TAG ``-``: say no tag to the agent server.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import sys
import time
from typing import Any
from urllib.parse import urlsplit

PAUSE = 0.4
"""Seconds between reading the budget and writing it: long enough for anybody who may to come between."""
STUCK = 120.0
"""Seconds after which even a stuck program that nobody stops goes away."""
USAGE = "errand NUMBER TAG look | spend AMOUNT THING | work SECONDS | wait"


class GaveUp(Exception):
    """It cannot be done."""


class Stopped(BaseException):
    """Somebody sent SIGTERM."""


class Errand:
    """One call of the command: ways to the journal and to the agent server."""

    def __init__(self, number: int, tag: str | None) -> None:
        self.number = number
        self.tag = tag

    def journal(self, what: str, **more: Any) -> None:
        """Append a line to the journal, in one write."""
        line = {"at": time.monotonic_ns(), "what": what, "errand": self.number, "pid": os.getpid(), **more}
        with open(os.environ["DEMO_JOURNAL"], "ab", buffering=0) as journal:
            journal.write(json.dumps(line).encode() + b"\n")

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Ask the agent server: status and JSON. Each request says which errand it is from, and bears our tag."""
        server = urlsplit(os.environ["AGENT_SERVER_URL"])
        headers = {"content-type": "application/json", "demo-errand": str(self.number)}
        if self.tag is not None:
            headers["concorde-run-tag"] = self.tag
        connection = http.client.HTTPConnection(server.hostname or "", server.port, timeout=10)
        try:
            connection.request(method, path, json.dumps(body).encode() if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise GaveUp(f"The agent server gave no answer: {error}") from None
        finally:
            connection.close()

    def do(self, words: list[str]) -> str:
        """Ask who we are, do what is said, and tell what came of it."""
        match words:
            case ["look"]:
                return self.look()
            case ["spend", amount, *thing] if thing and amount.isdecimal() and len(amount) < 7:
                return self.spend(int(amount), " ".join(thing))
            case ["work", seconds] if seconds.replace(".", "", 1).isdecimal():
                time.sleep(min(float(seconds), STUCK))
                return "I have done my work."
            case ["wait", *_]:
                self.wait()
        raise GaveUp(f"I don't understand {' '.join(words)!r}; it is: {USAGE}")

    def look(self) -> str:
        """Look at the budget."""
        _, found = self.ask("GET", "/budget")
        return f"There are {found['left']} left in the budget."

    def spend(self, amount: int, thing: str) -> str:
        """Read the budget, and after a while write what is left: right only for who has the budget alone."""
        _, found = self.ask("GET", "/budget")
        left = found["left"] - amount
        if left < 0:
            raise GaveUp(f"{thing} would cost {amount}, and there are only {found['left']} left.")
        time.sleep(PAUSE)
        status, answer = self.ask("PUT", "/budget", {"left": left, "spent": amount, "thing": thing})
        if status != 200:
            raise GaveUp(f"I was not let near the budget: {answer.get('detail', status)}")
        self.journal("spent", amount=amount)
        return f"I bought {thing} for {amount}; {left} are left."

    def wait(self) -> None:
        """Wait for something that does not come, with a child that hears no SIGTERM in a session of its own."""
        until = time.monotonic() + STUCK
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while time.monotonic() < until:
            self.journal("beat")
            time.sleep(0.1)
        os._exit(1)


def main() -> int:
    """One call."""
    signal.signal(signal.SIGTERM, _stop)
    number, tag, *words = [*sys.argv[1:3], "", ""][:2] + sys.argv[3:]
    if not number.isdecimal() or len(number) > 6 or not tag:
        print(USAGE)
        return 2
    errand = Errand(int(number), None if tag == "-" else tag)
    how, said = "stopped", ""
    try:
        errand.journal("began")
        if errand.tag is not None:
            status, run = errand.ask("GET", "/runs/current")
            context = run["context"] if status == 200 else None
            errand.journal("told", told=context["errand"] if isinstance(context, dict) else None)
        said = errand.do(words)
        how = "done"
    except GaveUp as error:
        how, said = "failed", str(error)
    except Stopped:
        pass
    errand.journal("ended", how=how)
    print(said, flush=True)
    return {"done": 0, "failed": 1}.get(how, 128 + signal.SIGTERM)


def _stop(number: int, frame: object) -> None:
    raise Stopped


if __name__ == "__main__":
    sys.exit(main())

"""A person talks to a session at a terminal: a pty, a worker in a process of its own, and keys as they are typed."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.running import Command, script
from tests.cli.session_household import serving_sessions

pytestmark = pytest.mark.slow

STYLE = re.compile(r"\x1b\[[0-9;]*m")
CTRL_C, CTRL_D = b"\x03", b"\x04"


class Terminal:
    """The program on a terminal of its own, as its person sees it and types."""

    def __init__(self, here: Path, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            ["setsid", "--ctty", script(), *arguments],
            cwd=here,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"},
        )
        os.close(theirs)
        self.screen = ""
        self._read_up_to = 0

    def until(self, text: str) -> str:
        """Read until this text comes, after all that was waited for before; what came before it."""
        deadline = time.monotonic() + 20
        while (at := self.screen.find(text, self._read_up_to)) < 0:
            assert self._more(deadline), f"{text!r} did not come: {self.screen!r}"
        before, self._read_up_to = self.screen[self._read_up_to : at], at + len(text)
        return before

    def type(self, keys: str | bytes) -> None:
        """Type this."""
        os.write(self._ours, keys if isinstance(keys, bytes) else keys.encode())

    def end(self) -> int:
        """The exit status, once all that came is read."""
        deadline = time.monotonic() + 20
        while self._more(deadline):
            pass
        return self.process.wait(timeout=20)

    def until_each(self, *texts: str) -> None:
        """Read until each of these has come, in any order."""
        at = self._read_up_to
        for text in texts:
            self._read_up_to = at
            self.until(text)

    def _more(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))
        try:
            piece = os.read(self._ours, 65536) if ready else b""
        except OSError:
            piece = b""
        self.screen += STYLE.sub("", piece.decode(errors="replace")).replace("\r\n", "\n")
        return bool(piece)

    def close(self) -> None:
        """Nobody looks any more."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@contextmanager
def chatting(here: Path, *arguments: str) -> Iterator[Terminal]:
    """A talk with ann."""
    terminal = Terminal(here, "chat", "ann", *arguments)
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.fixture
def served(here: Path) -> Iterator[Path]:
    """A gateway with sessions on ``concorde.db`` in the current folder."""
    with serving_sessions(here):
        yield here


def test_a_person_asks_sees_a_call_and_its_result_and_leaves(served: Path, command: Command) -> None:
    """SES-12a: text as it comes, calls and results in short; Ctrl-D leaves with status 0, and the session stays."""
    with chatting(served, "--sender", "Ann") as talk:
        talk.until("ann: 0 messages, waits for input")
        talk.type("hello\n")
        talk.until("You said: hello\n")
        talk.type("work hard\n")
        talk.until("Let me see.\n")
        talk.until('> work {"what": "work hard"}\n')
        talk.until("< work ok: worked on work hard\n")
        talk.until("It ok: worked on work hard\n")
        talk.type(CTRL_D)
        talk.until("left; `concorde-trio chat ann` comes back")
        assert talk.end() == 0
        assert not any(ord(character) < 32 for character in talk.screen.replace("\n", "").replace("^D\x08\x08", ""))
    said = command("sessions", "ann", "--json").json["last_messages"]
    assert said[0]["inputs"][0]["sender"] == "Ann" and len(said) == 6


def test_what_is_typed_while_it_works_is_queued_and_shown_to_be(served: Path) -> None:
    """SES-10, SES-12: queued behind what holds it; Ctrl-C ends the turn, and what was queued runs."""
    with chatting(served) as talk:
        talk.until("waits for input")
        talk.type("stall\n")
        talk.until("I begin ")
        talk.type("hello\n")
        talk.until("queued behind: llm")
        talk.type(CTRL_C)
        # An answer and an event come by two connections.
        said = ("! interrupted: a person interrupted", "You said: hello\n", "interrupted; Ctrl-C again leaves")
        talk.until_each(*said)
        talk.type(CTRL_C)
        assert talk.end() == 130


def test_a_question_is_answered_with_y_or_n(served: Path, command: Command) -> None:
    """SES-18: with the call's arguments and the time left; anything else that is typed is said to the session."""
    with chatting(served) as talk:
        talk.until("waits for input")
        for answer, outcome in (("y", "allowed"), ("no", "denied")):
            talk.type(f"ask {answer}\n")
            talk.until("? allow work (execute, call call-")
            assert f'{{"what": "ask {answer}"}}' in talk.until("left, then it is denied [y/n]")
            talk.type(f"{answer}\n")
            talk.until(f"{outcome}\n")
            talk.until("< work ")
            talk.until("It ")
        talk.type(CTRL_D)
        assert talk.end() == 0
    results = [each for each in command("sessions", "ann", "--json").json["last_messages"] if each["role"] == "tool"]
    assert [each["outcome"] for each in results] == ["ok", "denied"]


def test_two_people_in_one_session_see_what_the_other_says(served: Path, command: Command) -> None:
    """SES-0: one session, whoever talks to it."""
    with chatting(served) as talk:
        talk.until("waits for input")
        assert command("send", "ann", "hello \x1b[31m", "--sender", "Bob").status == 0
        talk.until("Bob says: hello \\x1b[31m\n")
        talk.until("You said: hello \\x1b[31m")


def test_the_end_of_the_worker_ends_the_talk_and_says_so(here: Path) -> None:
    """STP-1: no traceback, a sentence, and status 1."""
    with serving_sessions(here) as worker, chatting(here) as talk:
        talk.until("waits for input")
        worker.terminate()
        talk.until("went away")
        assert talk.end() == 1
        assert "Traceback" not in talk.screen
        assert worker.wait(timeout=20) == 0

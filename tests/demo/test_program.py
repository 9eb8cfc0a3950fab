"""The household's own command by itself: arguments, a sentence on stdout, an exit status, and a journal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from concorde_trio.demo import program
from concorde_trio.demo.evidence import Line, children, processes_left, read_journal

pytestmark = pytest.mark.slow


@attrs.frozen
class House:
    """A folder with a journal, and no server."""

    folder: Path

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """The command at work."""
        return subprocess.Popen(
            [sys.executable, "-I", "-S", program.__file__, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env={"DEMO_JOURNAL": str(self.folder / "journal"), "AGENT_SERVER_URL": "http://127.0.0.1:9"},
        )

    def run(self, *words: str) -> tuple[int, str]:
        """Its exit status, and what it said."""
        out, err = (started := self.start(*words)).communicate(timeout=30)
        assert err == b""
        return started.returncode, out.decode().strip()

    def journal(self) -> list[Line]:
        """What was written down."""
        file = self.folder / "journal"
        return read_journal(file) if file.exists() else []


@pytest.fixture
def house(tmp_path: Path) -> House:
    """Nobody at home."""
    return House(tmp_path)


def until(true: Callable[[], object]) -> None:
    """Look again and again; fail after 20 seconds."""
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_command_says_what_it_did_and_writes_it_down(house: House) -> None:
    """Demo: without a tag it asks nobody who it is."""
    assert house.run("7", "-", "work", "0.01") == (0, "I have done my work.")
    assert [(line.what, line.errand, line.how) for line in house.journal()] == [
        ("began", 7, None),
        ("ended", 7, "done"),
    ]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("7", "-", "fly"), "I don't understand 'fly'; it is: errand NUMBER TAG look"),
        (("7", "-", "spend", "much", "tea"), "I don't understand 'spend much tea'"),
        (("7", "-", "look"), "The agent server gave no answer: "),
        (("7", "tag", "work", "0"), "The agent server gave no answer: "),
    ],
)
def test_a_command_that_cannot_says_why_and_fails(house: House, words: tuple[str, ...], reason: str) -> None:
    """Demo: a sentence, an exit status, and a line in the journal."""
    status, said = house.run(*words)
    assert (status, said[: len(reason)]) == (1, reason)
    assert house.journal()[-1].how == "failed"


@pytest.mark.parametrize("words", [(), ("7",), ("seven", "-", "look"), ("7", "", "look")])
def test_words_that_are_no_command_leave_no_line(house: House, words: tuple[str, ...]) -> None:
    """Demo: a model may type anything."""
    assert house.run(*words) == (2, program.USAGE)
    assert house.journal() == []


def test_a_command_that_is_stopped_writes_that_down(house: House) -> None:
    """Demo: SIGTERM in the middle of its work."""
    started = house.start("7", "-", "work", "60")
    until(house.journal)
    started.send_signal(signal.SIGTERM)
    started.communicate(timeout=20)
    assert started.returncode == 128 + signal.SIGTERM
    assert house.journal()[-1].how == "stopped"


async def test_a_stuck_command_leaves_a_deaf_child_that_is_found(house: House) -> None:
    """Demo: so that "no process is left" means something, for nobody else would end that child."""
    others = children()  # such as a database that other tests in this process have started
    started = house.start("7", "-", "wait")
    until(lambda: len({line.pid for line in house.journal()}) == 2)
    started.send_signal(signal.SIGTERM)
    started.wait(timeout=20)
    (child,) = {line.pid for line in house.journal()} - {started.pid}
    try:
        beats = len(house.journal())
        until(lambda: len(house.journal()) > beats + 1)
        assert await processes_left(house.folder / "journal", others) == [f"process {child}, started for an errand"]
    finally:
        os.kill(child, signal.SIGKILL)
        started.communicate(timeout=20)
    assert await processes_left(house.folder / "journal", others) == []

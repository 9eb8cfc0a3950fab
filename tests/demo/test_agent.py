"""The demo's agent by itself: a program, a prompt on stdin, records on stdout, and a journal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from concorde_trio.demo import agent
from concorde_trio.demo.evidence import Line, processes_left, read_journal

pytestmark = pytest.mark.slow


@attrs.frozen
class House:
    """A folder with a kitchen, in which agents without a server are at work."""

    folder: Path

    def start(self, *steps: str, place: str = "kitchen") -> subprocess.Popen[bytes]:
        """An agent at work on errand 7."""
        program = subprocess.Popen(
            [sys.executable, "-I", agent.__file__, str(self.folder / "conversation")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env={"DEMO_SESSION": "ann", "DEMO_JOURNAL": str(self.folder / "journal")},
        )
        lines = ["Dear helper,", "", "This is errand 7, for ann.", f"Work in the {place}."]
        assert program.stdin is not None
        program.stdin.write("\n".join([*lines, "", *(f"- {step}" for step in steps)]).encode())
        program.stdin.close()
        program.stdin = None
        return program

    def run(self, *steps: str, place: str = "kitchen") -> tuple[int, dict[str, Any]]:
        """Its exit status, and its last record."""
        out, err = (program := self.start(*steps, place=place)).communicate(timeout=30)
        assert err == b""
        return program.returncode, json.loads(out.splitlines()[-1])

    def journal(self) -> list[Line]:
        """What was written down."""
        file = self.folder / "journal"
        return read_journal(file) if file.exists() else []


@pytest.fixture
def house(tmp_path: Path) -> House:
    """An empty kitchen."""
    (tmp_path / "kitchen").mkdir()
    return House(tmp_path)


def until(true: Callable[[], object]) -> None:
    """Look again and again; fail after 20 seconds."""
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_agent_takes_its_steps_in_the_place_it_was_told(house: House) -> None:
    """Demo: files are read, written and added to, and the answer says so."""
    status, last = house.run("write list.txt: tea", "add to list.txt: milk", "read list.txt")
    assert (status, last["type"]) == (0, "done")
    assert last["text"] == "I wrote list.txt: tea. list.txt has 2 lines now, the last: milk. list.txt says: tea; milk."
    assert (house.folder / "kitchen" / "list.txt").read_text() == "tea\nmilk\n"
    assert [(line.what, line.errand, line.session, line.place, line.how) for line in house.journal()] == [
        ("start", 7, "ann", "kitchen", None),
        ("finish", 7, "ann", "kitchen", "done"),
    ]


def test_an_agent_remembers_in_its_conversation(house: House) -> None:
    """Demo: what one run of a session keeps, a later one can say."""
    assert house.run("recall")[1]["text"] == "I remember nothing of this."
    house.run("remember: two sugars")
    assert house.run("recall")[1]["text"] == "I remember: two sugars."


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("read key.txt", "there is no key.txt in the kitchen"),
        ("read ../journal", "'../journal' is no name for a file"),
        ("fly", "I don't know how to 'fly'; I can: read FILE, "),
    ],
)
def test_an_agent_that_cannot_says_why_and_fails(house: House, step: str, reason: str) -> None:
    """Demo: an error record, an exit status, and a line in the journal."""
    status, last = house.run(step, "write never.txt: x")
    assert (status, last["type"]) == (1, "failed")
    assert last["error"].startswith(reason)
    assert house.journal()[-1].how == "failed"
    assert not (house.folder / "kitchen" / "never.txt").exists()


def test_an_agent_without_steps_says_which_it_knows(house: House) -> None:
    """Demo: somebody will try it with plain words."""
    status, last = house.run()
    assert status == 0
    assert "spend N on THING" in last["text"]


def test_an_agent_that_is_stopped_writes_that_down(house: House) -> None:
    """Demo: SIGTERM in the middle of its thoughts; its usage is told, its answer is not."""
    program = house.start("think about a novel")
    until(house.journal)
    program.send_signal(signal.SIGTERM)
    out, _ = program.communicate(timeout=20)
    assert program.returncode == 128 + signal.SIGTERM
    assert {json.loads(line)["type"] for line in out.splitlines()} <= {"usage"}
    assert house.journal()[-1].how == "stopped"


async def test_a_stuck_agent_leaves_a_deaf_child_that_is_found(house: House) -> None:
    """Demo: so that "no process is left" means something, for nobody else would end that child."""
    program = house.start("wait for godot")
    until(lambda: len({line.pid for line in house.journal()}) == 2)
    program.send_signal(signal.SIGTERM)
    program.wait(timeout=20)
    (child,) = {line.pid for line in house.journal()} - {program.pid}
    try:
        beats = len(house.journal())
        until(lambda: len(house.journal()) > beats + 1)
        assert await processes_left(house.folder / "journal", ()) == [f"process {child}, started for an errand"]
    finally:
        os.kill(child, signal.SIGKILL)
        program.communicate(timeout=20)
    assert await processes_left(house.folder / "journal", ()) == []

"""The demo as a person starts it: a command, a terminal or none, Ctrl-C, and nothing left behind."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import urllib.request
from collections.abc import Callable
from fcntl import ioctl
from pathlib import Path
from typing import Self
from xml.etree import ElementTree

import pytest

from concorde_trio.demo.errands import MESSAGES, all_errands
from concorde_trio.demo.evidence import read_journal

pytestmark = pytest.mark.slow

BOUND = 60
"""Seconds for a demo of about twelve; a busy machine gets its time."""
COMMAND = [sys.executable, "-m", "concorde_trio", "demo"]
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def environment(folder: Path) -> dict[str, str]:
    """That of these tests, with a temporary folder that says whose processes are whose."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return {**inherited, "TMPDIR": str(folder), "TERM": "xterm-256color", "LANG": "C.UTF-8"}


def processes(folder: Path) -> list[str]:
    """What still runs of a demo whose temporary folder this is."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.fsencode(folder) in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().decode())
        except OSError:
            continue
    return found


class Terminal:
    """A demo on a terminal of some size; ``screen`` is all that was printed, without what moves the cursor."""

    def __init__(self, folder: Path, *arguments: str, columns: int, rows: int) -> None:
        self._ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        env = {name: value for name, value in environment(folder).items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True
        )
        os.close(theirs)
        self.screen = ""

    def until(self, true: Callable[[str], object]) -> None:
        """Read until the screen is as wanted, or the demo has closed it."""
        deadline = time.monotonic() + BOUND
        while not true(self.screen):
            assert time.monotonic() < deadline, self.screen[-2000:]
            if not select.select([self._ours], [], [], 1.0)[0]:
                continue
            try:
                data = os.read(self._ours, 65536)
            except OSError:
                return
            self.screen += CONTROL.sub("", data.decode("utf-8", "replace")).replace("\r", "")

    def press_ctrl_c(self) -> int:
        """Its exit status after that."""
        self.process.send_signal(signal.SIGINT)
        self.until(lambda screen: False)
        return self.process.wait(timeout=20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


def test_the_books_are_right(tmp_path: Path) -> None:
    """LCK-2, LCK-4, RUN-6, PST-1, TAG-3, REC-6, SES-10: real processes at work, judged by what they wrote down themselves."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    drawing = tmp_path / "timeline.svg"
    done = subprocess.run(
        [*COMMAND, "--json", "--svg", str(drawing)],
        capture_output=True,
        env=environment(temporary),
        timeout=BOUND,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    found = json.loads(done.stdout)
    assert found["right"] is True
    assert [(check["faults"], check["not_checked"]) for check in found["checks"]] == [([], [])] * 11
    runs = {run["errand"]: run for message in found["messages"] for run in message["runs"]}
    assert {number: run["state"] for number, run in runs.items()} == {
        errand.number: errand.ends for errand in all_errands(MESSAGES)
    }
    assert {run["state"] for run in runs.values()} == {"done", "failed", "limited"}
    assert [message["text"] for message in found["messages"]] == [message.text for message in MESSAGES]
    assert found["budget"]["left"] == found["budget"]["at_first"] - 109
    assert runs[13]["answer"] == (
        "I remember: I wrote shopping.txt: onions, tomatoes, coffee, milk, chocolate. I bought groceries for 34; 216 are left."
    )
    assert found["messages"][0]["meanwhile"] == list(MESSAGES[0].meanwhile)
    assert found["most_at_once"] > 1
    assert found["svg"] == str(drawing)
    assert ElementTree.parse(drawing).getroot().tag.endswith("svg")
    drawn = drawing.read_text(encoding="utf-8")
    assert "8 bob: ask with no name" in drawn and "1 what is missing?" in drawn
    assert list(temporary.iterdir()) == []
    assert processes(temporary) == []


def test_kept_on_a_terminal_it_shows_a_table_and_serves_until_ctrl_c(tmp_path: Path) -> None:
    """Demo: 80 columns and 24 lines are enough; the household stays where it says."""
    with Terminal(tmp_path, "--keep", columns=80, rows=24) as terminal:
        terminal.until(lambda screen: "ice cream" in screen and screen.endswith("\n"))
        screen = terminal.screen
        assert "The books are right." in screen
        assert "Traceback" not in screen
        table = screen[screen.rindex(" #   from") : screen.index("\nann\n")]
        assert max(map(len, table.splitlines())) <= 80
        for errand in all_errands(MESSAGES):
            assert re.search(rf"^ *{errand.number}   .*  {errand.ends}", table, re.MULTILINE)
        for words in (
            "waits for 9 (session)",
            "running",
            "holds its locks",
            "limited: 2,",
            "running: shell",
            "2 queued",
        ):
            assert words in screen
        link = re.search(r"until Ctrl-C: (http://[0-9.:]+)/login#token=\S+", screen)
        assert link is not None
        with urllib.request.urlopen(f"{link[1]}/timeline.svg", timeout=10) as answer:
            assert answer.status == 200
        assert terminal.press_ctrl_c() == 0
        assert processes(tmp_path) == []
    (stays,) = re.findall(r"The household stays in (\S+)", screen)
    (drawing,) = re.findall(r"The timeline: (\S+)", screen)
    assert {str(path) for path in tmp_path.iterdir()} == {stays, drawing}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_in_the_middle_it_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """REC-6: Ctrl-C while agents are at work, a stuck one with its deaf child among them; no process, no file is left."""
    process = subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(tmp_path)
    )
    assert process.stdout is not None
    for line in process.stdout:
        if number is not signal.SIGINT and "1  ann   starts" in line:
            break
        if "9  ann   starts" in line:
            (journal,) = tmp_path.glob("concorde-demo-*/journal.jsonl")
            deadline = time.monotonic() + BOUND
            while len({entry.pid for entry in read_journal(journal) if entry.what == "beat"}) < 2:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            break
    assert processes(tmp_path) != []
    process.send_signal(number)
    out, err = process.communicate(timeout=BOUND)
    assert (process.returncode, err.strip()) == (130, "")
    assert out.endswith("Stopped; no run is left, and no file.\n")
    assert list(tmp_path.iterdir()) == []
    assert processes(tmp_path) == []


def test_a_drawing_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    """Demo: and not after everybody has watched it."""
    nowhere = tmp_path / "nowhere" / "timeline.svg"
    done = subprocess.run(
        [*COMMAND, "--json", "--svg", str(nowhere)],
        capture_output=True,
        text=True,
        env=environment(tmp_path),
        timeout=BOUND,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"concorde-trio: {nowhere}: No such file or directory\n"
    assert list(tmp_path.iterdir()) == []

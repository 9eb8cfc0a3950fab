"""``runs --follow`` and ``signals --follow``: a real gateway that is killed and comes back, and a program that reads lines."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.queues import HOSTILE
from tests.cli.running import Command, script
from tests.cli.watched_house import House

pytestmark = pytest.mark.slow

PATIENCE = 30.0
OVER = ["RunQueued", "RunStarted", "RunEnded"]


class Followed:
    """A command that follows, and the lines that it has printed."""

    def __init__(self, here: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [script(), *arguments, "--follow"], cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.lines: list[str] = []
        self._come: queue.Queue[str | None] = queue.Queue()
        self._err: queue.Queue[str | None] = queue.Queue()
        streams = ((self.process.stdout, self._come), (self.process.stderr, self._err))
        self._readers = [threading.Thread(target=self._read, args=each) for each in streams]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream: Any, lines: queue.Queue[str | None]) -> None:
        with stream:
            for line in stream:
                lines.put(line.decode())
        lines.put(None)

    def next(self) -> str:
        """The next line."""
        line = self._come.get(timeout=PATIENCE)
        assert line is not None, "it ended"
        self.lines.append(line)
        return line

    def until(self, text: str) -> str:
        """Lines up to one that has this text; that one."""
        while text not in (line := self.next()):
            pass
        return line

    def note(self, text: str) -> None:
        """It says this on stderr."""
        while text not in (self._err.get(timeout=PATIENCE) or f"it ended without {text!r}"):
            pass

    def end(self) -> int:
        """Ctrl-C; the exit status. Nothing more was said."""
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(timeout=20)
        while (line := self._come.get(timeout=PATIENCE)) is not None:
            self.lines.append(line)
        while (line := self._err.get(timeout=PATIENCE)) is not None:
            assert "Traceback" not in line
        return status

    def close(self) -> None:
        """Nobody follows any more."""
        self.process.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join()

    def of(self, run_id: str) -> list[str]:
        """The events about one run, of the JSON form."""
        return [each["event"] for each in map(json.loads, self.lines) if each.get("run_id") == run_id]


@contextmanager
def following(here: Path, *arguments: str) -> Iterator[Followed]:
    """Somebody follows."""
    made = Followed(here, *arguments)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def house(here: Path) -> Iterator[House]:
    """A gateway on ``concorde.db`` in the current folder."""
    made = House(here)
    made.start()
    yield made
    made.stop()


def say(command: Command, *prompts: tuple[str, str, list[str]]) -> str:
    """A signal with these prompts; its id."""
    done = command("emit", "message", json.dumps(prompts))
    assert done.status == 0, done.err
    return done.out.strip()


def test_no_change_of_a_run_is_missed_or_told_twice_over_a_restart(here: Path, house: House, command: Command) -> None:
    """SRV-4, REC-2: killed in the middle, started anew; Ctrl-C is quiet."""
    old = say(command, ("ann", "hello", []))
    first = say(command, ("ann", "stall", []), ("ann", "hello", []))
    with following(here, "runs", "--json") as follow:
        follow.until(f"{first}-2")
        house.kill()
        follow.note("following what the database says")
        second = say(command, ("bob", "hello", []))
        house.start()
        follow.note("a worker serves this queue now")
        ended = [f"{first}-1", f"{first}-2", f"{second}-1"]
        while not all("RunEnded" in follow.of(run_id) for run_id in ended):
            follow.next()
        third = say(command, ("cleo", "hello", []))
        while "RunEnded" not in follow.of(f"{third}-1"):
            follow.next()
        assert follow.end() == 130
    listed = {each["run"]["id"]: each["run"]["state"] for each in map(json.loads, follow.lines) if "run" in each}
    assert {f"{old}-1", f"{first}-1", f"{first}-2"} <= listed.keys()
    for run_id, state in listed.items():
        begun = {"pending": 1, "running": 2}.get(state, 3)
        assert follow.of(run_id) == OVER[begun:], run_id
    assert follow.of(f"{second}-1") == follow.of(f"{third}-1") == OVER
    told = [json.loads(line) for line in follow.lines if "event" in json.loads(line)]
    assert {each["state"] for each in told if each["event"] == "RunEnded" and each["run_id"] == f"{first}-1"} == {
        "failed"
    }
    assert all(each["id"] for each in told if each["run_id"] == f"{third}-1")


def test_a_person_reads_a_line_for_each_change_of_what_the_filter_names(
    here: Path, house: House, command: Command
) -> None:
    """SRV-2: the list oldest first, then what happens, in words."""
    first = say(command, ("ann", "stall", []), ("bob", "hello", []))
    while '"state": "running"' not in command("runs", f"{first}-1", "--json").out:
        pass
    with following(here, "runs", "--session", "ann") as follow:
        assert follow.next().split()[2:5] == ["running", f"{first}-1", "ann"]
        second = say(command, ("bob", "hello", []), ("ann", "hello", []))
        assert follow.next().split()[2:] == ["pending", f"{second}-2", "ann"]
        assert command("interrupt", "ann").status == 0
        stopped = [follow.next().split()[2:5] for _ in range(3)]
        assert stopped[0] == ["cancelled", f"{first}-1", "ann"]
        assert stopped[1:] == [["running", f"{second}-2", "ann"], ["done", f"{second}-2", "ann"]]
        assert follow.end() == 130


def test_signals_are_followed_from_when_they_are_emitted(here: Path, household: Path, command: Command) -> None:
    """SIG-4, SIG-6: of a queue that no worker serves the database says what is new; hostile text is text."""
    with following(here, "signals", "--json") as follow:
        while len(follow.lines) < 7:
            assert json.loads(follow.next())["signal"]["id"] == f"signal-{len(follow.lines)}"
        follow.note("no worker serves this queue now")
        signal_id = command("emit", "message", '"\\u001b[31m"').out.strip()
        found = json.loads(follow.until(signal_id))
        assert (found["event"], found["kind"], found["id"]) == ("SignalEmitted", "message", None)
        assert follow.end() == 130
    with following(here, "signals", "--state", "failed") as follow:
        line = follow.next()
        assert line.split()[2:5] == ["failed", "signal-1", "kind[red]1"] and "\\x1b[31m[red]\\u202eend" in line
        assert HOSTILE not in line and follow.end() == 130


def test_signals_of_a_gateway_are_told_claimed_and_settled(here: Path, house: House, command: Command) -> None:
    """SIG-4: each step once, and no other."""
    old = say(command, ("ann", "hello", []))
    with following(here, "signals", "--json") as follow:
        follow.until(old)
        first = say(command, ("ann", "hello", []))
        told: list[str] = []
        while "SignalSettled" not in told:
            found = json.loads(follow.next())
            told += [found["event"]] if found.get("signal_id") == first else []
        assert told[-2:] == ["SignalClaimed", "SignalSettled"] and told[:-2] in ([], ["SignalEmitted"])
        assert follow.end() == 130


def test_a_reader_that_goes_away_ends_it(here: Path, house: House, command: Command) -> None:
    """As any program of a shell: `runs --follow | head -1`."""
    process = subprocess.Popen([script(), "runs", "--follow"], cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        while process.poll() is None:
            say(command, ("ann", "hello", []))
        assert process.wait() == 141 and process.stderr.read() == b""
        process.stderr.close()
    finally:
        process.kill()
        process.wait()


def test_one_thing_is_not_followed(command: Command, household: Path) -> None:
    """SRV-5: --follow goes on after a list."""
    for arguments in (("signals", "signal-1"), ("runs", "signal-3-0")):
        done = command(*arguments, "--follow")
        assert done.status == 2 and "--follow goes on after a list" in done.sentence()

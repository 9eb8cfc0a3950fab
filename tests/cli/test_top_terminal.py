"""``top`` on a real terminal with a real gateway: keys, sizes, restarts, and what the terminal is afterwards."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.running import Command
from tests.cli.terminals import ScreenTerminal
from tests.cli.watched_house import House

pytestmark = pytest.mark.slow

LEAVES = "\x1b[?1049l"
"""Gives the other screen back."""


@pytest.fixture
def house(here: Path) -> Iterator[House]:
    """A gateway on ``concorde.db`` in the current folder."""
    made = House(here)
    made.start()
    yield made
    made.stop()


@contextmanager
def watching(here: Path, *arguments: str, columns: int = 120, lines: int = 40, **env: str) -> Iterator[ScreenTerminal]:
    """Somebody looks."""
    terminal = ScreenTerminal(here, "top", *arguments, columns=columns, lines=lines, **env)
    try:
        yield terminal
    finally:
        terminal.close()


def say(command: Command, *prompts: tuple[str, str, list[str]]) -> str:
    """A signal with these prompts; its id."""
    done = command("emit", "message", json.dumps(prompts))
    assert done.status == 0, done.err
    return done.out.strip()


def row(picture: list[str], run_id: str) -> str:
    """The line of a run in the list of runs."""
    return next((line for line in picture if line.startswith(f"{run_id} ")), "")


def test_a_person_sees_the_chain_cancels_a_run_and_interrupts_a_session(
    here: Path, house: House, command: Command
) -> None:
    """SRV-4, LCK-7, RUN-6, SES-12: nothing is done without a yes; what it leads to is seen at once."""
    signal_id = say(command, *((name, "stall", ["till"]) for name in ("ann", "bob", "cleo")))
    ann, bob, cleo = (f"{signal_id}-{number}" for number in (1, 2, 3))
    with watching(here) as top:
        before = top.modes()
        top.until(lambda seen: "running" in row(seen, ann) and "model" in row(seen, ann) and row(seen, cleo))
        picture = top.shows("sessions 1")
        assert f"{ann} on resource till, 1st in line" in row(picture, bob) and "waiting" in row(picture, cleo)
        top.type("jj\r")
        told = top.shows("who it waits for, to the root:")
        chain = told[told.index("who it waits for, to the root:") + 1 :]
        assert [line.split()[1] for line in chain if line.startswith("  run ")][:3] == [cleo, bob, ann]
        top.type("\x1b")
        top.hides("to the root:")
        top.type("c")
        top.shows(f'cancel run {cleo} of session "cleo", which is waiting? y/n')
        top.type("n")
        top.shows("nothing was done")
        top.type("cy")
        top.until(lambda seen: not row(seen, cleo) or "cancelled" in row(seen, cleo))
        top.type("gi")
        top.shows('interrupt the turn of session "ann"? y/n')
        top.type("y")
        top.until(lambda seen: "running" in row(seen, bob))
        top.type("q")
        assert top.end() == 0
        assert top.raw.rstrip().endswith(LEAVES)
        assert before
    assert command("runs", ann, "--json").json["state"] == "cancelled"
    assert command("runs", bob, "--json").json["state"] == "running"


def test_it_follows_the_size_of_the_terminal(here: Path, house: House, command: Command) -> None:
    """SRV-4: whatever COLUMNS says, which a shell exports sometimes."""
    signal_id = say(command, *((f"ann{number}", "stall", ["till"]) for number in range(30)))
    with watching(here, COLUMNS="77", LINES="7") as top:
        picture = top.shows(" of 30")
        assert len(picture) == 40
        top.resize(60, 10)
        picture = top.until(lambda seen: len(seen) == 10)
        assert max(map(len, picture)) <= 60 and row(picture, f"{signal_id}-1")
        top.type("G")
        assert row(top.until(lambda seen: row(seen, f"{signal_id}-30")), f"{signal_id}-30")
        top.resize(150, 50)
        assert "root" in row(top.until(lambda seen: len(seen) == 50), f"{signal_id}-30")
        top.type("q")
        assert top.end() == 0


def test_it_goes_on_over_a_restart_of_the_gateway(here: Path, house: House, command: Command) -> None:
    """SRV-4, REC-2: meanwhile it shows what the database says; afterwards it hears the new worker."""
    first = say(command, ("ann", "stall", []), ("ann", "hello", []))
    with watching(here) as top:
        top.until(lambda seen: "running" in row(seen, f"{first}-1") and row(seen, f"{first}-2"))
        house.kill()
        top.shows("no worker serves this queue now")
        second = say(command, ("bob", "stall", []))
        top.until(lambda seen: "pending" in row(seen, second))
        top.type("i")
        top.shows("no worker serves this queue now, so there is nobody to interrupt anything")
        house.start()
        top.shows("worker running")
        top.until(lambda seen: "running" in row(seen, f"{second}-1") and not row(seen, f"{first}-1"))
        third = say(command, ("cleo", "stall", []))
        top.until(lambda seen: "running" in row(seen, f"{third}-1"))
        top.type("q")
        assert top.end() == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_and_gives_the_terminal_back(here: Path, household: Path, number: int, status: int) -> None:
    """Ctrl-C and who ends programs: the screen, the cursor and the modes are as they were."""
    with watching(here) as top:
        before = top.modes()
        top.shows("no worker serves this queue now")
        top.until(lambda seen: before != top.modes())
        if number == signal.SIGINT:
            top.type("\x03")
        else:
            top.process.send_signal(number)
        deadline = time.monotonic() + 20
        while before != top.modes():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert top.end() == status
        assert top.raw.rstrip().endswith(LEAVES) and "\x1b[?25h" in top.raw and "Traceback" not in top.raw


def test_a_suspended_one_gives_the_terminal_back_and_takes_it_again(here: Path, household: Path) -> None:
    """Ctrl-Z, and fg."""
    with watching(here) as top:
        before = top.modes()
        top.shows("signal-3-0")
        top.type("\x1a")
        _, status = os.waitpid(top.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status) and before == top.modes()
        top.raw = ""
        top.process.send_signal(signal.SIGCONT)
        top.shows("signal-3-0")
        assert before != top.modes()
        top.type("q")
        assert top.end() == 0


def test_text_from_outside_is_text_on_the_screen_too(here: Path, household: Path) -> None:
    """TAG-4: what looks like an instruction to whoever draws is shown as it is."""
    with watching(here, "--direct") as top:
        top.shows("kind[red]7")
        top.type("\t\tw")
        top.shows("of kind kind[red]")
        top.type("q")
        assert top.end() == 0
        assert "\u202e" not in top.raw and "\x9b" not in top.raw


def test_a_terminal_that_shows_no_screens_gets_one_picture(here: Path, household: Path) -> None:
    """TERM=dumb, as editors have it."""
    with watching(here, TERM="dumb") as top:
        assert top.end() == 0
        assert "signal-3-0" in top.raw and LEAVES not in top.raw

"""Why a run waits, to the root: ``why RUN`` and ``why SESSION``."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from concorde_trio._sansio.lock_table import LockTable
from concorde_trio.cli.chain import chain_of
from concorde_trio.cli.words import chain_in_words
from tests.cli.queues import HOSTILE, write_line
from tests.cli.running import Command

NAMES = st.sampled_from("abc")


def _row(number: int, **more: Any) -> dict[str, Any]:
    known = {"id": f"r{number}", "signal_id": "s", "session": f"s{number}", "resources": [], "state": "waiting"}
    return {**known, "since": 0.0, "started_at": None, "time_limit": None, "waits_for": [], **more}


@given(runs=st.lists(st.tuples(NAMES, st.lists(NAMES, unique=True, max_size=2)), min_size=1, max_size=12))
def test_a_chain_ends_at_the_root_that_the_lock_table_names(runs: list[tuple[str, list[str]]]) -> None:
    """LCK-7: from a run to the blocker of its first missing lock, and on, to one that waits for nobody."""
    table: LockTable[str, int] = LockTable()
    for number, (session, resources) in enumerate(runs):
        table.enqueue(f"r{number}", number, session=session, resources=resources)
    rows = {}
    for number in range(len(runs)):
        why = table.why(f"r{number}")
        rows[f"r{number}"] = _row(
            number,
            waits_for=[
                {"space": each.lock.space, "name": each.lock.name, "run_id": each.blocker, "position": each.position}
                for each in why.missing
            ],
        )
    for run_id in rows:
        chain = chain_of(rows, run_id)
        assert chain[0]["id"] == run_id
        assert chain[-1]["id"] == table.why(run_id).root and not chain[-1]["waits_for"]
        for here, following in pairwise(chain):
            assert here["waits_for"][0]["run_id"] == following["id"]


def test_a_chain_of_rows_that_contradict_each_other_ends() -> None:
    """LCK-7: a snapshot is made in pieces, each true at its own instant."""
    there = {"space": "session", "name": "x", "position": 1}
    rows = {"r1": _row(1, waits_for=[{**there, "run_id": "r2"}]), "r2": _row(2, waits_for=[{**there, "run_id": "r1"}])}
    assert [run["id"] for run in chain_of(rows, "r1")] == ["r1", "r2"]
    assert [run["id"] for run in chain_of({"r1": rows["r1"]}, "r1")] == ["r1"]
    assert chain_of(rows, "nobody") == []


def test_a_link_says_what_it_does_how_long_it_may_and_where_it_stands() -> None:
    """LCK-7, LCK-4, RUN-6: its place in each line, what a held one is held for, and the time left of a running one."""
    budget = {"space": "resource", "name": "budget", "run_id": "r2", "position": 3}
    waits = _row(1, waits_for=[{"space": "session", "name": "ann", "run_id": "r2", "position": 3}, budget])
    held = _row(2, state="held")
    runs = _row(3, state="running", started_at=100.0, time_limit=30.0)
    signals = {"s": {"id": "s", "phase": "posting", "open": 0}}
    first, second, third = chain_in_words([waits, held, runs], signals, 110.0)
    assert first.startswith('run r1 in session "s1": waiting since ')
    assert first.endswith('; 3rd in line on session "ann" and resource "budget" behind r2')
    assert "ended, and held for its signal's post phase since" in second
    assert third.endswith(", 20.0s left of its 30.0s")


def test_why_tells_the_whole_chain(command: Command, here: Path) -> None:
    """LCK-7: everybody between a run and its root, a line each."""
    write_line(here / "concorde.db", 30)
    lines = command("why", "signal-1-29").out.splitlines()
    assert lines[0].startswith("run signal-1-29 of signal signal-1 waits since ")
    assert lines[2] == "  the chain:" and len(lines) == 34
    told = [re.match(r'    run signal-1-(\d+) in session "ann": ', line) for line in lines[3:33]]
    assert [int(each[1]) for each in told if each] == list(range(29, -1, -1))
    assert lines[3].endswith('; 29th in line on session "ann" behind signal-1-28')
    assert lines[32].startswith('    run signal-1-0 in session "ann": running since ')
    assert lines[33].startswith("  root: run signal-1-0 ")
    found = command("why", "signal-1-29", "--json").json
    assert [link["run_id"] for link in found["chain"]] == [f"signal-1-{number}" for number in range(29, -1, -1)]


def test_why_of_a_run_that_waits_for_nobody_has_no_chain(command: Command, household: Path) -> None:
    """LCK-7."""
    assert command("why", "signal-3-0", "--json").json["chain"] == []
    assert "chain" not in command("why", "signal-3-0").out


def test_why_of_a_session_tells_what_its_input_waits_for(command: Command, household: Path) -> None:
    """SES-12a, LCK-7, SES-20: without a worker its input is a signal that nobody has claimed."""
    assert command("send", "dora", "hello").status == 0
    done = command("why", "dora")
    assert done.out.startswith('session "dora" waits for lock: signal ') and "is not claimed yet" in done.out
    found = command("why", "dora", "--json").json
    assert found["waiting_on"]["on"] == "lock" and found["lock"] is None and found["chain"] == []


def test_why_of_a_session_that_no_runtime_keeps_tells_of_its_runs(command: Command, here: Path) -> None:
    """LCK-7: other commands show its name, so why knows it, too."""
    write_line(here / "concorde.db", 3)
    lines = command("why", "ann").out.splitlines()
    assert [line.split(" waits since")[0] for line in lines if " waits since" in line] == [
        "run signal-1-1 of signal signal-1",
        "run signal-1-2 of signal signal-1",
    ]
    found = command("why", "ann", "--json").json
    assert found["name"] == "ann" and [run["id"] for run in found["runs"]] == ["signal-1-1", "signal-1-2"]


def test_why_of_a_session_of_which_nothing_waits_says_so(command: Command, household: Path) -> None:
    """LCK-7: it is known, and it is not blocked."""
    runs = command("runs", "--json").json["runs"]
    waiting = {run["session"] for run in runs if run["state"] == "pending"}
    quiet = next(run["session"] for run in runs if run["session"] not in waiting)
    assert command("why", quiet).out == f'no run of session "{quiet}" waits.\n'
    assert command("why", quiet, "--json").json == {"name": quiet, "runs": []}


def test_why_of_what_nothing_is_called_says_so(command: Command, household: Path) -> None:
    """SRV-5, TAG-4: in one sentence, with nothing that acts on a terminal."""
    done = command("why", HOSTILE)
    assert done.status == 1 and "no session has this name" in done.sentence() and "\x1b" not in done.err

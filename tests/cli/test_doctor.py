"""``doctor``: in words and as a document, and an exit status that a script can use."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.running import Command


def test_what_a_crash_left_is_told_with_what_to_do(command: Command, household: Path) -> None:
    """Q-21: a running run and a post without a worker; status 1."""
    done = command("doctor")
    assert done.status == 1
    assert done.out.splitlines()[:3] == [
        "cut: runs are running, and no worker has the queue (REC-2)",
        "  signal-3-0",
        "  start a worker (concorde-trio serve): it settles what was cut off, before it claims anything",
    ]
    assert done.out.endswith("2 findings; no worker has it\n")
    told = command("doctor", "--json")
    assert told.status == 1
    assert told.json["served"] is False
    assert [(each["kind"], each["rule"], each["ids"]) for each in told.json["findings"]] == [
        ("cut", "REC-2", ["signal-3-0"]),
        ("cut", "REC-4", ["signal-5"]),
    ]


def test_a_good_queue_is_status_0_and_broken_rows_come_first(command: Command, here: Path) -> None:
    """Q-21: text from rows is shown, never interpreted."""
    assert command("emit", "--create", "k", "1").status == 0
    done = command("doctor")
    assert (done.status, done.out) == (0, "0 findings; no worker has it\n")
    with closing(sqlite3.connect(here / "concorde.db", isolation_level=None)) as connection:
        connection.execute(
            "insert into messages (session, seq, role, at, document) values ('\x1b[31mann', 1, 'user', 1, '{}')"
        )
    done = command("doctor")
    assert done.status == 1
    assert done.out.startswith("broken: messages have no session (STP-5)\n  \\x1b[31mann 1\n")


def test_a_queue_that_is_not_there_is_a_sentence(command: Command) -> None:
    """Misuse: nothing is made."""
    done = command("doctor", "--store", "nope.db")
    assert (done.status, "no database at nope.db" in done.sentence()) == (2, True)

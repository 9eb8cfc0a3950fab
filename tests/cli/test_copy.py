"""``copy``: a queue to another place, in words and as a document."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cli.running import Command


def test_a_queue_is_copied_and_told_of(command: Command, household: Path) -> None:
    """SIG-1: what went along; the copy then answers as the queue did."""
    done = command("copy", "concorde.db", "new.db")
    assert done.status == 0
    assert done.out.startswith(
        "copied 7 signals, 7 runs, 0 sessions with 0 messages and 0 inputs, 0 requests and 0 schedules;"
    )
    assert done.err == f"{household} is as it was; serve {household.with_name('new.db')} from now on, and not both\n"
    listed = command("signals", "--json").json
    assert command("signals", "--store", "new.db", "--json").json == listed
    again = command("copy", "new.db", "sqlite:///third.db", "--json").json
    assert again["tables"]["signals"]["rows"] == 7
    assert len(again["tables"]["runs"]["sha256"]) == 64


def test_what_cannot_be_copied_is_a_sentence(command: Command, household: Path) -> None:
    """Misuse: nothing is made, and the sentence says what to do."""
    assert "no database at nope.db" in command("copy", "nope.db", "x.db").sentence()
    assert "SRC and DST are the same queue" in command("copy", "concorde.db", "./concorde.db").sentence()
    assert "its folder does not exist" in command("copy", "concorde.db", "nowhere/x.db").sentence()
    assert command("copy", "concorde.db").status == 2
    assert command("copy", "concorde.db", "http://x").status == 2
    assert command("copy", "concorde.db", "new.db").status == 0
    refused = command("copy", "concorde.db", "new.db")
    assert (refused.status, "rows already (7 in signals, 7 in runs)" in refused.sentence()) == (1, True)
    assert sorted(each.name for each in household.parent.glob("*.db")) == ["concorde.db", "new.db"]


def test_a_long_copy_says_how_far_it_is(command: Command, household: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress: once a second, on stderr, which is no part of the answer."""
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    done = command("copy", "concorde.db", "new.db")
    assert "copying signals: 7 of 7 rows\n" in done.err
    assert "verifying runs: 7 of 7 rows\n" in done.err

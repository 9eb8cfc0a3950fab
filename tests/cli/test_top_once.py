"""``top`` without a terminal: one picture of what the database says, and the snapshot as JSON."""

from __future__ import annotations

from pathlib import Path

from tests.cli.queues import TAG
from tests.cli.running import Command


def test_without_a_terminal_it_prints_one_picture(command: Command, household: Path) -> None:
    """LCK-7, SIG-4, TAG-4: runs, locks and signals of a queue that no worker serves; hostile text is text."""
    done = command("top")
    told = done.out.splitlines()
    assert (done.status, done.err) == (0, "")
    assert told[0] == "no worker serves this queue now; this is what the database says"
    assert told[1] == "1 running, 1 held, 3 waiting; 4 signals in hand, 1 pending; 0 sessions, 0 at work"
    rows = {line.split()[0]: line.split()[1:] for line in told[3:] if line}
    assert rows["signal-3-0"][0] == "running" and rows["signal-5-0"][0] == "held"
    assert " ".join(rows["signal-4-0"]).endswith("signal-3-0 on session ann and 1 more, 1st in line")
    assert [rows[name][0] for name in ("signal-5", "signal-7")] == ["posting", "pending"]
    assert "\x1b" not in done.out and "\u202e" not in done.out and TAG not in done.out
    assert command("top", "--once").out.splitlines()[1] == told[1]


def test_the_json_form_is_the_snapshot(command: Command, household: Path) -> None:
    """SRV-4: the same names as GET /snapshot; no event it could be true as of."""
    found = command("top", "--json").json
    assert found["id"] is None and found["worker"]["status"] == "none"
    assert {run["id"]: run["state"] for run in found["runs"]} == {
        "signal-3-0": "running",
        "signal-3-1": "waiting",
        "signal-4-0": "waiting",
        "signal-5-0": "held",
        "signal-6-0": "waiting",
    }
    assert [signal["id"] for signal in found["pending"]] == ["signal-7"]
    assert found["locks"][0]["waiting"] and not any(found[name] for name in found if name.startswith("more_"))
    assert TAG not in command("top", "--json").out


def test_input_that_waits_for_a_worker_is_shown(command: Command, household: Path) -> None:
    """SES-12a: of sessions the rows know those whose input waits."""
    assert command("send", "dora", "hello").status == 0
    found = command("top", "--json").json
    assert [(each["name"], each["queued"], each["waiting_on"]["on"]) for each in found["sessions"]] == [
        ("dora", 1, "lock")
    ]
    assert "dora" in command("top").out

"""The same commands beside a worker that serves: it is asked, and what it fires is seen."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.running import Command
from tests.cli.test_served import Serving, serving

pytestmark = pytest.mark.slow

__all__ = ["serving"]


def test_a_worker_is_told_and_fires(command: Command, here: Path, serving: Serving) -> None:
    """SCH-1: over the server, and into the database beside it; a missed one is counted."""
    soon = datetime.fromtimestamp(int(time.time()) + 2, UTC).isoformat()
    put = command("schedule", "soon", "--at", soon, "--kind", "message", "--payload", "[]")
    assert (put.status, put.err) == (0, "")
    beside = command("schedule", "direct", "*/5 * * * *", "--kind", "message", "--payload", "[]", "--direct")
    assert beside.status == 0
    listed = command("schedules", "--json").json["schedules"]
    assert listed == command("schedules", "--json", "--direct").json["schedules"]
    assert [row["name"] for row in listed] == ["direct", "soon"]
    for _ in range(100):
        row = command("schedules", "soon", "--json").json
        if row["signal_id"]:
            break
        time.sleep(0.05)
    assert row["next_at"] is None
    signal = command("signals", row["signal_id"], "--json").json
    assert signal["kind"] == "message"
    assert signal["emitted_at"] - row["fired_at"] < 60
    assert command("unschedule", "direct").status == 0
    assert "there is no schedule 'direct'" in command("unschedule", "direct").sentence()

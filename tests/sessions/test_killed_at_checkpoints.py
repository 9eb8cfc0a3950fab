"""A session's whole life in SQLite, killed at each of its checkpoints in turn, and taken up by the next process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from concorde_trio.stores.sqlite import SqliteStore
from tests.sessions.life import judge
from tests.signals.stage import play

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
ROOT = Path(__file__).parents[2]
CHECKPOINTS = {"harness": 95, "worker": 162}
"""Steps of all tasks of the life with a file for a store, with scheduler seed 0."""


@pytest.mark.parametrize("door", ["harness", "worker"])
def test_whatever_checkpoint_it_is_killed_at_the_next_process_goes_on(tmp_path: Path, door: str) -> None:
    """SES-9, SES-10a, SES-17, SES-21, REC-2, F-17, F-21, F-35: SIGKILL; nothing accepted is lost or said twice."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.sessions.killed", door, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) == CHECKPOINTS[door], (
        "the life has another number of checkpoints than it had; is that meant?"
    )
    for at in range(1, CHECKPOINTS[door] + 1):
        told = tmp_path / f"{at}.txt"
        accepted = told.read_text().split() if told.exists() else []
        store = SqliteStore(tmp_path / f"{at}.db", inline=True)
        try:
            play(lambda store=store, accepted=accepted: judge(store, accepted, worker=door == "worker"))
        except BaseException as error:
            error.add_note(f"killed at checkpoint {at}")
            raise

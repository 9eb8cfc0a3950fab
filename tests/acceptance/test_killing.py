"""A process that serves a queue with real programs is killed, again and again; its agents' own journal must be right."""

from __future__ import annotations

import os
import random
import secrets
from pathlib import Path

import pytest

from tests.acceptance.killing.checker import faults
from tests.acceptance.killing.driver import Killing

KILLS = int(os.environ.get("KILLS", "20"))
SEED = int(os.environ.get("KILL_SEED", str(secrets.randbelow(2**32))))


@pytest.mark.slow
@pytest.mark.timeout(60 + 10 * KILLS)
def test_whatever_is_killed_when_nothing_is_lost_twice_or_out_of_order(tmp_path: Path) -> None:
    """REC-1, REC-2, REC-3, REC-4, REC-5, REC-6, CLM-6, LCK-2, LCK-4, Q-10, Q-11, Q-21: KILL_SEED repeats a failure."""
    print(f"KILL_SEED={SEED}")
    killing = Killing(tmp_path, seed=SEED)
    for _ in range(KILLS):
        killing.kill()
    evidence = killing.finish()
    assert faults(evidence) == []
    # It would show nothing if the kills had hit nothing.
    assert any(cut.started for cut in killing.cuts)
    assert len(evidence.settled) == KILLS * killing.each


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("fault", "rule"),
    [("late-start-marks", "REC-2: run"), ("run-again", "REC-2: run"), ("order-by-time", "LCK-2")],
)
def test_the_checker_finds_the_fault_in_a_build_that_is_broken_on_purpose(
    tmp_path: Path, fault: str, rule: str
) -> None:
    """RUN-1, SIG-3, REC-2: a check that nothing can fail is none."""
    chance = random.Random(7)
    for attempt in range(4):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        killing = Killing(folder, seed=chance.randrange(2**32), fault=fault)
        for _ in range(5):
            killing.kill()
        found = faults(killing.finish())
        if any(text.startswith(rule) for text in found):
            return
    pytest.fail(f"the checker found nothing wrong with {fault}; at the last attempt: {found}")

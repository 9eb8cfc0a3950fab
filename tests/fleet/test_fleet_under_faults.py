"""A fleet of five processes on a real PostgreSQL, disturbed in every way that a seed thinks of."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from tests.fleet.checker import faults
from tests.fleet.driver import Driver
from tests.fleet.recording import record
from tests.stores.postgres_server import running_server

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("FLEET_SECONDS", "25"))
SEED = int(os.environ.get("FLEET_SEED", str(secrets.randbelow(2**32))))

FAULTS = [
    *("kill_leader", "kill_executor", "stop_leader", "stop_executor", "roll"),
    *("terminate", "restart", "cut", "stall", "delay"),
]


@pytest.mark.timeout(400 + 2 * SECONDS)
def test_whatever_befalls_a_fleet_nothing_is_lost_twice_or_out_of_order(tmp_path: Path) -> None:
    """REC-2, REC-3, REC-4, REC-6, CLM-6, LCK-2, LCK-4, SIG-3, Q-04, Q-08, Q-18, Q-19, Q-20, Q-21: FLEET_SEED repeats a failure."""
    print(f"FLEET_SEED={SEED}")
    with running_server() as postgres:
        driver = Driver(tmp_path, postgres, seed=SEED)
        try:
            driver.begin()
            driver.disturb(SECONDS, FAULTS)
            evidence = driver.finish()
        finally:
            driver.close()
    assert faults(evidence) == []
    # It would show nothing if the faults had hit nothing.
    assert evidence.over
    assert len(evidence.signals) > SECONDS


@pytest.mark.skipif(
    SECONDS < 300, reason="a part of the soak; what such a fleet left once is in test_recorded_fleets.py"
)
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("broken", "rule"), [("no-fence", "Q-19"), ("order-by-time", "SIG-3")])
def test_the_checker_finds_the_fault_in_a_fleet_that_is_broken_on_purpose(broken: str, rule: str) -> None:
    """Q-08, Q-18, Q-19, SIG-3: a check that nothing can fail is none."""
    found: list[str] = []
    for attempt in range(3):
        found = faults(record(broken, seed=SEED + attempt))
        if any(text.startswith(rule) for text in found):
            return
    pytest.fail(f"the checker found nothing wrong with {broken}; at the last attempt: {found}")

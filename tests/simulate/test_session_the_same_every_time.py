"""The same scenario of a session gives the same events, whatever order Trio wakes tasks in and whatever strings hash to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from random import Random

import pytest

from concorde_trio import events
from concorde_trio.simulate import simulate
from concorde_trio.simulate.session_trace import SessionTrace
from tests.cases.files import session_cases
from tests.simulate.session_random import random_session

RANDOM = [random_session(Random(seed)) for seed in range(3)]
SCENARIOS = [*session_cases().values(), *RANDOM, *(each | {"remote": True} for each in RANDOM)]

PROGRAM = """
import json, sys
from concorde_trio.simulate import simulate

json.dump([simulate(scenario) for scenario in json.load(sys.stdin)], sys.stdout)
"""

pytestmark = pytest.mark.slow


def traces(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """For each scenario, every event that its session published."""
    found: list[list[str]] = []

    class Recording(SessionTrace):
        def note(self, noted: Sequence[events.Event]) -> None:
            super().note(noted)
            found[-1].extend(json.dumps(event.as_json(), default=str) for event in noted)

    monkeypatch.setattr("concorde_trio.simulate.session_play.SessionTrace", Recording)
    for scenario in SCENARIOS:
        found.append([])
        simulate(scenario)
    return found


@cache
def first_traces() -> list[list[str]]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        return traces(monkeypatch)


def test_no_order_of_waking_changes_a_trace(scheduler_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """SES-1: one event at a time, and a scenario says which is first."""
    found = traces(monkeypatch)
    assert found == first_traces()
    assert sum(len(trace) for trace in found) > 250


@pytest.mark.parametrize("hash_seed", ["0", "1", "2", "42", "4294967295"])
def test_no_hash_seed_changes_a_result(hash_seed: str) -> None:
    """SES-1: nor on what a string hashes to."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(SCENARIOS),
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout) == [simulate(scenario) for scenario in SCENARIOS]
    assert not done.stderr

"""The same input gives the same trace, whatever order Trio wakes tasks in and whatever strings hash to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from random import Random
from typing import Any

import pytest

from concorde_trio import events
from concorde_trio.simulate import simulate
from concorde_trio.simulate.trace import Trace
from tests.cases.files import signal_cases
from tests.reference.scenarios import random_scenario

pytestmark = pytest.mark.slow

SEEDS = (0, 12, 353)
"""Scenarios with many things at one instant."""

SCENARIOS = [random_scenario(Random(seed)) for seed in SEEDS]
SCENARIOS += [signal_cases()["random-00"]]

PROGRAM = """
import json, sys
from concorde_trio.simulate import simulate
json.dump([simulate(scenario) for scenario in json.load(sys.stdin)], sys.stdout)
"""


def traces(monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """For each scenario, every event that the worker published, with the scenario's ids instead of random ones."""
    found: list[list[Any]] = []

    class Recording(Trace):
        def note(self, event: events.Event) -> None:
            super().note(event)
            if not isinstance(event, events.WorkerStopped):
                text = json.dumps(event.as_json(), default=str)
                for real, name in (self._run_ids | self._signal_ids).items():
                    text = text.replace(real, name)
                found[-1].append(text)

    monkeypatch.setattr("concorde_trio.simulate.play.Trace", Recording)
    for scenario in SCENARIOS:
        found.append([])
        simulate(scenario)
    return found


@cache
def first_traces() -> list[list[Any]]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        return traces(monkeypatch)


def test_no_order_of_waking_changes_a_trace(scheduler_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """LCK-5: the order never depends on how Trio wakes tasks."""
    found = traces(monkeypatch)
    assert found == first_traces()
    assert sum(len(trace) for trace in found) > 200


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["0", "1", "2", "42", "4294967295"])
def test_no_hash_seed_changes_a_result(hash_seed: str) -> None:
    """LCK-5: nor on what a string hashes to."""
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

"""The real worker and a slow, obvious reference give the same result for any scenario: the proof of the worker."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio.simulate import simulate
from tests.reference.model import Reference
from tests.reference.scenarios import random_scenario


def check(scenario: dict[str, Any]) -> None:
    result, expected = simulate(scenario), Reference(scenario).play()
    for part in ("start_order", "signals", "runs"):
        assert result[part] == expected[part], scenario


@given(st.randoms(use_true_random=False))
def test_any_scenario_goes_as_the_rules_say(random: Random) -> None:
    """LCK-1 to LCK-5, CLM-1 to CLM-5, RUN-2, RUN-6, PST-1, PST-2, TAG-1, TAG-2, TAG-6, STP-1 to STP-3."""
    check(random_scenario(random))


@given(st.sampled_from(["drain", "park", "cancel"]), st.randoms(use_true_random=False))
def test_a_stop_at_any_tie_goes_as_the_rules_say(mode: str, random: Random) -> None:
    """STP-1 to STP-3, LCK-5: a stop comes after the starts of its instant and before the claims."""
    scenario = random_scenario(random, stops=False)
    scenario["stop"] = {"at": random.choice((0, 0.1, 1, 2, 3)), "mode": mode}
    check(scenario)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_thousands_of_scenarios_go_as_the_rules_say(block: int) -> None:
    """The same, over seeds that are the same on every machine."""
    for seed in range(400 * block, 400 * (block + 1)):
        scenario = random_scenario(Random(seed))
        result, expected = simulate(scenario), Reference(scenario).play()
        assert result == expected, f"seed {seed}: {scenario}"

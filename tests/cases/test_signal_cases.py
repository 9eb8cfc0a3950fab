"""Every case file of signals, through the real worker and through the reference."""

from __future__ import annotations

from typing import Any

import pytest

from concorde_trio.simulate import simulate
from tests.cases.files import named_by, signal_cases
from tests.reference.model import Reference

CASES = signal_cases()


def test_the_copies_are_there() -> None:
    """A test that plays every file must find them."""
    assert len(CASES) >= 40


@pytest.mark.parametrize("scenario", CASES.values(), ids=CASES.keys())
def test_the_worker_plays_a_case_as_it_expects(scenario: dict[str, Any]) -> None:
    """LCK-2, LCK-4, LCK-5, CLM-1 to CLM-5, RUN-2, PST-1, PST-2, TAG-1, TAG-2, STP-1."""
    expected = scenario["expected"]
    result = simulate(scenario)
    assert named_by(expected, result) == expected
    assert result["runs"].keys() == expected["runs"].keys()
    assert result["signals"].keys() == expected["signals"].keys()


@pytest.mark.parametrize("scenario", CASES.values(), ids=CASES.keys())
def test_the_reference_reads_the_rules_as_the_cases_do(scenario: dict[str, Any]) -> None:
    """The reference is compared with what people worked out before anything is compared with it."""
    expected = scenario["expected"]
    assert named_by(expected, Reference(scenario).play()) == expected

"""Every case file of sessions, through the real harness and event loop."""

from __future__ import annotations

from typing import Any

import pytest

from concorde_trio.simulate import simulate
from tests.cases.files import named_by, session_cases

CASES = session_cases()


def test_the_copies_are_there() -> None:
    """A test that plays every file must find them."""
    assert len(CASES) >= 12


@pytest.mark.parametrize("scenario", CASES.values(), ids=CASES.keys())
def test_the_harness_plays_a_case_as_it_expects(scenario: dict[str, Any]) -> None:
    """SES-2, SES-5 to SES-7, SES-9 to SES-14, SES-16, SES-22, LSE-2, LSE-5, LSE-7."""
    expected = scenario["expected"]
    assert named_by(expected, simulate(scenario)) == expected

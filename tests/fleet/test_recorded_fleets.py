"""The checker on what fleets left that were broken on purpose (``recording``), and on the same without the fault."""

from __future__ import annotations

import re

import pytest

from tests.fleet.checker import faults
from tests.fleet.recording import RECORDED, read


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        ("no-fence", ["Q-19: in epoch \\d+ .* no leader", "LCK-2, REC-6: on .* started while run .* was alive"]),
        ("order-by-time", ["SIG-3: signal .* was claimed before"]),
    ],
)
def test_the_checker_finds_the_fault_in_what_a_broken_fleet_left(broken: str, found: list[str]) -> None:
    """Q-08, Q-18, Q-19, SIG-3: late writes and overlaps where no fence is, and another order than that of seq."""
    said = faults(read(RECORDED / f"{broken}.json"))
    for words in found:
        assert [text for text in said if re.match(words, text)], (words, said)

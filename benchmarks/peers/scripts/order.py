"""Whether jobs of one key ran one after another in the order of their emission: found from when each began and ended."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable


def out_of_order(ran: Iterable[tuple[Hashable, int, float, float]]) -> int:
    """Of (key, number, begun, ended): how many began before the one before them, of the same key, had ended."""
    by_key: dict[Hashable, dict[int, tuple[float, float]]] = {}
    for key, number, begun, ended in ran:
        by_key.setdefault(key, {})[number] = (begun, ended)
    wrong = 0
    for jobs in by_key.values():
        ordered = [jobs[number] for number in sorted(jobs)]
        wrong += sum(begun < ended for (_, ended), (begun, _) in itertools.pairwise(ordered))
    return wrong

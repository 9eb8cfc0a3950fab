"""What the worker's tests get besides: a few orders in which Trio wakes tasks, where twenty would only take time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.signals.stage import seeded


@pytest.fixture(params=[0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))])
def some_seed(request: pytest.FixtureRequest) -> Iterator[int]:
    """A seed of Trio's scheduler: two in the fast tests, twenty in all (LCK-5)."""
    with seeded(request.param):
        yield request.param

"""Tests that run programs take a census, and leave no process behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.processes.census import Census


@pytest.fixture
def census() -> Iterator[Census]:
    """REC-6: what a test started is gone when it ends."""
    census = Census()
    yield census
    left = census.alive() + census.guards()
    census.clear()
    assert left == []

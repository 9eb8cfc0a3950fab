"""A served worker for each test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.server.house import House, open_house


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """A worker behind an app of its own, on a free port."""
    async with open_house() as opened:
        yield opened

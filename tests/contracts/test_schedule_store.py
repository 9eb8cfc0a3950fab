"""One suite over all schedule stores."""

from __future__ import annotations

import pytest

from concorde_trio.testing import schedule_store_checks
from concorde_trio.testing.schedule_store_checks.rows import Check, MakeStore


@pytest.mark.parametrize("check", schedule_store_checks.values(), ids=schedule_store_checks.keys())
async def test_every_store(check: Check, make_store: MakeStore) -> None:
    """SCH, SIG: the rule is in the docstring of each check."""
    await check(make_store)


def test_every_check_names_its_rule() -> None:
    """The suite is read by people who write a store."""
    for name, check in schedule_store_checks.items():
        assert check.__doc__, name
        assert check.__doc__.split()[0].rstrip(".,:").split("-")[0] in ("SCH", "SIG"), name

"""The same suites over PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

from concorde_trio.testing import schedule_store_checks, session_store_checks, signal_store_checks
from tests.stores.postgres_server import PostgresServer, postgres

pytestmark = pytest.mark.slow

__all__ = ["postgres"]


@pytest.fixture
def make_store(postgres: PostgresServer) -> Any:
    """A callable that makes a fresh store, in a schema of its own."""
    from concorde_trio.stores.postgres.store import PostgresStore

    return lambda: PostgresStore(postgres.place())


@pytest.mark.parametrize("check", signal_store_checks.values(), ids=signal_store_checks.keys())
async def test_every_check_of_signal_stores(check: Any, make_store: Any) -> None:
    """SIG, CLM, RUN, TAG, REC, STP: the rule is in the docstring of each check."""
    await check(make_store)


@pytest.mark.parametrize("check", session_store_checks.values(), ids=session_store_checks.keys())
async def test_every_check_of_session_stores(check: Any, make_store: Any) -> None:
    """SES, LSE, SIG, SRV, STP, REC: the rule is in the docstring of each check."""
    await check(make_store)


@pytest.mark.parametrize("check", schedule_store_checks.values(), ids=schedule_store_checks.keys())
async def test_every_check_of_schedule_stores(check: Any, make_store: Any) -> None:
    """SCH, SIG: the rule is in the docstring of each check."""
    await check(make_store)

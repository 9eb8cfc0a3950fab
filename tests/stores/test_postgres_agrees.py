"""MemoryStore and PostgresStore, driven by the same operations as MemoryStore and SqliteStore are: every read is compared."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from concorde_trio.signals.store import SignalStore
from tests.stores.postgres_server import PostgresServer, postgres
from tests.stores.test_postgres_store import store_of
from tests.stores.test_session_stores_agree import SessionStoresAgree

pytestmark = pytest.mark.slow

__all__ = ["postgres"]


def test_it_agrees_with_the_obvious_store(postgres: PostgresServer) -> None:
    """LCK-5, SES-21: the same results and the same refusals, over random histories of signals, runs and sessions."""

    class Agree(SessionStoresAgree):
        def second(self) -> SignalStore:
            store: SignalStore = store_of(postgres.place())
            return store

    examples = max(10, settings.default.max_examples // 6)
    run_state_machine_as_test(Agree, settings=settings(stateful_step_count=25, max_examples=examples))

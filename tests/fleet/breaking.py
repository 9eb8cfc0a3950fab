"""Stores of a fleet that are broken on purpose, so that the checker can be seen to find it."""

from __future__ import annotations

from typing import Any

from concorde_trio.records import SignalRecord
from concorde_trio.stores.postgres.store import PostgresStore


class OrderByTime(PostgresStore):
    """Broken: signals are taken in the order of the wall clock at which they say they happened."""

    async def pending(self, limit: int) -> list[SignalRecord]:
        """The first ``limit``, by that clock."""
        return sorted(await super().pending(limit), key=lambda signal: signal.emitted_at)


BROKEN: dict[str, type[PostgresStore]] = {"nothing": PostgresStore, "order-by-time": OrderByTime}


def store_of(url: str, *, lease: float, broken: str) -> Any:
    """The store at ``url``."""
    return BROKEN[broken](url, lease=lease)

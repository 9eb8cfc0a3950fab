"""Stores of a fleet that are broken on purpose, so that the checker can be seen to find it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import psycopg
import trio

from concorde_trio.records import SignalRecord
from concorde_trio.stores.postgres import fleet_works
from concorde_trio.stores.postgres.membership import BEATS, PostgresMembership
from concorde_trio.stores.postgres.store import PostgresStore
from concorde_trio.stores.thread_writer import ThreadWriter


class OrderByTime(PostgresStore):
    """Broken: signals are taken in the order of the wall clock at which they say they happened."""

    async def pending(self, limit: int) -> list[SignalRecord]:
        """The first ``limit``, by that clock."""
        return sorted(await super().pending(limit), key=lambda signal: signal.emitted_at)


class NoFence(PostgresStore):
    """Broken: who has lost its lease, or its lead, does not notice, and writes on; its programs live on too."""

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, **options)
        fleet_works.lives = lambda database, member: True
        PostgresMembership._keep = _renew_for_ever  # type: ignore[method-assign]
        PostgresMembership.check = lambda self: None  # type: ignore[method-assign]
        PostgresMembership._renewed = _for_ever  # type: ignore[method-assign]

    def leaders_writer(self, writer: str) -> ThreadWriter:
        """One that looks at no epoch."""
        made = super().leaders_writer(writer)
        made._session.owns = False  # type: ignore[attr-defined]
        return made


async def _renew_for_ever(self: PostgresMembership) -> None:
    while True:
        await trio.sleep(self.lease / BEATS)
        with suppress(psycopg.Error):
            await self.line.ask(self._write_renewal)


def _for_ever(self: PostgresMembership, monotonic: float, now: float) -> None:
    self._until = self._scope.deadline = now + 3600
    self._programs.renew(monotonic + 3600)


BROKEN: dict[str, type[PostgresStore]] = {
    "nothing": PostgresStore,
    "order-by-time": OrderByTime,
    "no-fence": NoFence,
}


def store_of(url: str, *, lease: float, broken: str) -> Any:
    """The store at ``url``."""
    return BROKEN[broken](url, lease=lease)

"""One process as a member of a fleet: its lease, and what it does under it.

The law: the lease is renewed by the database's clock, and counted here from before the renewal was sent, less a margin. Once
that time is over without another renewal, whatever hung or was lost, all that runs under it is cancelled, which is before
anybody else may start what it held. A member that is gone never comes back: its process joins as another one.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import trio

from concorde_trio.errors import LeaseLost
from concorde_trio.processes.programs_lease import ProgramsLease
from concorde_trio.signals.fleet import Execution, Finished, LeaderSeen, Leadership, StopAsked
from concorde_trio.stores.pauses import pauses
from concorde_trio.stores.postgres import fleet_reads
from concorde_trio.stores.postgres.beside import beside
from concorde_trio.stores.postgres.fleet_words import heard_words
from concorde_trio.stores.postgres.fleet_works import FinishExecutions, TakeOffers, tell
from concorde_trio.stores.postgres.holder import alive_here, this_holder
from concorde_trio.stores.postgres.leading import leading
from concorde_trio.stores.postgres.line import Line
from concorde_trio.stores.postgres.listener import Listener
from concorde_trio.stores.postgres.pg_errors import passes, store_busy, store_error
from concorde_trio.stores.postgres.pg_sql import PostgresReads

if TYPE_CHECKING:
    from concorde_trio.stores.postgres.store import PostgresStore

logger = logging.getLogger("concorde_trio.stores")

MARGIN = 0.2
"""The part of a lease that is left for what runs under it to stop in."""

BEATS = 5
"""Renewals in a lease, if all is well."""


class PostgresMembership:
    """Made by ``PostgresStore.enrol``."""

    def __init__(self, store: PostgresStore, *, url: str | None, capacity: int | None) -> None:
        self.id = uuid4().hex
        self.store = store
        self.place = store.place
        self.lease = store.lease
        self.patience = store.patience
        self.holder = this_holder(self.id, self.lease)
        self.line = Line(self.place, f"concorde-trio member {self.id[:12]}")
        self.lead_line = Line(
            self.place, f"concorde-trio leader {self.id[:12]}"
        )  # another, for a lease waits for nothing
        self.over: LeaseLost | None = None
        self.leads = False
        self.lead_lost = trio.Event()
        self.free_since: dict[str, float] = {}  # by the name of a worker that is no member, and has lost its lock
        self._url = url
        self._capacity = capacity
        self._programs = ProgramsLease()
        self._until = 0.0
        self._scope = trio.CancelScope()

    @property
    def marker(self) -> str:
        """Marks the processes of its runs."""
        return f"{self.store.queue}.{self.id}"

    @property
    def programs_lock(self) -> Path:
        """On which guards of its programs hold a flock."""
        return programs_lock(self.store, self.id)

    # --- its life -------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Be a member while the block runs. LeaseLost, with the block cancelled, once its lease is over."""
        alive_here(self.id, True)
        try:
            await self._join()
            try:
                async with beside(self._keep):
                    # The scope's own deadline is met before any task goes on that was stopped for longer.
                    with self._programs.held(), self._scope:
                        yield
                    if self._scope.cancelled_caught:
                        raise self._unrenewed()
            finally:
                await self._leave()  # noqa: ASYNC102  Shielded and bounded inside.
        finally:
            if self.over is None:
                self.over = LeaseLost(f"member {self.id[:12]} has left the fleet of {self.place.name}")
            alive_here(self.id, False)
            self.line.close()
            self.lead_line.close()

    async def _join(self) -> None:
        until = trio.current_time() + self.patience
        for pause in pauses(longest=1.0):
            try:
                asked = time.monotonic(), trio.current_time()
                await self.line.ask(self._write_down)
                self._renewed(*asked)
                return
            except psycopg.Error as error:
                if not passes(error):
                    raise store_error(error, self.place) from error
                if trio.current_time() > until:
                    raise store_busy(error, self.place, self.patience) from error
            await trio.sleep(pause)

    def _write_down(self, database: PostgresReads) -> None:
        with database.connection.transaction():
            database.execute("delete from concorde_members where ended_at < now() - interval '1 day'")
            database.execute(
                "insert into concorde_members (id, holder, host, pid, url, capacity, lease, writer) "
                "values (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    self.id,
                    self.holder.as_text(),
                    socket.gethostname(),
                    self.holder.pid,
                    self._url,
                    self._capacity,
                    self.lease,
                    self.store.writer_name,
                ),
            )
            database.execute(
                "insert into concorde_leases (member, until) values (?, clock_timestamp() + ? * interval '1 second')",
                (self.id, self.lease),
            )

    async def _keep(self) -> None:
        """Return never: LeaseLost once the lease is over, by anybody's word or by nobody's."""
        while True:
            try:
                with trio.fail_at(self._until):
                    await trio.sleep(self.lease / BEATS)
                    await self._renew()
            except trio.TooSlowError:
                raise self._unrenewed() from None

    async def _renew(self) -> None:
        for pause in pauses(longest=0.5):
            asked = time.monotonic(), trio.current_time()
            try:
                with trio.move_on_after(self.lease / BEATS) as hanging:
                    renewed, leads = await self.line.ask(self._write_renewal)
                if not hanging.cancelled_caught:
                    if not renewed:
                        raise self._lost("it was taken for dead")
                    self._renewed(*asked)
                    if self.leads and not leads:
                        self.lead_lost.set()
                    return
                logger.info("the database %s does not answer; asking again for a lease", self.place.name)
            except psycopg.Error as error:
                logger.info("the lease of member %s cannot be renewed yet: %s", self.id[:12], error)
                if not passes(error):
                    raise store_error(error, self.place) from error
            await trio.sleep(pause)

    def _write_renewal(self, database: PostgresReads) -> tuple[bool, bool]:
        renewed = database.execute(
            "update concorde_leases set until = clock_timestamp() + ? * interval '1 second' where member = ?",
            (self.lease, self.id),
        ).rowcount
        leads: bool = database.execute(
            "select member is not distinct from ? from concorde_leader", (self.id,)
        ).fetchall()[0][0]
        return renewed == 1, leads

    def _renewed(self, monotonic: float, now: float) -> None:
        left = self.lease * (1 - MARGIN)
        self._until = self._scope.deadline = now + left
        self._programs.renew(monotonic + left)

    def _unrenewed(self) -> LeaseLost:
        return self._lost(f"it could not be renewed for {self.lease * (1 - MARGIN):g} s")

    def _lost(self, why: str) -> LeaseLost:
        self.over = LeaseLost(
            f"this process lost its lease as member {self.id[:12]} of the fleet of {self.place.name}: {why}; "
            "what it ran is stopped"
        )
        return self.over

    async def _leave(self) -> None:
        """Say that it has left, if the database can be reached soon."""
        with trio.move_on_after(5 if self.over is None else 1, shield=True):
            try:
                await self.line.ask(self._say_left)
            except psycopg.Error as error:
                logger.info("could not say that the fleet of %s was left: %s", self.place.name, error)
        self.programs_lock.unlink(missing_ok=True)

    def _say_left(self, database: PostgresReads) -> None:
        with database.connection.transaction():
            database.execute("delete from concorde_leases where member = ?", (self.id,))
            database.execute(
                "update concorde_members set state = 'left', ended_at = now() where id = ? "
                "and state in ('live', 'draining')",
                (self.id,),
            )
            tell(database, self.place.fleet_channel, "leader")

    # --- what it does ---------------------------------------------------------------------------------------

    async def take(self, limit: int, now: float) -> list[Execution]:
        """Take runs that are offered; LeaseLost once it is over."""
        self.check()
        found: list[Execution] = await self.store.write_work(
            TakeOffers(self.id, limit, now, self.place.fleet_channel), patient=True
        )
        return found

    async def finish(self, ends: Sequence[Finished]) -> set[str]:
        """Write outcomes; those that were written. None once its lease is over."""
        if self.over is not None:
            return set()
        written: set[str] = await self.store.write_work(
            FinishExecutions(self.id, ends, self.place.fleet_channel), patient=True
        )
        return written

    async def stops(self) -> list[StopAsked]:
        """What is asked of its runs."""
        return await self.store.read(partial(fleet_reads.stops, member=self.id))

    async def drain(self) -> None:
        """Nobody counts on it any more."""
        sql = "update concorde_members set state = 'draining' where id = ? and state = 'live'"
        try:
            await self.line.ask(lambda database: database.execute(sql, (self.id,)))
        except psycopg.Error as error:
            logger.info("could not say that member %s drains: %s", self.id[:12], error)

    async def leader(self) -> LeaderSeen | None:
        """Who leads."""
        return await self.store.read(fleet_reads.leader)

    def lead(self) -> AbstractAsyncContextManager[Leadership | None]:
        """Lead, if nobody else does."""
        return leading(self)

    @asynccontextmanager
    async def on_fleet(self, heard: Callable[[str, Any], None]) -> AsyncIterator[None]:
        """What members tell each other."""
        listener = Listener(self.place, self.place.fleet_channel, self.patience, heard_words(heard))
        async with listener.listening():
            yield

    def check(self) -> None:
        """LeaseLost once it is over."""
        if self.over is not None:
            raise LeaseLost(str(self.over)) from self.over


def programs_lock(store: PostgresStore, member: str) -> Path:
    """The file on which guards of a member's programs hold a flock; each member of this machine has its own."""
    path = store.path
    return path.with_name(f"{path.name}.{member}.programs")

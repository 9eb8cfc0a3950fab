"""Leading a fleet: an advisory lock, an epoch that fences every write, and taking both over from one that is gone.

The law: the lead is free once who has it laid it down, is known dead, or has a lease that is over by the database's clock. Whoever
takes it ends the other's connections first, so that nothing of it is under way, and what it still writes changes no row.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import psycopg
import trio

from concorde_trio._sansio.changes import Change
from concorde_trio.errors import LeaseLost, StoreError
from concorde_trio.processes.sweep import sweep_queue
from concorde_trio.signals.fleet import FoundRuns
from concorde_trio.stores.change_plan import plan
from concorde_trio.stores.postgres import fleet_reads
from concorde_trio.stores.postgres.beside import beside
from concorde_trio.stores.postgres.fleet_reads import LeaderRow
from concorde_trio.stores.postgres.fleet_works import EndLeases, LeaderApply, RecallOffers, tell
from concorde_trio.stores.postgres.line import Line
from concorde_trio.stores.postgres.owner import GRACE
from concorde_trio.stores.postgres.pg_errors import passes, store_error
from concorde_trio.stores.postgres.pg_sql import PostgresReads
from concorde_trio.stores.programs import no_programs
from concorde_trio.stores.thread_writer import ThreadWriter

if TYPE_CHECKING:
    from concorde_trio.stores.postgres.membership import PostgresMembership

logger = logging.getLogger("concorde_trio.stores")

WORKER_PATIENCE = 20
"""How many times longer than others a leader waits for the database; a lost lease ends it sooner."""

BEATS = 5
"""Looks in a lease at whether the lock is held."""


@asynccontextmanager
async def leading(member: PostgresMembership) -> AsyncIterator[PostgresLeadership | None]:
    """Lead while the block runs; None if it cannot be now."""
    member.check()
    line = member.lead_line
    try:
        epoch, before = await line.ask(partial(_take, member=member))
    except psycopg.Error as error:
        if not passes(error):
            raise store_error(error, member.place) from error
        logger.info("the lead of %s cannot be taken yet: %s", member.place.name, error)
        epoch = before = None
    if epoch is None:
        yield None
        return
    member.leads, member.lead_lost = True, trio.Event()
    try:
        if before is not None:
            await sweep_queue(f"{member.store.queue}.{before}")
        writer = member.store.leaders_writer(member.id)
        try:
            await writer.open()
            async with beside(partial(_watch, member, line)):
                yield PostgresLeadership(member, writer, epoch)
        finally:
            await writer.close()  # noqa: ASYNC102  Shielded and bounded inside.
    finally:
        member.leads = False
        with trio.move_on_after(5 if member.over is None else 0, shield=True):
            try:
                await line.ask(partial(_lay_down, member=member, epoch=epoch))
            except psycopg.Error as error:
                logger.info("could not say that the lead of %s was laid down: %s", member.place.name, error)


async def _watch(member: PostgresMembership, line: Line) -> None:
    """Return never: LeaseLost once another one leads. A connection that was lost has to have the lock again."""
    while not member.lead_lost.is_set():
        with trio.move_on_after(member.lease / BEATS):
            await member.lead_lost.wait()
        try:
            with trio.move_on_after(member.lease / BEATS):
                await line.ask(partial(_take_lock, member=member))
        except psycopg.Error as error:
            logger.info("the lock of who leads %s is not held at this moment: %s", member.place.name, error)
    raise LeaseLost(f"member {member.id[:12]} does not lead the fleet of {member.place.name} any more")


def _take(database: PostgresReads, member: PostgresMembership) -> tuple[int | None, str | None]:
    """The epoch, None if the lead is not free; and the member that had the lead, if it may have left processes here."""
    row = fleet_reads.leader_row(database)
    if not _free(row, member):
        return None, None
    if row.member is not None and row.member != member.id:
        _terminate(database, row)
    if not _take_lock(database, member):
        return None, None
    epoch = _entered(database, row, member) if _left(row, member) else None
    if epoch is None:
        database.execute("select pg_advisory_unlock(?)", (member.place.worker_key,))
    return epoch, row.member if row.holder is not None and row.holder.known_dead() else None


def _take_lock(database: PostgresReads, member: PostgresMembership) -> bool:
    """Whether this connection has the leader's advisory lock, once."""
    key = member.place.worker_key
    found: bool = database.execute(
        "select case when exists (select 1 from pg_locks where locktype = 'advisory' and granted "
        "and pid = pg_backend_pid() and objsubid = 1 and (classid::bigint << 32 | objid::bigint) = ?) "
        "then true else pg_try_advisory_lock(?) end",
        (key, key),
    ).fetchall()[0][0]
    return found


def _free(row: LeaderRow, member: PostgresMembership) -> bool:
    if row.member is None or row.member == member.id or not row.lives:
        return True
    return row.holder is not None and row.holder.known_dead() and no_programs(member.store.member_programs(row.member))


def _left(row: LeaderRow, member: PostgresMembership) -> bool:
    """Whether a worker that is no member, and had the queue, said that it left, or is certain to be over."""
    if row.member is not None or row.owner is None or row.owner.known_dead():
        return True
    since = member.free_since.setdefault(row.owner.writer, time.monotonic())
    return time.monotonic() - since > row.owner.lease + GRACE


def _terminate(database: PostgresReads, row: LeaderRow) -> None:
    names = [f"concorde-trio {what} {(row.member or '')[:12]}" for what in ("member", "leader", "writer")]
    names.append(f"concorde-trio writer {row.writer}")
    database.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = any(?) and pid <> pg_backend_pid()",
        (names,),
    )


def _entered(database: PostgresReads, seen: LeaderRow, member: PostgresMembership) -> int | None:
    with database.connection.transaction():
        found = database.execute("select member from concorde_leader for update").fetchall()[0][0]
        if found != seen.member:
            return None
        if seen.member is not None and seen.member != member.id:
            database.execute("delete from concorde_leases where member = ?", (seen.member,))
            database.execute(
                "update concorde_members set state = 'dead', ended_at = now() where id = ? and state in ('live', 'draining')",
                (seen.member,),
            )
        epoch: int = database.execute(
            "update concorde_meta set epoch = epoch + 1, owner = ? returning epoch", (member.holder.as_text(),)
        ).fetchall()[0][0]
        database.execute("delete from concorde_writers where owns or used_at < now() - interval '30 days'")
        database.execute(
            "insert into concorde_writers (writer, commits, owns) values (?, 0, true) "
            "on conflict (writer) do update set owns = true, commits = 0",
            (member.id,),
        )
        database.execute("update concorde_leader set member = ?, since = now()", (member.id,))
        tell(database, member.place.fleet_channel, "leader")
        return epoch


def _lay_down(database: PostgresReads, member: PostgresMembership, epoch: int) -> None:
    with database.connection.transaction():
        mine = database.execute(
            "update concorde_leader set member = null, since = now() where member = ?", (member.id,)
        )
        if mine.rowcount:
            database.execute("update concorde_meta set owner = null where epoch = ?", (epoch,))
            database.execute("update concorde_writers set owns = false where writer = ?", (member.id,))
            tell(database, member.place.fleet_channel, "leader")
    database.execute("select pg_advisory_unlock_all()")


class PostgresLeadership:
    """The lead of one epoch. Its writes have a connection of their own."""

    def __init__(self, member: PostgresMembership, writer: ThreadWriter, epoch: int) -> None:
        self.epoch = epoch
        self._member = member
        self._writer = writer
        self._store = member.store

    async def apply(self, changes: Sequence[Change]) -> None:
        """A step of the leader's, in one commit."""
        self._member.check()
        work = LeaderApply(plan(changes), self.epoch, self._member.place.fleet_channel)
        await self._writer.write(work, self._store.patience * WORKER_PATIENCE)

    async def recall(self, run_ids: Iterable[str] | None = None) -> set[str]:
        """What was offered and nobody had taken."""
        work = RecallOffers(None if run_ids is None else tuple(run_ids))
        recalled: set[str] = await self._writer.write(work, self._store.patience * WORKER_PATIENCE)
        return recalled

    async def look(self) -> FoundRuns:
        """What became of all offers, once those who are gone are marked dead."""
        over, holders = await self._store.read(fleet_reads.ending)
        gone = [member for member, holder in holders.items() if await self._dead_here(member, holder.known_dead)]
        if over or gone:
            try:
                dead = await self._writer.write(EndLeases(gone), self._store.patience)
            except StoreError as error:
                if isinstance(error, LeaseLost):
                    raise
                logger.info("a member whose lease is over cannot be marked dead yet: %s", error)
            else:
                for member in dead:
                    logger.warning("member %s of the fleet of %s is dead", member[:12], self._member.place.name)
        return await self._store.read(fleet_reads.found_runs)

    async def _dead_here(self, member: str, known_dead: Callable[[], bool]) -> bool:
        """Whether a member of this machine is dead, and its programs with it (REC-6)."""
        if member == self._member.id or not known_dead():
            return False
        if not no_programs(self._store.member_programs(member)):
            return False
        await sweep_queue(f"{self._store.queue}.{member}")
        return True

    async def over(self) -> FoundRuns:
        """Outcomes that were written."""
        return await self._store.read(fleet_reads.over_runs)

    async def others(self) -> bool:
        """Whether another member lives and stays."""
        return await self._store.read(partial(fleet_reads.others, member=self._member.id))

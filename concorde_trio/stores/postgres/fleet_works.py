"""What members of a fleet and its leader write, each under its fence: a row that says that it still may.

The law: a member's work shares the row of its membership, so that whoever marks it dead waits for what is under way, and
what comes later finds no row. A leader's writes are fenced by its writer's own row (``write_session``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import attrs

from concorde_trio._sansio.reports import Taken
from concorde_trio.errors import LeaseLost
from concorde_trio.signals.fleet import Execution, Finished
from concorde_trio.stores.change_plan import plan
from concorde_trio.stores.database import Reads, Writes
from concorde_trio.stores.postgres.pg_sql import PostgresWrites
from concorde_trio.stores.rows import read_run, usage_text
from concorde_trio.stores.session_works import write_sessions
from concorde_trio.stores.works import Apply, OwnWork, insert_signals

MOST_TOLD = 50
"""Runs or signals that one notification names: it has room for 8,000 bytes."""


def lives(database: Reads, member: str) -> bool:
    """Whether this member's lease is held, and nobody ends it until this transaction is over."""
    sql = "select 1 from concorde_members where id = ? and state in ('live', 'draining') for share"
    return database.execute(sql, (member,)).fetchone() is not None


def lost(member: str) -> LeaseLost:
    """What whoever writes in the name of a dead member is told."""
    return LeaseLost(f"the lease of member {member[:12]} of the fleet is over; nothing was written")


def tell(database: Reads, channel: str, word: str, about: Any = None) -> None:
    """Tell the fleet, once this transaction commits."""
    text = word if about is None else f"{word} {json.dumps(about)}"
    database.execute("select pg_notify(?, ?)", (channel, text))


@attrs.frozen
class MemberApply(Apply):
    """Changes of a session's, by the member that executes its run."""

    member: str = ""

    def before(self, database: Writes) -> None:
        """LeaseLost once the member is dead."""
        if not lives(database, self.member):
            raise lost(self.member)


@attrs.frozen
class LeaderApply(Apply):
    """A step of the leader's. What it offers is told to the members, and what it asks of them; ends take their rows away."""

    epoch: int = 0
    channel: str = ""

    def after(self, database: Writes) -> None:
        """Offers, stops, and the rows of what is over."""
        done = self.plan
        ended = [(run.id,) for run in done.runs.values() if run.ended_at is not None]
        if ended:
            database.execute_rows("delete_executions", ended)
        if done.offers:
            database.execute_rows("offer_runs", [(each.run_id, each.position, self.epoch) for each in done.offers])
            tell(database, self.channel, "offer")
        if done.stops:
            database.execute_rows(
                "stop_executions", [(each.run_id, each.reason, each.state.value) for each in done.stops]
            )
            tell(database, self.channel, "stop")
        settled = [signal.id for signal in done.signals.values() if signal.settled_at is not None]
        for start in range(0, len(settled), MOST_TOLD):
            tell(database, self.channel, "settled", settled[start : start + MOST_TOLD])


@attrs.frozen
class TakeOffers(OwnWork):
    """A member takes runs that are offered; gives Executions, in run order."""

    member: str
    limit: int
    now: float
    channel: str

    def write(self, database: PostgresWrites) -> list[Execution]:
        """LeaseLost once the member is dead."""
        if not lives(database, self.member):
            raise lost(self.member)
        rows = database.execute_named("take_offers", (self.limit, self.member, self.now)).fetchall()
        found = sorted(
            (Execution(read_run(row[:-2]), row[-2], row[-1]) for row in rows), key=lambda each: each.run.position
        )
        for start in range(0, len(found), MOST_TOLD):
            ids = [each.run.id for each in found[start : start + MOST_TOLD]]
            tell(database, self.channel, "taken", {"member": self.member, "at": self.now, "runs": ids})
        return found


@attrs.frozen
class FinishExecutions(OwnWork):
    """A member writes how runs ended; gives the ids of those that were written."""

    member: str
    ends: Sequence[Finished]
    channel: str

    @property
    def wakes(self) -> bool:  # type: ignore[override]
        """What is emitted with an end is new."""
        return any(each.with_end for each in self.ends)

    def write(self, database: PostgresWrites) -> set[str]:
        """A dead member writes nothing."""
        if not lives(database, self.member):
            return set()
        rows = [
            (
                each.run_id,
                self.member,
                each.outcome.state.value,
                each.outcome.error,
                each.outcome.text,
                usage_text(each.outcome.usage),
            )
            for each in self.ends
        ]
        written = {run_id for (run_id,) in database.select_rows("finish_executions", rows)}
        with_ends = [plan(each.with_end) for each in self.ends if each.run_id in written and each.with_end]
        insert_signals(database, [new for each in with_ends for new in each.emitted])
        for each in with_ends:
            write_sessions(database, each.sessions)
        if written:
            tell(database, self.channel, "over")
        return written


@attrs.frozen
class RecallOffers(OwnWork):
    """The leader takes back what nobody has taken (None: all); gives the ids."""

    run_ids: Sequence[str] | None

    def write(self, database: PostgresWrites) -> set[str]:
        """Whoever is taking one at this moment is waited for, and keeps it."""
        ids = None if self.run_ids is None else list(self.run_ids)
        return {run_id for (run_id,) in database.execute_named("recall_offers", (ids, ids)).fetchall()}


@attrs.frozen
class EndLeases(OwnWork):
    """Members whose lease is over, and these, are dead from now on; gives their ids."""

    members: Sequence[str]

    def write(self, database: PostgresWrites) -> list[str]:
        """What they are writing is cut off: one that is stopped would hold its row for ever."""
        database.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name in ("
            "select 'concorde-trio writer ' || writer from concorde_members left join concorde_leases on member = id "
            "where state in ('live', 'draining') and (until < clock_timestamp() or id = any(?)))",
            (list(self.members),),
        )
        return [member for (member,) in database.execute_named("end_leases", (list(self.members),)).fetchall()]


def taken_of(about: Any) -> list[Taken]:
    """What a notification ``taken`` names."""
    return [Taken(run_id, about["member"], about["at"]) for run_id in about["runs"]]

"""What is read of a fleet: who is there, who leads, what became of offers.

The law: what the leader asks for at every end costs in the rows that come back.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any
from urllib.parse import urlsplit

import attrs

from concorde_trio._sansio.reports import Taken
from concorde_trio.records import RunOutcome, RunState
from concorde_trio.signals.fleet import FleetMember, FleetView, FoundRuns, LeaderSeen, StopAsked
from concorde_trio.stores.database import Reads
from concorde_trio.stores.postgres.holder import Holder, read_holder
from concorde_trio.stores.queries import bound
from concorde_trio.stores.rows import read_usage

MOST_OVER = 500
"""Outcomes that are read at once."""

_OUTCOME = "run_id, member, taken_at, outcome, executions.error, text, usage"
_LEADER = """
select
    leader.member, members.state, members.holder, members.writer, members.url, members.host,
    (select until < clock_timestamp() from concorde_leases where member = leader.member), owner
from concorde_leader as leader cross join concorde_meta left join concorde_members as members on members.id = leader.member
"""


@attrs.frozen(kw_only=True)
class LeaderRow:
    """Who leads, as it stands in the database; ``expired``: None if its lease is gone. ``owner``: who has the queue.

    ``url``: of its agent server, None if there is none that can be asked from this machine.
    """

    member: str | None
    state: str | None
    holder: Holder | None
    writer: str | None
    url: str | None
    expired: bool | None
    owner: Holder | None

    @property
    def lives(self) -> bool:
        """Whether a member leads whose lease is not over."""
        return self.state in ("live", "draining") and self.expired is False


def leader_row(database: Reads) -> LeaderRow:
    """The one row."""
    member, state, holder, writer, url, host, expired, owner = database.execute(_LEADER).fetchone()
    return LeaderRow(
        member=member,
        state=state,
        holder=read_holder(holder),
        writer=writer,
        url=from_here(url, host),
        expired=expired,
        owner=read_holder(owner),
    )


def leader(database: Reads) -> LeaderSeen | None:
    """The member that leads, if it lives."""
    row = leader_row(database)
    return LeaderSeen(row.member, row.url) if row.member is not None and row.lives else None


def found_runs(database: Reads) -> FoundRuns:
    """What became of every offer that was taken."""
    rows = database.execute(
        f"select {_OUTCOME}, state from concorde_executions as executions "
        "left join concorde_members on concorde_members.id = member where member is not null order by position"
    ).fetchall()
    over = [_over(row) for row in rows if row[3] is not None]
    going = [(Taken(row[0], row[1], row[2]), row[7]) for row in rows if row[3] is None]
    return FoundRuns(
        taken=tuple(taken for taken, state in going if state in ("live", "draining")),
        over=tuple(over),
        lost=tuple(taken for taken, state in going if state not in ("live", "draining")),
    )


def over_runs(database: Reads) -> FoundRuns:
    """Outcomes that members have written, in run order."""
    rows = database.execute(
        f"select {_OUTCOME} from concorde_executions as executions where outcome is not null order by position limit ?",
        (MOST_OVER,),
    ).fetchall()
    return FoundRuns(over=tuple(_over(row) for row in rows))


def _over(row: tuple[Any, ...]) -> tuple[Taken, RunOutcome]:
    run_id, member, taken_at, outcome, error, text, usage = row[:7]
    return Taken(run_id, member, taken_at), RunOutcome(
        state=RunState(outcome), error=error, text=text, usage=read_usage(usage)
    )


def stops(database: Reads, member: str) -> list[StopAsked]:
    """What is asked of a member's runs."""
    rows = database.execute(
        "select run_id, stop_reason, stop_state from concorde_executions "
        "where member = ? and outcome is null and stop_reason is not null",
        (member,),
    ).fetchall()
    return [StopAsked(run_id, reason, RunState(state)) for run_id, reason, state in rows]


def others(database: Reads, member: str) -> bool:
    """Whether another member lives that is not about to leave."""
    found: bool = database.execute(
        "select exists (select 1 from concorde_members join concorde_leases on concorde_leases.member = id "
        "where state = 'live' and id <> ? and until > clock_timestamp())",
        (member,),
    ).fetchone()[0]
    return found


def session_elsewhere(database: Reads, session: str, member: str) -> tuple[str | None] | None:
    """The URL of another living member that executes a run of this session, None in the tuple if it cannot be asked."""
    found = database.execute(
        "select url, host from concorde_executions as executions join runs on runs.id = run_id "
        "join concorde_members on concorde_members.id = member "
        "where outcome is null and runs.session = ? and member <> ? and concorde_members.state in ('live', 'draining')",
        (bound(session), member),
    ).fetchone()
    return None if found is None else (from_here(*found),)


def from_here(url: str | None, host: str | None) -> str | None:
    """A member's URL, None if it is of another machine's loopback: here, something else would answer there."""
    if url is None or host == socket.gethostname():
        return url
    name = urlsplit(url).hostname or ""
    try:
        local = ipaddress.ip_address(name).is_loopback
    except ValueError:
        local = name == "localhost"
    return None if local else url


def ending(database: Reads) -> tuple[bool, dict[str, Holder]]:
    """Whether a lease is over that nobody has ended, and who every member is that lives."""
    rows = database.execute(
        "select id, holder, until is null or until < clock_timestamp() from concorde_members "
        "left join concorde_leases on concorde_leases.member = id where state in ('live', 'draining')"
    ).fetchall()
    holders = {member: read_holder(text) for member, text, _ in rows}
    return any(over for _, _, over in rows), {
        member: holder for member, holder in holders.items() if holder is not None
    }


def fleet(database: Reads) -> FleetView:
    """Who leads, who is there, and what each executes; members that are gone are shown for an hour."""
    database.execute("begin")
    try:
        now = "extract(epoch from clock_timestamp())::double precision"
        epoch, leading = database.execute(
            "select epoch, member from concorde_meta cross join concorde_leader"
        ).fetchone()
        rows = database.execute(
            "select id, url, host, pid, capacity, state, extract(epoch from started_at)::double precision, lease, "
            "extract(epoch from until - clock_timestamp())::double precision from concorde_members "
            "left join concorde_leases on concorde_leases.member = id "
            "where state in ('live', 'draining') or ended_at > now() - interval '1 hour' order by started_at, id"
        ).fetchall()
        running: dict[str, list[str]] = {}
        for member, run_id in database.execute(
            "select member, run_id from concorde_executions where member is not null and outcome is null order by position"
        ).fetchall():
            running.setdefault(member, []).append(run_id)
        offered, oldest_offer = database.execute(
            f"select count(*), {now} - extract(epoch from min(offered_at))::double precision "
            "from concorde_executions where member is null"
        ).fetchone()
        unclaimed, oldest = database.execute(
            f"select count(*), {now} - min(emitted_at) from signals where state = 'pending'"
        ).fetchone()
    finally:
        database.execute("rollback")
    return FleetView(
        epoch=epoch,
        leader=leading,
        members=tuple(_member(row, leading, running) for row in rows),
        offered=offered,
        oldest_offer=oldest_offer,
        unclaimed=unclaimed,
        oldest_unclaimed=oldest,
    )


def _member(row: tuple[Any, ...], leading: str | None, running: dict[str, list[str]]) -> FleetMember:
    id_, url, host, pid, capacity, state, started_at, lease, left = row
    return FleetMember(
        id=id_,
        url=url,
        host=host,
        pid=pid,
        capacity=capacity,
        state=state,
        started_at=started_at,
        lease=lease,
        lease_left=left,
        leads=id_ == leading,
        running=tuple(running.get(id_, ())),
    )

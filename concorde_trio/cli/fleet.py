"""``fleet``: who works on a queue in PostgreSQL, who leads, what each executes, and how far behind all of them are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import trio

from concorde_trio.cli.options import json_option, store_option
from concorde_trio.cli.queue import database_path, store_at
from concorde_trio.cli.show import Cell, document, note, plural, say, table
from concorde_trio.signals.fleet import FleetView, for_fleet

if TYPE_CHECKING:
    from concorde_trio.signals.fleet import FleetMember, FleetStore

SHOWN = 3
"""Runs of a member that are named; --json has all."""


@click.command()
@store_option
@json_option
def fleet(store: str | None, as_json: bool) -> None:
    """Show the processes that work on a queue in PostgreSQL.

    Who leads, in which epoch; of each member its state, the rest of its lease,
    its capacity and the runs that it executes; and what waits: runs that nobody
    has taken, and signals that nobody has claimed. Members that are gone are
    shown for an hour.

    \b
    Examples:
      concorde-trio fleet --store postgresql://concorde@db/agents
      concorde-trio fleet --json
    """
    found = store_at(database_path(store))
    if not for_fleet(found):
        raise click.UsageError(
            "a queue in SQLite has one worker and no fleet; see `concorde-trio top`, or name one in PostgreSQL (--store URL)."
        )
    view = trio.run(_view, found)
    if as_json:
        document(view.as_json())
    else:
        _show(view)


async def _view(store: FleetStore) -> FleetView:
    async with store.open():
        return await store.fleet()


def _show(view: FleetView) -> None:
    if view.members:
        table(
            ("MEMBER", "PROCESS", "STATE", "LEASE LEFT", "RUNS", "URL"),
            [_row(member) for member in view.members],
        )
    leads = f"member {view.leader[:12]} leads" if view.leader is not None else "nobody leads"
    say(f"{leads}, in epoch {view.epoch}; {plural(len(_living(view)), 'member')} alive")
    offered = "" if view.oldest_offer is None else f", the oldest for {view.oldest_offer:.1f} s"
    unclaimed = "" if view.oldest_unclaimed is None else f", the oldest for {view.oldest_unclaimed:.1f} s"
    say(f"{plural(view.offered, 'run')} offered{offered}; {plural(view.unclaimed, 'signal')} not claimed{unclaimed}")
    if not _living(view):
        note("no process works on this queue: start one with `concorde-trio serve`")


def _living(view: FleetView) -> list[FleetMember]:
    return [member for member in view.members if member.state in ("live", "draining")]


def _row(member: FleetMember) -> list[Cell]:
    left = "" if member.lease_left is None else f"{member.lease_left:.1f} of {member.lease:g} s"
    of = "" if member.capacity is None else f" of {member.capacity}"
    named = ", ".join(member.running[:SHOWN]) + (" …" if len(member.running) > SHOWN else "")
    return [
        Cell(member.id[:12]),
        Cell(f"{member.pid} on {member.host}"),
        Cell("leads" if member.leads and member.state == "live" else member.state),
        Cell(left),
        Cell(f"{len(member.running)}{of}{': ' if named else ''}{named}"),
        Cell(member.url or ""),
    ]

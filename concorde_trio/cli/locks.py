"""``why`` and ``locks``: who waits for whom, and since when (LCK-7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from concorde_trio.cli.options import LIMIT, json_option, queue_options
from concorde_trio.cli.queue import database_path
from concorde_trio.cli.show import Cell, at, document, name_cell, note, say, table, visible
from concorde_trio.cli.sources import open_source, run_or_signal
from concorde_trio.cli.words import tell_if_unserved, why_in_words

if TYPE_CHECKING:
    from concorde_trio.signals.documents import Document


@click.command()
@click.argument("target", metavar="ID")
@queue_options
@json_option
def why(target: str, store: str | None, direct: bool, as_json: bool) -> None:
    """Say why a run waits, or each waiting run of a signal.

    For whom, on which session or resource, since when, at which place in the
    line, and who is at the root of the chain.

    \b
    Examples:
      concorde-trio why 3f1c0a9b7d5e4c2a8f60-1
      concorde-trio why 3f1c0a9b7d5e4c2a8f60
      concorde-trio why 3f1c0a9b7d5e4c2a8f60-1 --json
    """
    path = database_path(store)
    source = open_source(path, direct=direct)
    what, found = run_or_signal(source, target)
    if what == "run":
        if as_json:
            document(_reason(found))
        else:
            _say_why([found])
            tell_if_unserved(path, found)
        return
    page = source.runs(signal=target, session=None, resource=None, state="pending", limit=LIMIT)
    waiting = page["runs"][::-1]
    if as_json:
        document({"id": found["id"], "state": found["state"], "runs": [_reason(run) for run in waiting]})
        return
    if waiting:
        _say_why(waiting)
    else:
        unclaimed = ", and not claimed yet" if found["state"] == "pending" else ""
        say(visible(f"signal {found['id']} is {found['state']}{unclaimed}: no run of it waits."))
    if page["next"] is not None:
        note(f"the last {len(waiting)} of its waiting runs; there are more")
    tell_if_unserved(path, found)


def _reason(run: Document) -> Document:
    shown = ("id", "signal_id", "session", "resources", "state", "stopping", "queued_at", "started_at", "ended_at")
    return {**{name: run[name] for name in shown}, "error": run["error"], "waits_for": run["waits_for"]}


def _say_why(runs: list[Document]) -> None:
    for run in runs:
        for line in why_in_words(run):
            say(visible(line))


@click.command()
@queue_options
@json_option
def locks(store: str | None, direct: bool, as_json: bool) -> None:
    """Show every session and resource that is held or waited for.

    \b
    Examples:
      concorde-trio locks
      concorde-trio locks --store office.db --json
    """
    path = database_path(store)
    found = open_source(path, direct=direct).locks()
    if as_json:
        document(found)
        return
    if found["locks"]:
        table(("LOCK", "NAME", "HELD BY", "SINCE", "WAITING, IN ORDER"), [_row(lock) for lock in found["locks"]])
        tell_if_unserved(path, *(run for lock in found["locks"] for run in lock["holders"] + lock["waiting"]))
    else:
        note("no locks are held")


def _row(lock: Document) -> tuple[Cell | str, ...]:
    holders = lock["holders"]
    more = [f"and {lock['more_waiting']} more"] if lock["more_waiting"] else []
    return (
        Cell(lock["space"], fixed=True),
        name_cell(lock["name"]),
        Cell(", ".join(f"{run['run_id']} ({run['state']})" for run in holders) or "-", "bold", whole=True),
        Cell(at(holders[0]["since"]) if holders else "-", whole=True),
        Cell(", ".join([run["run_id"] for run in lock["waiting"]] + more) or "-", whole=True),
    )

"""``why`` and ``locks``: who waits for whom, and since when (LCK-7)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from concorde_trio.cli.chain import chain_of, view_of
from concorde_trio.cli.options import LIMIT, json_option, queue_options
from concorde_trio.cli.queue import database_path
from concorde_trio.cli.session_source import ask_sessions
from concorde_trio.cli.sessions import session_waits
from concorde_trio.cli.show import Cell, at, document, name_cell, note, say, table, visible
from concorde_trio.cli.sources import Source, open_source, run_or_signal
from concorde_trio.cli.stored_snapshot import snapshot_of
from concorde_trio.cli.words import chain_in_words, tell_if_unserved, why_in_words
from concorde_trio.errors import InvalidName, UnknownId
from concorde_trio.records import check_name

if TYPE_CHECKING:
    from concorde_trio.signals.documents import Document


@click.command()
@click.argument("target", metavar="RUN")
@queue_options
@json_option
def why(target: str, store: str | None, direct: bool, as_json: bool) -> None:
    """Say why a run waits, with the whole chain to its root.

    For whom, on which session or resource, since when, at which place in the
    line, and then everybody on the chain up to the run that waits for nobody.
    The id of a signal tells of each waiting run of it; the name of a session
    tells what the session waits for.

    \b
    Examples:
      concorde-trio why 3f1c0a9b7d5e4c2a8f60-1
      concorde-trio why 3f1c0a9b7d5e4c2a8f60
      concorde-trio why ann
      concorde-trio why 3f1c0a9b7d5e4c2a8f60-1 --json
    """
    path = database_path(store)
    source = open_source(path, direct=direct)
    try:
        what, found = run_or_signal(source, target)
    except UnknownId:
        _why_session(path, source, target, direct=direct, as_json=as_json)
        return
    if what == "run":
        chain = _Chain(path, found, direct=direct)
        if as_json:
            document({**_reason(found), "chain": chain.as_json()})
        else:
            _say_why(found, chain)
            tell_if_unserved(path, found)
        return
    page = source.runs(signal=target, session=None, resource=None, state="pending", limit=LIMIT)
    if as_json:
        document({"id": found["id"], "state": found["state"], "runs": _reasons(page)})
        return
    unclaimed = ", and not claimed yet" if found["state"] == "pending" else ""
    _say_page(page, f"signal {found['id']} is {found['state']}{unclaimed}: no run of it waits.")
    tell_if_unserved(path, found)


class _Chain:
    """Everybody on the chain that a waiting run stands at the end of, itself first; nobody, where it does not wait."""

    def __init__(self, path: Path, run: Document, *, direct: bool) -> None:
        """``run``: its document. The chain is of one moment, a little later."""
        self.links: list[Document] = []
        self.signals: dict[str, Document] = {}
        self.at = 0.0
        if run["waits_for"] is not None:
            found = snapshot_of(path, direct=direct)
            self.links = chain_of({row["id"]: row for row in found["runs"]}, run["id"])
            self.signals = {row["id"]: row for row in found["signals"]}
            self.at = found["at"]

    def as_json(self) -> list[Document]:
        """Each as a run in the lock table, with what it misses."""
        return [{**view_of(run, self.signals), "waits_for": run["waits_for"]} for run in self.links]

    def say(self) -> None:
        """A line for each, where there is more to tell than that it waits for the root."""
        if len(self.links) > 2:
            say("  the chain:")
            for line in chain_in_words(self.links, self.signals, self.at):
                say(visible(f"    {line}"))


def _why_session(path: Path, source: Source, name: str, *, direct: bool, as_json: bool) -> None:
    try:
        found = ask_sessions(path, lambda sessions: sessions.session(name), direct=direct)
    except UnknownId:
        _why_runs_of(path, source, name, as_json=as_json)
        return
    waiting = found["lock"]
    run = None if waiting is None else source.run(waiting["run"]["run_id"])
    chain = None if run is None else _Chain(path, run, direct=direct)
    if as_json:
        shown = {each: found[each] for each in ("name", "status", "waiting_on", "run", "holds", "approvals", "lock")}
        document({**shown, "chain": [] if chain is None else chain.as_json()})
        return
    for line in session_waits(found):
        say(visible(line))
    if run is not None:
        _say_why(run, chain)
        tell_if_unserved(path, run)


def _why_runs_of(path: Path, source: Source, session: str, *, as_json: bool) -> None:
    """The session is one of runs alone: their runtime keeps none, or has not made it yet."""
    with suppress(InvalidName):
        check_name(session, "session")
        page = source.runs(signal=None, session=session, resource=None, state="pending", limit=LIMIT)
        known = page["runs"] or source.runs(signal=None, session=session, resource=None, state=None, limit=1)["runs"]
        if known:
            if as_json:
                document({"name": session, "runs": _reasons(page)})
            else:
                _say_page(page, f'no run of session "{session}" waits.')
                tell_if_unserved(path, known[0])
            return
    raise UnknownId(f"no run and no signal has the id {session}, and no session has this name")


def _reasons(page: Document) -> list[Document]:
    return [_reason(run) for run in page["runs"][::-1]]


def _say_page(page: Document, otherwise: str) -> None:
    for run in page["runs"][::-1]:
        _say_why(run)
    if not page["runs"]:
        say(visible(otherwise))
    if page["next"] is not None:
        note(f"the last {len(page['runs'])} of its waiting runs; there are more")


def _reason(run: Document) -> Document:
    shown = ("id", "signal_id", "session", "resources", "state", "stopping", "queued_at", "started_at", "ended_at")
    return {**{name: run[name] for name in shown}, "error": run["error"], "waits_for": run["waits_for"]}


def _say_why(run: Document, chain: _Chain | None = None) -> None:
    *lines, last = why_in_words(run)
    for line in lines:
        say(visible(line))
    if chain is not None:
        chain.say()
    say(visible(last))


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

"""``signals`` and ``runs``: a table of the newest, or one with everything that is known of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from concorde_trio.cli.options import follow_option, json_option, limit_option, queue_options
from concorde_trio.cli.queue import database_path
from concorde_trio.cli.show import (
    Cell,
    at,
    document,
    fields,
    first_line,
    id_cell,
    json_text,
    lasting,
    name_cell,
    note,
    say,
    state_cell,
    table,
    time_cell,
    visible_lines,
)
from concorde_trio.cli.sources import expecting_signal, open_source, run_or_signal
from concorde_trio.cli.words import tell_if_unserved, waits_in_short, why_in_words

if TYPE_CHECKING:
    from concorde_trio.signals.documents import Document

SIGNAL_STATES = ("pending", "processing", "done", "failed")
RUN_STATES = ("pending", "running", "done", "failed", "limited", "cancelled")


@click.command()
@click.argument("signal_id", metavar="[ID]", required=False)
@click.option("--kind", help="Only signals of this kind.")
@click.option("--state", type=click.Choice(SIGNAL_STATES), help="Only signals in this state.")
@limit_option
@follow_option
@queue_options
@json_option
def signals(
    signal_id: str | None,
    kind: str | None,
    state: str | None,
    limit: int,
    following: bool,
    store: str | None,
    direct: bool,
    as_json: bool,
) -> int:
    """List signals, newest first, or show one with its runs.

    With --follow, oldest first, and then a line for each that is emitted,
    claimed or settled, as it happens, until Ctrl-C. It goes on over restarts
    of the worker. With --json, a JSON document on each line: the signals of
    the list, then the events.

    \b
    Examples:
      concorde-trio signals
      concorde-trio signals --kind message.received --state failed --limit 10
      concorde-trio signals --follow
      concorde-trio signals 3f1c0a9b7d5e4c2a8f60
    """
    if signal_id is not None:
        _refuse_filters(kind=kind, state=state)
        _refuse_following(following)
    path = database_path(store)
    if following:
        from concorde_trio.cli.follow import follow
        from concorde_trio.cli.followed import SignalFollower

        return follow(SignalFollower(path, kind=kind, state=state, limit=limit, as_json=as_json), direct=direct)
    source = open_source(path, direct=direct)
    if signal_id is not None:
        with expecting_signal(source, signal_id):
            found = source.signal(signal_id)
        if as_json:
            document(found)
        else:
            show_signal(found)
            tell_if_unserved(path, found)
        return 0
    page = source.signals(kind=kind, state=state, limit=limit)
    if as_json:
        document(page)
        return 0
    rows = [
        (
            id_cell(row["id"]),
            name_cell(row["kind"]),
            state_cell(row["state"]),
            time_cell(at(row["emitted_at"])),
            time_cell(_took(row["emitted_at"], row["settled_at"])),
            first_line(row["error"]),
        )
        for row in page["signals"]
    ]
    _print(("ID", "KIND", "STATE", "EMITTED", "SETTLED IN", "ERROR"), rows, page, "signals")
    tell_if_unserved(path, *page["signals"])
    return 0


@click.command()
@click.argument("target", metavar="[ID]", required=False)
@click.option("--signal", "signal_id", metavar="ID", help="Only runs of this signal.")
@click.option("--session", help="Only runs of this session.")
@click.option("--resource", help="Only runs that need this resource.")
@click.option("--state", type=click.Choice(RUN_STATES), help="Only runs in this state.")
@limit_option
@follow_option
@queue_options
@json_option
def runs(
    target: str | None,
    signal_id: str | None,
    session: str | None,
    resource: str | None,
    state: str | None,
    limit: int,
    following: bool,
    store: str | None,
    direct: bool,
    as_json: bool,
) -> int:
    """List runs, newest first, or show one.

    A waiting run is shown with the run that it waits for. The id of a signal
    lists its runs.

    With --follow, oldest first, and then a line for each that is queued,
    started, told to stop or ended, as it happens, until Ctrl-C. It goes on
    over restarts of the worker. With --json, a JSON document on each line:
    the runs of the list, then the events.

    \b
    Examples:
      concorde-trio runs
      concorde-trio runs --session user_ann --state pending
      concorde-trio runs --follow --session user_ann
      concorde-trio runs --signal 3f1c0a9b7d5e4c2a8f60
      concorde-trio runs 3f1c0a9b7d5e4c2a8f60-1
    """
    if target is not None:
        _refuse_filters(signal=signal_id, session=session, resource=resource, state=state)
    path = database_path(store)
    source = open_source(path, direct=direct)
    if target is not None:
        what, found = run_or_signal(source, target)
        if what == "run":
            _refuse_following(following)
            if as_json:
                document(found)
            else:
                show_run(found)
                tell_if_unserved(path, found)
            return 0
        signal_id = target
    elif signal_id is not None:
        with expecting_signal(source, signal_id):
            source.signal(signal_id)
    if following:
        from concorde_trio.cli.follow import follow
        from concorde_trio.cli.followed import RunFollower

        where = {"signal": signal_id, "session": session, "resource": resource, "state": state}
        return follow(RunFollower(path, **where, limit=limit, as_json=as_json), direct=direct)
    page = source.runs(signal=signal_id, session=session, resource=resource, state=state, limit=limit)
    if as_json:
        document(page)
        return 0
    _print(RUN_COLUMNS, [_run_row(row) for row in page["runs"]], page, "runs")
    tell_if_unserved(path, *page["runs"])
    return 0


RUN_COLUMNS = ("ID", "SESSION", "STATE", "WAITED", "RAN", "WAITS FOR, OR ERROR")


def _run_row(run: Document) -> tuple[Cell | str, ...]:
    waits = waits_in_short(run)
    return (
        id_cell(run["id"]),
        name_cell(run["session"]),
        state_cell(run["state"]) if run.get("stopping") is None else Cell("stopping", "yellow", fixed=True),
        time_cell(_so_far(run["queued_at"], run["started_at"] or run["ended_at"])),
        time_cell("-" if run["started_at"] is None else _so_far(run["started_at"], run["ended_at"])),
        Cell(waits, whole=True) if waits else first_line(run["error"]),
    )


def show_signal(signal: Document) -> None:
    """Everything that is known of one signal."""
    state = signal["state"] if signal["phase"] is None else f"{signal['state']} ({signal['phase']})"
    fields(
        [
            ("signal", id_cell(signal["id"])),
            ("kind", signal["kind"]),
            ("state", Cell(state, state_cell(signal["state"]).style)),
            ("key", signal["key"]),
            ("retry of", signal["retry_of"]),
            ("emitted", at(signal["emitted_at"])),
            ("claimed", _maybe(signal["claimed_at"])),
            ("settled", _maybe(signal["settled_at"])),
            ("interrupted", "by a crash or a stop" if signal["interrupted"] else None),
        ]
    )
    _block("error", signal["error"])
    say()
    say("payload")
    say(_indented(json_text(signal["payload"])))
    say()
    if signal["runs"]:
        table(RUN_COLUMNS, [_run_row(run) for run in signal["runs"]])
        if signal["next"] is not None:
            note(f"the last {len(signal['runs'])} of its runs; there are more")
    else:
        say("no runs")


def show_run(run: Document) -> None:
    """Everything that is known of one run."""
    usage = run["usage"]
    fields(
        [
            ("run", id_cell(run["id"])),
            ("signal", id_cell(run["signal_id"])),
            ("session", run["session"]),
            ("resources", ", ".join(run["resources"]) or None),
            ("state", state_cell(run["state"])),
            ("queued", at(run["queued_at"])),
            ("started", _maybe(run["started_at"])),
            ("ended", _maybe(run["ended_at"])),
            ("time limit", None if run["time_limit"] is None else lasting(run["time_limit"])),
            ("usage limit", None if run["usage_limit"] is None else f"{run['usage_limit']} tokens"),
            ("usage", None if usage is None else _usage(usage)),
        ]
    )
    if run["state"] in ("pending", "running"):
        say()
        for line in why_in_words(run):
            say(visible_lines(line))
    _block("error", run["error"])
    _block("prompt", run["prompt"])
    if run["context"] is not None:
        say()
        say("context")
        say(_indented(json_text(run["context"])))
    _block("answer", run["text"])


def _print(columns: tuple[str, ...], rows: Sequence[Sequence[Cell | str]], page: Document, what: str) -> None:
    if not rows:
        note(f"no {what}")
        return
    table(columns, rows)
    if page["next"] is not None:
        note(f"the newest {len(rows)}; there are more, --limit shows up to 200")


def _refuse_filters(**filters: str | None) -> None:
    for name, value in filters.items():
        if value is not None:
            raise click.UsageError(f"--{name} filters a list; leave it out to show one by its id.")


def _refuse_following(following: bool) -> None:
    if following:
        raise click.UsageError("--follow goes on after a list; leave it out to show one.")


def _block(title: str, text: str | None) -> None:
    if text is not None:
        say()
        say(title)
        say(_indented(visible_lines(text)))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


def _usage(usage: Document) -> str:
    cost = "" if usage["cost"] is None else f", cost {usage['cost']:g}"
    return f"{usage['input_tokens']} tokens in ({usage['cached_tokens']} cached), {usage['output_tokens']} out{cost}"


def _maybe(moment: float | None) -> str | None:
    return None if moment is None else at(moment)


def _took(begin: float | None, end: float | None) -> str:
    return "-" if begin is None or end is None else lasting(end - begin)


def _so_far(begin: float, end: float | None) -> str:
    """What lasts still is shown with a plus."""
    return f"{lasting(time.time() - begin)}+" if end is None else lasting(end - begin)

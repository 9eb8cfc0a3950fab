"""``top``: what is going on, live on a terminal, or one picture of it."""

from __future__ import annotations

import time
from pathlib import Path

import click

from concorde_trio.cli.options import json_option, queue_options
from concorde_trio.cli.queue import database_path
from concorde_trio.cli.show import document, say, table, visible
from concorde_trio.cli.stored_snapshot import snapshot_of


@click.command()
@click.option("--once", is_flag=True, help="Print one picture and end, as without a terminal.")
@queue_options
@json_option
def top(once: bool, store: str | None, direct: bool, as_json: bool) -> int:
    """Show what is going on: runs, sessions, locks and signals, as it happens.

    Runs with what is left of their time, or with whom they wait for; sessions
    with what they wait on and what holds them. Enter shows the whole chain of
    who the chosen run waits for, i interrupts, c cancels, ? tells of the other
    keys. It goes on over restarts of the worker, and shows what the database
    says while there is none. Without a terminal it prints one picture.

    \b
    Examples:
      concorde-trio top
      concorde-trio top --once
      concorde-trio top --json --store office.db
    """
    path = database_path(store)
    if as_json:
        document(snapshot_of(path, direct=direct))
        return 0
    if not once:
        from concorde_trio.cli.terminal import is_interactive

        if is_interactive():
            from concorde_trio.cli.top_live import run_top

            return run_top(path, direct=direct)
    _print(path, direct=direct)
    return 0


def _print(path: Path, *, direct: bool) -> None:
    from concorde_trio.cli.picture import Picture
    from concorde_trio.cli.top_rows import sections, standing_of, summary

    picture = Picture()
    picture.begin(snapshot_of(path, direct=direct))
    say(visible(standing_of(picture.worker)))
    say(visible(summary(picture)))
    for section in sections(picture, time.time()):
        if section.keys:
            say()
            table(section.columns, section.cells(0, len(section.keys)))
            if section.more:
                say(f"and {section.more}")

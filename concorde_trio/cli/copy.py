"""``copy``: take a stopped queue to another place, from SQLite to PostgreSQL or back. The source stays as it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import click

from concorde_trio.cli.options import json_option
from concorde_trio.cli.queue import database_path, is_postgres, sqlite_path
from concorde_trio.cli.show import document, note, plural, say, visible

if TYPE_CHECKING:
    from concorde_trio.stores.copying import Place

PATIENCE = 1.0
"""Seconds after which a person is told how far it is, and then how often."""


@click.command()
@click.argument("source", metavar="SRC")
@click.argument("destination", metavar="DST")
@json_option
def copy(source: str, destination: str, as_json: bool) -> None:
    """Copy a stopped queue to another place: a path, or postgresql://USER@HOST/DB[?schema=NAME].

    Signals, runs, sessions with their transcripts, inputs, requests and schedules go along, and no number that SRC ever gave out is
    given out again. SRC must have no worker, and DST no queue, or one without rows. DST is compared with SRC before it
    counts; on an error it stays as it was. SRC is only read: serve one of the two from then on. Outputs of tools that were
    kept whole stay where transcripts say that they are.

    \b
    Examples:
      concorde-trio copy concorde.db postgresql://concorde@db/agents
      concorde-trio copy 'postgresql://concorde@db/agents?schema=test' laptop.db
      concorde-trio copy old.db new.db --json
    """
    from concorde_trio.stores.copying import copy_queue

    database_path(source)  # a misspelt one is refused, and nothing is made
    places = (_place(source), _place(destination))
    if places[0].name == places[1].name:
        raise click.UsageError(f"SRC and DST are the same queue, {visible(places[0].name)}; name another DST.")
    with ExitStack() as stack:
        copied = copy_queue(*places, _Bar(stack) if sys.stderr.isatty() else _Lines())
    if as_json:
        tables = {name: {"rows": rows, "sha256": copied.digests[name]} for name, rows in copied.rows.items()}
        document({"source": places[0].name, "destination": places[1].name, "tables": tables})
        return
    rows = copied.rows
    inputs = plural(rows["inputs"], "input")
    say(
        f"copied {plural(rows['signals'], 'signal')}, {plural(rows['runs'], 'run')}, {plural(rows['sessions'], 'session')} "
        f"with {plural(rows['messages'], 'message')} and {inputs}, {plural(rows['concorde_requests'], 'request')} and "
        f"{plural(rows['concorde_schedules'], 'schedule')}; all of it reads the same in both"
    )
    note(f"{places[0].name} is as it was; serve {places[1].name} from now on, and not both")


def _place(given: str) -> Place:
    if is_postgres(given):
        from concorde_trio.stores.urls import postgres_copy_place

        return postgres_copy_place(given)
    from concorde_trio.stores.sqlite_copy import SqliteCopyPlace

    return SqliteCopyPlace(sqlite_path(given))


class _Bar:
    """On a terminal: one bar, drawn once the copy has taken a while (Rich takes a tenth of a second to import)."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._began = time.monotonic()
        self._update: Callable[..., None] | None = None

    def __call__(self, what: str, done: int, of: int) -> None:
        if self._update is None:
            if time.monotonic() - self._began < PATIENCE:
                return
            from rich.console import Console
            from rich.progress import Progress

            progress = self._stack.enter_context(Progress(console=Console(stderr=True), transient=True))
            self._update = partial(progress.update, progress.add_task(what))
        self._update(description=what, completed=done, total=of)


class _Lines:
    """Elsewhere: a line on stderr now and then."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, what: str, done: int, of: int) -> None:
        if time.monotonic() - self._last >= PATIENCE:
            self._last = time.monotonic()
            note(f"{what}: {done:,} of {of:,} rows")

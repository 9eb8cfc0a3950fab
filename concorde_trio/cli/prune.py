"""``prune``: remove what was settled long ago. Works on the database itself, beside a worker or without one."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import attrs
import click
import trio

from concorde_trio.cli.options import Duration, json_option, store_option
from concorde_trio.cli.queue import database_path, store_at
from concorde_trio.cli.show import at, document, plural, say
from concorde_trio.sessions.output_folders import remove_outputs
from concorde_trio.signals.store import Pruned


@click.command()
@click.option("--older-than", type=Duration(), required=True, help="Settled longer ago than this: 30d, 12h, 45m.")
@click.option("--dry-run", is_flag=True, help="Say how many would be removed, and remove none.")
@click.option("--yes", is_flag=True, help="Do not ask. Needed where there is no terminal to ask on.")
@store_option
@json_option
def prune(older_than: float, dry_run: bool, yes: bool, store: str | None, as_json: bool) -> None:
    """Remove settled signals and their runs, and sessions not used since with their outputs, by age.

    It asks first, unless --yes is given. What is pending or processing is never removed, nor a session that waits.

    \b
    Examples:
      concorde-trio prune --older-than 30d
      concorde-trio prune --older-than 12h --dry-run
      concorde-trio prune --older-than 90d --yes --json
    """
    path = database_path(store)
    before = time.time() - older_than
    if not yes and not dry_run and not sys.stdin.isatty():
        raise click.UsageError(
            "nobody can be asked here, for stdin is no terminal; give --yes to remove, or --dry-run."
        )
    if dry_run or not yes:
        found = trio.run(_count, path, before)
        what = _what(found, before)
        if dry_run:
            _tell(as_json, f"would remove {what}", found, before, dry_run=True)
            return
        if not found.signals and not found.sessions:
            _tell(as_json, f"nothing was settled before {at(before)}", found, before)
            return
        if not click.confirm(f"Remove {what}?", err=True):
            raise click.ClickException("nothing was removed.")
    removed = trio.run(_prune, path, before)
    _tell(as_json, f"removed {_what(removed, before)}", removed, before)


def _what(pruned: Pruned, before: float) -> str:
    what = f"{plural(pruned.signals, 'signal')} settled before {at(before)}, and {plural(pruned.runs, 'run')} of theirs"
    return f"{what}; {plural(pruned.sessions, 'session')} not used since" if pruned.sessions else what


def _tell(as_json: bool, sentence: str, pruned: Pruned, before: float, *, dry_run: bool = False) -> None:
    if as_json:
        document({**attrs.asdict(pruned), "before": before, "dry_run": dry_run})
    else:
        say(sentence)


async def _count(path: Path, before: float) -> Pruned:
    store = store_at(path)
    async with store.open():
        return await store.prunable(before)


async def _prune(path: Path, before: float) -> Pruned:
    store = store_at(path)
    async with store.open():
        pruned = await store.prune(before)
        if pruned.sessions:
            await remove_outputs(Path(f"{path}.outputs"), store)
        return pruned

"""``prune``: remove what was settled long ago. Works on the database itself, beside a worker or without one."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
import trio

from concorde_trio.cli.options import Duration, json_option, store_option
from concorde_trio.cli.queue import database_path
from concorde_trio.cli.show import at, document, plural, say
from concorde_trio.cli.stored import BUSY_TIMEOUT
from concorde_trio.stores.sqlite import SqliteStore


@click.command()
@click.option("--older-than", type=Duration(), required=True, help="Settled longer ago than this: 30d, 12h, 45m.")
@click.option("--dry-run", is_flag=True, help="Say how many would be removed, and remove none.")
@click.option("--yes", is_flag=True, help="Do not ask. Needed where there is no terminal to ask on.")
@store_option
@json_option
def prune(older_than: float, dry_run: bool, yes: bool, store: str | None, as_json: bool) -> None:
    """Remove settled signals and their runs by age.

    It asks first, unless --yes is given. What is pending or processing is never removed.

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
        signals, runs = trio.run(_count, path, before)
        what = f"{plural(signals, 'signal')} settled before {at(before)}, and {plural(runs, 'run')} of theirs"
        if dry_run:
            _tell(as_json, f"would remove {what}", signals, runs, before, dry_run=True)
            return
        if not signals:
            _tell(as_json, f"nothing was settled before {at(before)}", 0, 0, before)
            return
        if not click.confirm(f"Remove {what}?", err=True):
            raise click.ClickException("nothing was removed.")
    signals, runs = trio.run(_prune, path, before)
    what = f"removed {plural(signals, 'signal')} settled before {at(before)}, and {plural(runs, 'run')} of theirs"
    _tell(as_json, what, signals, runs, before)


def _tell(as_json: bool, sentence: str, signals: int, runs: int, before: float, *, dry_run: bool = False) -> None:
    if as_json:
        document({"signals": signals, "runs": runs, "before": before, "dry_run": dry_run})
    else:
        say(sentence)


async def _count(path: Path, before: float) -> tuple[int, int]:
    old = "select id from signals where state in ('done', 'failed') and settled_at < ?"
    store = SqliteStore(path, busy_timeout=BUSY_TIMEOUT)
    async with store.open(), store.transaction() as tx:
        signals = await tx.execute(f"select count(*) from ({old})", (before,))
        runs = await tx.execute(f"select count(*) from runs where signal_id in ({old})", (before,))
    return signals[0][0], runs[0][0]


async def _prune(path: Path, before: float) -> tuple[int, int]:
    store = SqliteStore(path, busy_timeout=BUSY_TIMEOUT)
    async with store.open():
        pruned = await store.prune(before)
    return pruned.signals, pruned.runs

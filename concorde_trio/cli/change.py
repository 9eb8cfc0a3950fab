"""``cancel`` and ``retry``."""

from __future__ import annotations

import click

from concorde_trio.cli.options import json_option, queue_options
from concorde_trio.cli.queue import database_path
from concorde_trio.cli.show import document, note, say, visible
from concorde_trio.cli.sources import expecting_signal, is_served, open_source, run_or_signal


@click.command()
@click.argument("target", metavar="ID")
@queue_options
@json_option
def cancel(target: str, store: str | None, direct: bool, as_json: bool) -> None:
    """Cancel a run, or a signal with all its runs.

    It asks and does not wait: a run that runs keeps its locks until it has
    really ended. Without a worker the request is kept for the next one.

    \b
    Examples:
      concorde-trio cancel 3f1c0a9b7d5e4c2a8f60
      concorde-trio cancel 3f1c0a9b7d5e4c2a8f60-1 --json
    """
    path = database_path(store)
    source = open_source(path, direct=direct)
    what, found = run_or_signal(source, target)
    if what == "run":
        source.cancel_run(target)
    else:
        source.cancel_signal(target)
    served = is_served(path)
    if as_json:
        document({"id": found["id"], "what": what, "state": found["state"], "requested": True, "worker": served})
        return
    say(visible(f"asked for the end of {what} {found['id']}, which is {found['state']}"))
    if not served:
        note("no worker serves this queue now: the next one will do it before anything else")


@click.command()
@click.argument("signal_id", metavar="SIGNAL")
@queue_options
@json_option
def retry(signal_id: str, store: str | None, direct: bool, as_json: bool) -> None:
    """Emit a settled signal again.

    The new signal has the same kind and payload, is linked to the old one and
    joins at the tail. Its id is printed.

    \b
    Examples:
      concorde-trio retry 3f1c0a9b7d5e4c2a8f60
      concorde-trio retry 3f1c0a9b7d5e4c2a8f60 --json
    """
    source = open_source(database_path(store), direct=direct)
    with expecting_signal(source, signal_id):
        new = source.retry(signal_id)
    if as_json:
        document({"id": new, "retry_of": signal_id})
    else:
        say(visible(new))

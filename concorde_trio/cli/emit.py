"""``emit``: put a signal into the queue, and wait for it if asked to."""

from __future__ import annotations

import click

from concorde_trio._sansio import json_values
from concorde_trio.cli.options import json_option, queue_options, read_json
from concorde_trio.cli.queue import database_path
from concorde_trio.cli.show import document, say, visible
from concorde_trio.cli.sources import open_source
from concorde_trio.cli.waiting import wait_settled
from concorde_trio.records import check_name


@click.command()
@click.argument("kind")
@click.argument("payload", metavar="[JSON]", default="null")
@click.option("--key", help="A second emit with the same kind and key gives the first signal's id.")
@click.option("--wait", is_flag=True, help="Wait until it is settled and print how; exit status 1 if it failed.")
@click.option("--create", is_flag=True, help="Make the database if it is not there.")
@queue_options
@json_option
def emit(
    kind: str, payload: str, key: str | None, wait: bool, create: bool, store: str | None, direct: bool, as_json: bool
) -> int:
    """Put a signal into the queue and print its id.

    The payload is any JSON value, - reads it from stdin, and null if left out.
    The signal is stored durably when the id is printed, worker or no worker.

    \b
    Examples:
      concorde-trio emit message.received '{"user": "ann", "text": "hi"}'
      jq -c . message.json | concorde-trio emit message.received - --wait
      concorde-trio emit report.due --key report-2026-11-29 --store office.db
    """
    value = read_json(payload, "JSON")
    # What can never be stored is refused here, before anybody is asked.
    check_name(kind, "kind")
    json_values.encode(value)
    if key is not None:
        check_name(key, "key")
        # HTTP drops white space around a header, and a key must come as it was written.
        direct = direct or key != key.strip()
    path = database_path(store, create=create)
    source = open_source(path, direct=direct)
    signal_id = source.emit(kind, value, key)
    if not wait:
        if as_json:
            document({"id": signal_id})
        else:
            say(visible(signal_id))
        return 0
    if not as_json:
        say(visible(signal_id))
    return wait_settled(path, direct, signal_id, as_json=as_json)

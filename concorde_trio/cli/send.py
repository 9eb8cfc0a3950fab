"""``send``: say something to a session, worker or no worker, and wait for the answer if asked to."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import click

from concorde_trio.cli.options import decode, json_option, queue_options
from concorde_trio.cli.queue import database_path
from concorde_trio.cli.session_source import ask_sessions
from concorde_trio.cli.show import document, note, say, visible
from concorde_trio.cli.sources import is_served
from concorde_trio.errors import ServerGone, ServerSilent
from concorde_trio.records import check_name
from concorde_trio.server.endpoint import read_endpoint

if TYPE_CHECKING:
    from concorde_trio.signals.documents import Document


@click.command()
@click.argument("name")
@click.argument("text")
@click.option("--id", "input_id", help="Yours, for safe repeats: the same id and text are accepted once.")
@click.option("--sender", help="Who says it.")
@click.option("--wait", is_flag=True, help="Wait for the end of its turn and print the answer; 1 if the turn failed.")
@queue_options
@json_option
def send(
    name: str,
    text: str,
    input_id: str | None,
    sender: str | None,
    wait: bool,
    store: str | None,
    direct: bool,
    as_json: bool,
) -> int:
    """Say something to a session and print the input's id.

    TEXT is - for stdin. The input is stored durably when its id is printed;
    without a worker the next one takes it. A session begins with its first
    input.

    \b
    Examples:
      concorde-trio send ann "What is on my list?"
      concorde-trio send ann - --wait < question.txt
      concorde-trio send ann "Remind me" --id telegram-4711 --sender Ann
    """
    if text == "-":
        text = decode(sys.stdin.buffer.read(), "stdin", "TEXT")
    if not text.strip():
        raise click.BadParameter("an input needs a text that says something.", param_hint="'TEXT'")
    for value, what in ((name, "session"), (input_id, "input id"), (sender, "sender")):
        if value is not None:
            check_name(value, what)
    path = database_path(store)
    body = {"text": text, "id": input_id or uuid.uuid4().hex, "sender": sender}
    endpoint = read_endpoint(path) if wait and not direct else None
    if endpoint is not None:
        from concorde_trio.cli.asking import ask_and_wait

        try:
            return ask_and_wait(endpoint, name, body, as_json=as_json, tell_id=True)
        except (ServerGone, ServerSilent) as gone:
            note(f"{gone}; waiting for the next one")
    receipt = ask_sessions(path, lambda source: source.send(name, body), direct=direct)
    if as_json and not wait:
        document(receipt)
    elif not as_json and endpoint is None:
        say(visible(receipt["id"]))
    if receipt["again"] and not wait:
        note(f"it was sent before, and is {receipt['input']}")
    if wait:
        return _wait(path, receipt, direct=direct, as_json=as_json)
    if not is_served(path):
        note("no worker serves this queue now: the next one takes it")
    return 0


def _wait(path: Path, receipt: Document, *, direct: bool, as_json: bool) -> int:
    from concorde_trio.cli.waiting import wait_settled

    if receipt["signal_id"] is not None:
        return wait_settled(path, direct, receipt["signal_id"], as_json=as_json)
    if as_json:
        document(receipt)
    note(
        f"input {receipt['id']} is {receipt['input']}; a run that was in flight took it, `concorde-trio sessions` says more"
    )
    return 0 if receipt["input"] == "delivered" else 1

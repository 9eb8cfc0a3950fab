"""``chat``: a person talks to a session in a terminal, or a pipe asks it one thing.

The law: what a person types is an input like any other, queued while the session works, and shown to be. Nothing is
answered for them, and leaving ends nothing but the talk.
"""

from __future__ import annotations

import sys
import uuid
from typing import TYPE_CHECKING

import click

from concorde_trio.cli.options import decode, json_option, store_option
from concorde_trio.cli.queue import database_path
from concorde_trio.cli.session_source import serving
from concorde_trio.records import check_name

if TYPE_CHECKING:
    from concorde_trio.signals.documents import Document


@click.command()
@click.argument("name")
@click.option("--sender", help="Who you are: the transcript says who said what.")
@store_option
@json_option
def chat(name: str, sender: str | None, store: str | None, as_json: bool) -> int:
    """Talk to a session of a running worker.

    You see what it says as it says it, its calls and their results in short,
    and what it waits for. What you type while it works is queued. It asks:
    answer y or n. Ctrl-C interrupts its turn, a second one or Ctrl-D leaves.

    From a pipe all of stdin is one input; the answer is printed.

    \b
    Examples:
      concorde-trio chat ann
      echo "What is on my list?" | concorde-trio chat ann
      concorde-trio chat ann --json < question.txt
    """
    check_name(name, "session")
    if sender is not None:
        check_name(sender, "sender")
    if sys.stdin is None:
        raise click.UsageError("nothing to say: stdin is closed; write `echo TEXT | concorde-trio chat NAME`.")
    piped = as_json or not sys.stdin.isatty()
    text = decode(sys.stdin.buffer.read(), "stdin", "stdin") if piped else ""
    if piped and not text.strip():
        raise click.UsageError("nothing to say: stdin is empty; write `echo TEXT | concorde-trio chat NAME`.")
    endpoint = serving(database_path(store), "to talk to")
    if piped:
        from concorde_trio.cli.asking import ask_and_wait

        body: Document = {"text": text.rstrip("\n"), "id": uuid.uuid4().hex, "sender": sender}
        return ask_and_wait(endpoint, name, body, as_json=as_json)
    from concorde_trio.cli.talking import talk

    return talk(endpoint, name, sender)

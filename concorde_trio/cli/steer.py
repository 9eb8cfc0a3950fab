"""``interrupt``, ``approve`` and ``deny``: what only the worker that has the session in memory can do."""

from __future__ import annotations

import click

from concorde_trio.cli.client import ask
from concorde_trio.cli.options import json_option, store_option
from concorde_trio.cli.queue import database_path
from concorde_trio.cli.session_source import serving
from concorde_trio.cli.sessions import approval_in_words
from concorde_trio.cli.show import document, say, visible
from concorde_trio.errors import WrongState
from concorde_trio.records import check_name


@click.command()
@click.argument("name")
@store_option
@json_option
def interrupt(name: str, store: str | None, as_json: bool) -> int:
    """End the turn that a session is taking.

    The model is read no further, every tool is stopped, and what is queued
    runs next. Exit status 1 if nothing was in flight.

    \b
    Examples:
      concorde-trio interrupt ann
      concorde-trio interrupt ann --json
    """
    check_name(name, "session")
    interrupted = ask(serving(database_path(store), "to interrupt"), lambda client: client.interrupt(name))
    if as_json:
        document({"session": name, "interrupted": interrupted})
    elif interrupted:
        say(visible(f"interrupted {name}"))
    else:
        raise WrongState(f"session {name} has no turn in flight; there is nothing to interrupt")
    return 0 if interrupted else 1


@click.command()
@click.argument("name")
@click.argument("call_id", metavar="[CALL]", required=False)
@store_option
@json_option
def approve(name: str, call_id: str | None, store: str | None, as_json: bool) -> None:
    """Allow a call that a session asks about.

    CALL may be left out while it asks about one call alone.

    \b
    Examples:
      concorde-trio approve ann
      concorde-trio approve ann call_7Qx --json
    """
    _answer(name, call_id, store, as_json, allow=True)


@click.command()
@click.argument("name")
@click.argument("call_id", metavar="[CALL]", required=False)
@store_option
@json_option
def deny(name: str, call_id: str | None, store: str | None, as_json: bool) -> None:
    """Deny a call that a session asks about.

    The call is not run, and the model is told so.

    \b
    Examples:
      concorde-trio deny ann
      concorde-trio deny ann call_7Qx
    """
    _answer(name, call_id, store, as_json, allow=False)


def _answer(name: str, call_id: str | None, store: str | None, as_json: bool, *, allow: bool) -> None:
    check_name(name, "session")
    endpoint = serving(database_path(store), "who asks")
    if call_id is None:
        asked = [dict(each) for each in ask(endpoint, lambda client: client.session(name))["approvals"]]
        if not asked:
            raise WrongState(
                f"session {name} asks about nothing now; there is nothing to {'allow' if allow else 'deny'}"
            )
        if len(asked) > 1:
            raise WrongState(f"session {name} asks about {'; '.join(map(approval_in_words, asked))}; name one call")
        call_id = str(asked[0]["call_id"])
    call = call_id
    found = ask(endpoint, lambda client: client.answer(name, call, allow=allow))
    if as_json:
        document(dict(found))
    else:
        say(visible(f"{'allowed' if allow else 'denied'} call {call_id} of {name}"))

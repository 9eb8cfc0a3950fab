"""``sessions``: a table of the latest, or one with what it waits for, what is queued and what was said last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from concorde_trio.cli.options import json_option, limit_option, queue_options
from concorde_trio.cli.queue import database_path
from concorde_trio.cli.session_source import SessionSource, ask_sessions
from concorde_trio.cli.show import (
    Cell,
    at,
    document,
    fields,
    first_line,
    lasting,
    name_cell,
    note,
    plural,
    say,
    table,
    time_cell,
    visible,
    visible_lines,
)
from concorde_trio.cli.sources import is_served
from concorde_trio.records import check_name

if TYPE_CHECKING:
    from concorde_trio.signals.documents import Document


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--prefix", help="Only sessions whose names begin with this.")
@click.option("--messages", type=click.IntRange(0, 200), default=10, show_default=True, help="How many to show of one.")
@limit_option
@queue_options
@json_option
def sessions(
    name: str | None, prefix: str | None, messages: int, limit: int, store: str | None, direct: bool, as_json: bool
) -> None:
    """List sessions, or show one.

    The latest first. One is shown with what it waits for and for how long
    still, what holds it, what is queued, and what was said last.

    \b
    Examples:
      concorde-trio sessions
      concorde-trio sessions --prefix user_ --limit 10
      concorde-trio sessions ann --messages 50
      concorde-trio sessions ann --json
    """
    if name is not None:
        check_name(name, "session")
        if prefix is not None:
            raise click.UsageError("--prefix filters a list; leave it out to show one by its name.")
    path = database_path(store)
    if name is None:
        page = ask_sessions(path, lambda source: source.sessions(prefix=prefix, limit=limit), direct=direct)
        if as_json:
            document(page)
        else:
            _list(page)
        return

    def ask(source: SessionSource) -> Document:
        last = source.messages(name, messages)["messages"] if messages else []
        return {**source.session(name), "last_messages": last}

    found = ask_sessions(path, ask, direct=direct)
    if as_json:
        document(found)
        return
    show_session(found)
    if found["queued"] and not is_served(path):
        note("no worker serves this queue now: what is queued waits for the next one")


def _list(page: Document) -> None:
    if not page["sessions"]:
        note("no sessions")
        return
    rows = [
        (
            name_cell(row["name"]),
            Cell(row["status"], fixed=True),
            time_cell(str(row["messages"])),
            time_cell(str(row["queued"])),
            time_cell(at(row["updated_at"])),
            waits_in_words(row["waiting_on"]),
        )
        for row in page["sessions"]
    ]
    table(("NAME", "STATUS", "MESSAGES", "QUEUED", "LAST CHANGE", "WAITS FOR"), rows)
    if page["next"] is not None:
        note(f"the latest {len(rows)}; there are more, --limit shows up to 200")


def waits_in_words(waiting: Document) -> str:
    """What a session waits for, since when, how long still, and what happens then (SES-12a)."""
    words = [waiting["on"]]
    if waiting["about"]:
        words.append(f": {first_line(waiting['about'])}")
    if waiting["since"] is not None:
        words.append(f", for {lasting(waiting['since'])}")
    if waiting["last_progress"] is not None:
        words.append(f", last progress {lasting(waiting['last_progress'])} ago")
    if waiting["left"] is not None:
        words.append(f", {lasting(waiting['left'])} left")
        if waiting["then"]:
            words.append(f", then {waiting['then']}")
    return "".join(words)


def session_waits(found: Document) -> Iterator[str]:
    """The lines that say what a session waits for, in which run, what holds it, and what it asks."""
    yield f'session "{found["name"]}" waits for {waits_in_words(found["waiting_on"])}'
    if found["run"] is not None:
        yield f"  in run {found['run']['id']} of signal {found['run']['signal_id']}"
    for each in found["holds"]:
        yield f"  held by {_hold(each)}"
    for each in found["approvals"]:
        yield f"  asks: {approval_in_words(each)}"


def show_session(found: Document) -> None:
    """Everything that is known of one session."""
    usage, run = found["usage"], found["run"]
    fields(
        [
            ("session", Cell(found["name"], "bold")),
            ("status", found["status"] if found["loaded"] else f"{found['status']} (not in memory)"),
            ("waits for", waits_in_words(found["waiting_on"])),
            ("run", None if run is None else run["id"]),
            ("queue", f"{plural(found['queued'], 'input')}{', held until somebody resumes' if found['held'] else ''}"),
            ("messages", str(found["messages"])),
            ("usage", f"{usage['input_tokens']} tokens in, {usage['output_tokens']} out"),
            ("created", at(found["created_at"])),
            ("last change", at(found["updated_at"])),
        ]
    )
    for title, rows in (
        ("holds", [_hold(each) for each in found["holds"]]),
        ("asks", [approval_in_words(each) for each in found["approvals"]]),
        ("queued", [_queued(each) for each in found["queue"]]),
        ("left running", [_abandoned(each) for each in found["abandoned"] if each["ended"] is None]),
    ):
        if rows:
            say()
            say(title)
            for row in rows:
                say(f"  {visible(row)}")
    if found["more_queued"]:
        say(f"  and {found['more_queued']} more")
    for message in found["last_messages"]:
        say()
        show_message(message)


def _hold(hold: Document) -> str:
    what = f"{hold['tool']} (call {hold['call_id']}, {hold['kind']})" if hold["what"] == "tool" else hold["what"]
    progress = "" if hold["last_progress"] is None else f", last progress {lasting(hold['last_progress'])} ago"
    return f"{what} for {lasting(hold['since'])}{progress}, {lasting(hold['left'])} left"


def approval_in_words(asked: Document) -> str:
    """A question to a person."""
    return (
        f"allow {asked['tool']} ({asked['kind']}, call {asked['call_id']}) {short(asked['arguments'] or '')}? "
        f"{lasting(asked['left'])} left, then it is denied"
    )


def _queued(given: Document) -> str:
    sender = f" from {given['sender']}" if given["sender"] else ""
    return f"{at(given['at'])}{sender} ({given['id']}): {short(given['text'])}"


def _abandoned(each: Document) -> str:
    number = "" if each["number"] is None else f" {each['number']}"
    return f"{each['what']}{number} of {each['tool']} since {at(each['since'])}: {each['about']}"


def show_message(message: Document) -> None:
    """One message of a transcript, a call and a result in short."""
    who = message["role"]
    if who == "tool":
        say(visible(f"  < {message['tool']} {message['outcome']}: {short(message['text'])}"))
        return
    senders = sorted({each["sender"] for each in message.get("inputs", ()) if each.get("sender")})
    cut = ", interrupted" if message.get("interrupted") else ""
    say(visible(f"{who}{' (' + ', '.join(senders) + ')' if senders else ''}, {at(message['at'])}{cut}"))
    for line in message["text"].splitlines():
        say(f"  {visible_lines(line)}")
    for call in message.get("calls", ()):
        say(visible(f"  > {call['name']} {short(call.get('arguments', '{}'))}"))


def short(text: str, most: int = 200) -> str:
    """A text on one line, cut."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}… ({len(text):,} characters)"

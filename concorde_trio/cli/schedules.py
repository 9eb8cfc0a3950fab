"""``schedules``, ``schedule`` and ``unschedule``: what emits which signal when, for a queue that is served or not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from concorde_trio._sansio import json_values
from concorde_trio.cli.options import json_option, queue_options, read_json
from concorde_trio.cli.queue import database_path
from concorde_trio.cli.schedule_source import ask_schedules
from concorde_trio.cli.show import (
    Cell,
    at,
    document,
    fields,
    id_cell,
    json_text,
    lasting,
    name_cell,
    note,
    say,
    table,
    time_cell,
    visible,
)
from concorde_trio.cli.sources import is_served
from concorde_trio.records import check_name

if TYPE_CHECKING:
    from concorde_trio.signals.documents import Document


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@queue_options
@json_option
def schedules(name: str | None, store: str | None, direct: bool, as_json: bool) -> int:
    """List schedules by name, or show one.

    MISSED counts instants that were skipped, because no worker served the
    queue then or the clock was set; they are not made up for.

    \b
    Examples:
      concorde-trio schedules
      concorde-trio schedules morning-report
      concorde-trio schedules --json
    """
    path = database_path(store)
    if name is not None:
        found = ask_schedules(path, lambda source: source.schedule(name), direct=direct)
        if as_json:
            document(found)
        else:
            _show(found)
        return 0
    page = ask_schedules(path, lambda source: source.schedules(), direct=direct)
    if as_json:
        document(page)
        return 0
    rows = page["schedules"]
    if not rows:
        note("no schedules")
        return 0
    table(("NAME", "KIND", "WHEN", "NEXT", "LAST FIRED", "MISSED"), [_row(row) for row in rows])
    if any(row["next_at"] is not None for row in rows) and not is_served(path):
        note("no worker serves this queue now, so nothing fires; what is due meanwhile will be missed")
    return 0


@click.command()
@click.argument("name")
@click.argument("cron", metavar="[CRON]", required=False)
@click.option("--kind", required=True, help="The kind of the signal that it emits.")
@click.option(
    "--payload", metavar="JSON", default="null", help="The signal's payload, - reads it from stdin.  [default: null]"
)
@click.option("--zone", help="The time zone of CRON, such as Europe/Berlin or +05:30.  [default: UTC]")
@click.option("--at", "instant", metavar="INSTANT", help="Fire once, then, instead of CRON.")
@queue_options
@json_option
def schedule(
    name: str,
    cron: str | None,
    kind: str,
    payload: str,
    zone: str | None,
    instant: str | None,
    store: str | None,
    direct: bool,
    as_json: bool,
) -> int:
    """Emit a signal by a cron expression, or at one instant.

    CRON has five fields: minute, hour, day, month, weekday. An instant is ISO
    8601 with its offset, or a local time of --zone. The schedule is stored in
    the queue under its name: one of that name is replaced, and if it is there
    as it is, nothing happens. The queue's worker fires it.

    \b
    Examples:
      concorde-trio schedule morning "0 7 * * *" --zone Europe/Berlin --kind day.began
      concorde-trio schedule reports "*/15 9-17 * * 1-5" --kind report.due --payload '{"team": "a"}'
      concorde-trio schedule gifts --at 2026-12-24T18:00 --zone Europe/Berlin --kind gifts.due
    """
    if (cron is None) == (instant is None):
        raise click.UsageError(
            'give either a cron expression, such as "0 7 * * *", or --at INSTANT, such as --at 2026-12-24T18:00:00+01:00.'
        )
    body: dict[str, Any] = {"kind": check_name(kind, "kind"), "payload": read_json(payload, "--payload")}
    json_values.encode(body["payload"])
    body |= {"cron": cron, "zone": zone, "at": instant}
    _check(name, body)
    path = database_path(store)
    found = ask_schedules(path, lambda source: source.put(name, body), direct=direct)
    if as_json:
        document(found)
        return 0
    what = "is scheduled" if found["changed"] else "is scheduled so already"
    say(f"{visible(name)} {what}: {visible(found['kind'])} {_next_in_words(found)}")
    if found["next_at"] is not None and not is_served(path):
        note("no worker serves this queue now, so nothing fires until one does")
    return 0


@click.command()
@click.argument("name")
@queue_options
@json_option
def unschedule(name: str, store: str | None, direct: bool, as_json: bool) -> int:
    """Remove a schedule. The signals that came of it stay.

    \b
    Examples:
      concorde-trio unschedule morning
    """
    path = database_path(store)
    ask_schedules(path, lambda source: source.remove(name), direct=direct)
    if as_json:
        document({"name": name, "removed": True})
    else:
        say(f"{visible(name)} is removed")
    return 0


def _check(name: str, body: dict[str, Any]) -> None:
    """Refuse here what nobody need be asked for."""
    from concorde_trio.signals.schedule import Schedule, checked

    checked(Schedule(name, **body), time.time())


def _row(row: Document) -> tuple[Cell | str, ...]:
    return (
        id_cell(row["name"]),
        name_cell(row["kind"]),
        name_cell(_when(row)),
        Cell("broken", "red", fixed=True) if row["problem"] else time_cell(at(row["next_at"])),
        time_cell(at(row["fired_at"])),
        Cell(str(row["missed"]), "yellow" if row["missed"] else "", fixed=True),
    )


def _when(row: Document) -> str:
    return f"at {at(row['at'])}" if row["cron"] is None else f"{row['cron']}  {row['zone']}"


def _next_in_words(row: Document) -> str:
    if row["next_at"] is None:
        return "fires no more"
    return f"next at {at(row['next_at'])}, in {lasting(row['next_at'] - time.time())}"


def _show(row: Document) -> None:
    fields(
        [
            ("schedule", id_cell(row["name"])),
            ("kind", row["kind"]),
            ("when", _when(row)),
            ("next", "never" if row["next_at"] is None else at(row["next_at"])),
            ("last fired", None if row["fired_at"] is None else at(row["fired_at"])),
            ("signal", row["signal_id"]),
            ("missed", f"{row['missed']}, last {at(row['missed_at'])}" if row["missed"] else None),
            ("changed", at(row["changed_at"])),
            ("problem", None if row["problem"] is None else Cell(row["problem"], "red")),
        ]
    )
    say()
    say("payload")
    say(json_text(row["payload"]))

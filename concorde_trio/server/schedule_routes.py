"""Schedules, for operators: list, look, put, remove (SCH-1, SCH-5)."""

from __future__ import annotations

from functools import partial
from typing import Any

from quart import Blueprint, Response

from concorde_trio._sansio.json_values import encode
from concorde_trio.documents.schedules import (
    ScheduleDocument,
    SchedulePage,
    SchedulePutDocument,
    ScheduleRemovedDocument,
)
from concorde_trio.errors import InvalidSchedule, InvalidValue
from concorde_trio.records import JSON
from concorde_trio.server.answers import answer, page
from concorde_trio.server.asked import Asked, serve
from concorde_trio.server.bodies import body_bound
from concorde_trio.server.cursors import cursor, cursor_kind
from concorde_trio.server.declarations import LIMIT, Answer, Operation, member, path, query
from concorde_trio.server.problems import FieldFault, Problem
from concorde_trio.server.seam import Worker
from concorde_trio.server.values import Json, Matching, Name, Text
from concorde_trio.signals.cron import MOST
from concorde_trio.signals.schedule import SCHEDULE_NAME, Schedule
from concorde_trio.signals.schedule_documents import schedule_document

_NAME = Matching(
    SCHEDULE_NAME, "the name of a schedule: 1 to 100 letters, digits, '.', '_' or '-', the first a letter or digit"
)
AFTER = cursor_kind(SCHEDULE_NAME, str)
_NAMED = path("schedule", _NAME, "The name of a schedule.")
_UNKNOWN = {404: "There is no such schedule."}

LIST = Operation(
    "GET",
    "/schedules",
    "list_schedules",
    "Schedules by name. What is put or removed meanwhile does not shift the pages.",
    tag="Schedules",
    fields=(
        query("kind", Name("kind"), "Only those that emit this kind."),
        query("after", AFTER, "The next of an earlier page: only those with later names."),
        LIMIT,
    ),
    answers=(Answer(200, "A page of schedules.", SchedulePage),),
    refusals={409: "The next is of an earlier start of the server, and cannot be read any more."},
)
LOOK = Operation(
    "GET",
    "/schedules/<schedule>",
    "get_schedule",
    "A schedule: when it fires next, what it last fired, and what it missed.",
    tag="Schedules",
    fields=(_NAMED,),
    answers=(Answer(200, "The schedule.", ScheduleDocument),),
    refusals=_UNKNOWN,
)
PUT = Operation(
    "PUT",
    "/schedules/<schedule>",
    "put_schedule",
    "Store a schedule under its name: either cron, or at. If it is there as it is, nothing happens; another one of its "
    "name is replaced (SCH-5).",
    tag="Schedules",
    fields=(
        _NAMED,
        member("kind", Name("kind"), "The kind of the signal that it emits.", required=True),
        member("payload", Json(), "What the handler is told: JSON without NUL, at most 1 MB and 100 deep."),
        member(
            "cron", Text(), f"Five fields: minute hour day month weekday; at most {MOST} characters.", nullable=True
        ),
        member(
            "zone", Text(), "The time zone of cron, such as Europe/Berlin or +05:30; UTC unless given.", nullable=True
        ),
        member("at", Text(), "One instant: ISO 8601 with its offset, or a local time of the zone.", nullable=True),
    ),
    answers=(Answer(200, "The schedule as it is now.", SchedulePutDocument),),
)
REMOVE = Operation(
    "DELETE",
    "/schedules/<schedule>",
    "remove_schedule",
    "Remove a schedule. The signals that came of it stay.",
    tag="Schedules",
    fields=(_NAMED,),
    answers=(Answer(200, "It is gone.", ScheduleRemovedDocument),),
    refusals=_UNKNOWN,
)


def schedule_routes(worker: Worker) -> Blueprint:
    """``/schedules`` and what is below it."""
    routes = Blueprint("schedules", __name__)

    @serve(routes, LIST)
    async def list_schedules(asked: Asked) -> Response:
        """A page of schedules."""
        kind, after, limit = asked["kind"], asked["after"], asked["limit"]
        found = [
            record
            for record in await worker.schedules.all()
            if (kind is None or record.kind == kind) and (after is None or record.name > after)
        ]

        def document(record: Any) -> JSON:
            return schedule_document(record, worker.mask_json)

        shown = found[:limit]
        if len(found) == limit:
            limit += 1  # There are just as many: this is the last page.
        return answer(await page("schedules", shown, limit, document, lambda record: cursor(record.name, worker.mask)))

    @serve(routes, LOOK)
    async def one_schedule(asked: Asked) -> Response:
        """A schedule."""
        return answer(await _document(worker, asked["schedule"]))

    @serve(routes, PUT, max_body=body_bound(worker.max_payload), checks={"payload": partial(_check_payload, worker)})
    async def put(asked: Asked) -> Response:
        """A schedule is stored."""
        schedule = Schedule(
            asked["schedule"], asked["kind"], asked["payload"], cron=asked["cron"], zone=asked["zone"], at=asked["at"]
        )
        try:
            changed = await worker.schedules.put(schedule)
        except (InvalidSchedule, InvalidValue) as error:
            field = error.place if isinstance(error, InvalidSchedule) else "payload"
            raise Problem.of_fields(
                [FieldFault(within="body", field=field, message=str(error), place=error.place)]
            ) from None
        return answer({**await _document(worker, asked["schedule"]), "changed": changed})

    @serve(routes, REMOVE)
    async def remove(asked: Asked) -> Response:
        """A schedule is removed."""
        await worker.schedules.remove(asked["schedule"])
        return answer({"name": worker.mask(asked["schedule"]), "removed": True})

    return routes


async def _document(worker: Worker, name: str) -> dict[str, Any]:
    return schedule_document(await worker.schedules.one(name), worker.mask_json)


def _check_payload(worker: Worker, payload: JSON) -> None:
    encode(payload, max_bytes=worker.max_payload)

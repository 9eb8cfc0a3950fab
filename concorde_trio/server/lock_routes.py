"""The lock table, for operators: what is held, who waits, in which order, since when (SRV-2, LCK-7)."""

from __future__ import annotations

from quart import Blueprint, Response

from concorde_trio.documents import LockPage
from concorde_trio.records import JSON
from concorde_trio.server.answers import answer, page
from concorde_trio.server.asked import Asked, serve
from concorde_trio.server.cursors import cursor, cursor_kind
from concorde_trio.server.declarations import LIMIT, Answer, Operation, query
from concorde_trio.server.seam import Worker
from concorde_trio.server.values import IN_NAMES, Name, OneOf
from concorde_trio.signals.documents import SHOWN_WAITING, lock_document
from concorde_trio.signals.views import LockView


def _order(space: str, name: str) -> tuple[bool, str]:
    return (space != "session", name)


def _place(given: str) -> tuple[bool, str]:
    space, _, name = given.partition(":")
    return _order(space, name)


AFTER = cursor_kind(f"(session|resource):{IN_NAMES}{{0,200}}", _place)

LIST = Operation(
    "GET",
    "/locks",
    "list_locks",
    "Sessions, then resources, by name: who holds each, and the first 100 that wait for it. What is taken or released "
    "meanwhile does not shift the pages.",
    tag="Locks",
    fields=(
        query("space", OneOf(("session", "resource")), "Only sessions, or only resources."),
        query("name", Name("lock"), "Only of this name."),
        query("after", AFTER, "The next of an earlier page."),
        LIMIT,
    ),
    answers=(Answer(200, "A page of locks.", LockPage),),
    refusals={409: "The next is of an earlier start of the server, and cannot be read any more."},
)


def lock_routes(worker: Worker) -> Blueprint:
    """``/locks``."""
    routes = Blueprint("locks", __name__)

    @serve(routes, LIST)
    async def list_locks(asked: Asked) -> Response:
        """A page of locks."""
        space, name, after, limit = asked["space"], asked["name"], asked["after"], asked["limit"]
        found = [
            lock
            for lock in worker.locks(SHOWN_WAITING)
            if (space is None or lock.space == space)
            and (name is None or lock.name == name)
            and (after is None or _order(lock.space, lock.name) > after)
        ]

        def document(lock: LockView) -> JSON:
            return lock_document(lock, worker.mask_json)

        def place(lock: LockView) -> str:
            return cursor(f"{lock.space}:{lock.name}", worker.mask)

        locks = found[:limit]
        if len(found) == limit:
            limit += 1  # There are just as many: this is the last page.
        return answer(await page("locks", locks, limit, document, place))

    return routes

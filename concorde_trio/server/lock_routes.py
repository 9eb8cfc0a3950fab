"""The lock table, for operators: what is held, who waits, in which order, since when (SRV-2, LCK-7)."""

from __future__ import annotations

from quart import Blueprint, Response, request

from concorde_trio.records import JSON
from concorde_trio.server.answers import answer, page
from concorde_trio.server.parameters import Parameters
from concorde_trio.server.problems import Problem
from concorde_trio.server.seam import Worker
from concorde_trio.signals.documents import SHOWN_WAITING, lock_document
from concorde_trio.signals.views import LockView


def lock_routes(worker: Worker) -> Blueprint:
    """``/locks``."""
    routes = Blueprint("locks", __name__)

    @routes.get("/locks")
    async def list_locks() -> Response:
        """Sessions, then resources, by name. ``space``, ``name``, ``after`` (the ``next`` of a page), ``limit``."""
        given = Parameters(request.args, "space", "name", "after", "limit")
        space, name, limit = given.choice("space", "session", "resource"), given.name("name", "lock"), given.limit()
        after = _cursor(given.id("after"))
        found = [
            lock
            for lock in worker.locks(SHOWN_WAITING)
            if (space is None or lock.space == space)
            and (name is None or lock.name == name)
            and (after is None or _order(lock.space, lock.name) > after)
        ]

        def document(lock: LockView) -> JSON:
            return lock_document(lock, worker.mask_json)

        locks = found[:limit]
        if len(found) == limit:
            limit += 1  # There are just as many: this is the last page.
        return answer(await page("locks", locks, limit, document, lambda lock: f"{lock.space}:{lock.name}"))

    return routes


def _order(space: str, name: str) -> tuple[bool, str]:
    return (space != "session", name)


def _cursor(given: str | None) -> tuple[bool, str] | None:
    if given is None:
        return None
    space, colon, name = given.partition(":")
    if not colon or space not in ("session", "resource"):
        raise Problem(400, f"after must be the next of an earlier page, SPACE:NAME, not {given!r:.80}", place="after")
    return _order(space, name)

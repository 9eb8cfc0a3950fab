"""``/events`` and ``/snapshot``: what happens, as it happens, and what is true now with the event that it is true as of (SRV-4).

The law: who takes a snapshot and then every event after its id, in order, as what is newer, has missed nothing and nothing
twice. Who asks for what is not kept any more is told so by ``reset``, and takes a snapshot anew.
"""

from __future__ import annotations

import trio
from quart import Blueprint, Response, request

from concorde_trio._sansio.event_log import EventFilter, Lost, event_names, is_event_id
from concorde_trio.server.closing import server_closing
from concorde_trio.server.event_feed import EventFeed
from concorde_trio.server.event_snapshot import MOST_RUNS, PARTS, RUNS, Snapshot
from concorde_trio.server.event_stream import TOO_SLOW, EventStream, answer_events, write_event
from concorde_trio.server.parameters import Parameters, is_id
from concorde_trio.server.problems import SAFE_HEADERS, Problem
from concorde_trio.server.seam import Worker

RETRY = 1_000
"""Milliseconds after which a browser whose stream ended asks again."""


def event_routes(worker: Worker) -> Blueprint:
    """The two routes. They listen to the worker from now on, whoever reads."""
    routes = Blueprint("events", __name__)
    feed = EventFeed(worker.bus, worker.mask, worker.mask_json)

    @routes.get("/events")
    async def events() -> Response:
        """``kind`` (names of events, commas between them), ``session``, ``signal``, ``run``; ``after`` or Last-Event-ID: an event id."""
        given = Parameters(request.args, "kind", "session", "signal", "run", "after")
        where = EventFilter(
            kinds=_kinds(given.id("kind")),
            session=given.name("session", "session"),
            signal_id=_id(given, "signal"),
            run_id=_id(given, "run"),
        )
        after = given.id("after")
        if after is not None and not is_event_id(after):
            raise Problem(400, f"after must be the id of an event or of a snapshot, not {after!r:.80}", place="after")
        # A browser that asks again keeps the address of its first request, and says in the header what it has seen since.
        seen = request.headers.getlist("Last-Event-ID")
        return answer_events(_Events(feed, server_closing(), where, seen[0] if len(seen) == 1 else after))

    @routes.get("/snapshot")
    async def snapshot() -> Response:
        """What is in hand. ``parts`` (of signals, runs, sessions, locks; commas between them), ``limit`` (of runs)."""
        given = Parameters(request.args, "parts", "limit")
        parts = _list(given.id("parts"), "parts", PARTS)
        limit = _limit(given.id("limit"))
        body = await Snapshot(worker, feed.log).write(frozenset(PARTS if parts is None else parts), limit)
        return Response(body, headers={**SAFE_HEADERS, "content-type": "application/json"})

    return routes


def _kinds(given: str | None) -> frozenset[str] | None:
    found = _list(given, "kind", event_names())
    return None if found is None else frozenset(found)


def _list(given: str | None, name: str, known: list[str] | tuple[str, ...]) -> list[str] | None:
    if given is None:
        return None
    found = given.split(",")
    for each in found:
        if each not in known:
            raise Problem(400, f"{name}: there is no {each!r:.80}; there are: {', '.join(known)}", place=name)
    return found


def _limit(given: str | None) -> int:
    if given is None:
        return RUNS
    if not given.isascii() or not given.isdigit() or len(given) > 5 or not 1 <= int(given) <= MOST_RUNS:
        raise Problem(400, f"limit must be a whole number, 1 to {MOST_RUNS}, not {given!r:.80}", place="limit")
    return int(given)


def _id(given: Parameters, name: str) -> str | None:
    found = given.id(name)
    if found is not None and not is_id(found):
        raise Problem(400, f"{name} must be an id, not {found!r:.80}", place=name)
    return found


class _Events(EventStream):
    """One reader."""

    def __init__(self, feed: EventFeed, closing: trio.Event, where: EventFilter, given: str | None) -> None:
        super().__init__(closing)
        self._feed = feed
        self._where = where
        self._given = given
        self._at = feed.log.last
        self._data = b""
        self._upto: int | None = None

    async def begin(self) -> str:
        """The place from which it follows: as a comment, or as a reset."""
        log = self._feed.log
        place = self._at if self._given is None else log.place(self._given)
        begun = f"retry: {RETRY}\n"
        if isinstance(place, Lost):
            self._at = log.last
            return begun + write_event("reset", {"reason": place.reason}, log.id_of(self._at))
        self._at = place
        return begun + self._here()

    async def wait(self) -> None:
        """Until there are events that it asks for."""
        while not (self._data or self._feed.over or self._lost):
            await self._feed.wait(self._at)
            self._take()

    async def tell(self) -> bytes:
        """Events; after a while without any, where it is: a reader that asked for few of them comes back to here."""
        self._take()
        data, self._data = self._data, b""
        return data or self._here().encode()

    def over(self) -> str | None:
        """SRV-4: it is cut off, or the worker has ended and all of it was told."""
        if self._lost:
            return TOO_SLOW
        return "the worker has stopped" if self._feed.over and self._at >= self._feed.log.last else None

    def behind(self) -> bool:
        """Whether something happened before the stop that it has not seen."""
        if self._upto is None:
            self._upto = self._feed.log.last
            self._feed.show()
        return self._at < self._upto

    @property
    def _lost(self) -> bool:
        return self._feed.log.lost(self._at)

    def _take(self) -> None:
        if not (self._data or self._lost):
            self._data, self._at = self._feed.read(self._at, self._where)

    def _here(self) -> str:
        # An id without data is no event: a client notes it, and asks for what came after it when it comes back.
        return f":\nid: {self._feed.log.id_of(self._at)}\n\n"

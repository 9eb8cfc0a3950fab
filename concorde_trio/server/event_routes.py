"""``/events`` and ``/snapshot``: what happens, as it happens, and what is true now with the event that it is true as of (SRV-4).

The law: who takes a snapshot and then every event after its id, in order, as what is newer, has missed nothing and nothing
twice. Who asks for what is not kept any more is told so by ``reset``, and takes a snapshot anew.
"""

from __future__ import annotations

import trio
from quart import Blueprint, Response, request

from concorde_trio._sansio.event_log import EventFilter, Lost, event_names
from concorde_trio.documents import SnapshotDocument
from concorde_trio.server.asked import Asked, serve
from concorde_trio.server.closing import server_closing
from concorde_trio.server.declarations import Answer, Operation, header, query
from concorde_trio.server.event_feed import EventFeed
from concorde_trio.server.event_snapshot import MOST_RUNS, PARTS, RUNS, Snapshot
from concorde_trio.server.event_stream import TOO_SLOW, EventStream, answer_events, write_event
from concorde_trio.server.problems import SAFE_HEADERS
from concorde_trio.server.seam import Worker
from concorde_trio.server.values import Matching, Name, Text, Whole, Words

RETRY = 1_000
"""Milliseconds after which a browser whose stream ended asks again."""


_SOME_ID = Matching("[A-Za-z0-9_-]{1,100}", "an id")

EVENTS = Operation(
    "GET",
    "/events",
    "watch_events",
    "Everything that happens, as it happens: server-sent events, each with an id. The event reset says that what was asked for "
    "is not kept any more; the event end says why the stream ends.",
    tag="Events",
    fields=(
        query("kind", Words(event_names), "Only events of these names, with commas between them."),
        query("session", Name("session"), "Only what names this session."),
        query("signal", _SOME_ID, "Only what names this signal, by its id."),
        query("run", _SOME_ID, "Only what names this run, by its id."),
        query(
            "after",
            Matching("[0-9a-z]{1,64}-[0-9]{1,15}", "the id of an event or of a snapshot"),
            "Only what happened after this: the id of an event or of a snapshot. Without it, from now on.",
        ),
        header("Last-Event-ID", Text(), "What a browser that asks again has seen; it counts before after.", read=False),
    ),
    answers=(Answer(200, "Events, until the server stops or the reader is too slow.", media_type="text/event-stream"),),
)
SNAPSHOT = Operation(
    "GET",
    "/snapshot",
    "get_snapshot",
    "What is in hand now, with the id of the event that it is true as of: where following events begins.",
    tag="Events",
    fields=(
        query("parts", Words(lambda: PARTS), "Only these, with commas between them.", default=frozenset(PARTS)),
        query("limit", Whole(1, MOST_RUNS, f"1 to {MOST_RUNS}"), f"Runs at most, {RUNS:,} unless given.", default=RUNS),
    ),
    answers=(Answer(200, "The snapshot.", SnapshotDocument),),
)


def event_routes(worker: Worker) -> Blueprint:
    """The two routes. They listen to the worker from now on, whoever reads."""
    routes = Blueprint("events", __name__)
    feed = EventFeed(worker.bus, worker.mask, worker.mask_json)

    @serve(routes, EVENTS)
    async def events(asked: Asked) -> Response:
        """What is asked for, from where it is asked for."""
        where = EventFilter(
            kinds=asked["kind"], session=asked["session"], signal_id=asked["signal"], run_id=asked["run"]
        )
        # A browser that asks again keeps the address of its first request, and says in the header what it has seen since.
        seen = request.headers.getlist("Last-Event-ID")
        after = asked["after"] if not seen else seen[0] if len(seen) == 1 else ""
        return answer_events(_Events(feed, server_closing(), where, after))

    @serve(routes, SNAPSHOT)
    async def snapshot(asked: Asked) -> Response:
        """What is in hand."""
        body = await Snapshot(worker, feed.log).write(asked["parts"], asked["limit"])
        return Response(body, headers={**SAFE_HEADERS, "content-type": "application/json"})

    return routes


class _Events(EventStream):
    """One reader."""

    def __init__(self, feed: EventFeed, closing: trio.Event, where: EventFilter, given: str | None) -> None:
        super().__init__(closing)
        self._feed = feed
        self._where = where
        self._given = given
        self._at = feed.log.last
        self._data = b""
        self._lost = self._due = self._told = False
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

    async def listen(self) -> None:
        """Until there are events that it asks for, or ``watch`` says that it is to come back."""
        self._take()
        while not (self._data or self._lost or self._due or self._feed.over):
            await self._feed.wait(self._at, self)
            self._take()

    async def watch(self) -> None:
        """A timer that moves with each write would be a third of what the write costs; this one looks twice in a while."""
        # Not what the event says at first: it may be set before this has begun, and then nothing was told of it yet.
        closing = False
        while not closing:
            self._told = False
            with trio.move_on_after(self.quiet / 2):
                await self._closing.wait()
            closing = self._closing.is_set()
            if closing or not self._told:
                self._due = True
                self._feed.wake(self)

    async def tell(self) -> bytes:
        """Events; after a while without any, where it is: a reader that asked for few of them comes back to here."""
        self._take()
        data, self._data = self._data, b""
        self._told, self._due = True, False
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

    def _take(self) -> None:
        if not self._data:
            self._lost = self._feed.log.lost(self._at)
            if not self._lost:
                self._data, self._at = self._feed.read(self._at, self._where)

    def _here(self) -> str:
        # An id without data is no event: a client notes it, and asks for what came after it when it comes back.
        return f":\nid: {self._feed.log.id_of(self._at)}\n\n"

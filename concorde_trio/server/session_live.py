"""``/sessions/{id}/live``: server-sent events of what one session does, for who talks to it (SES-12a, SRV-4).

The law: who does not keep up is cut off, never waited for; and what is masked is masked over the borders of pieces. It
begins with the session as it is, so nothing is missed between a look and the stream.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from typing import Any

import trio
from quart import Blueprint, Response

from concorde_trio.conversations.live_view import LiveView
from concorde_trio.conversations.views import cut, session_view, waiting_view
from concorde_trio.server.asked import Asked, serve
from concorde_trio.server.closing import server_closing
from concorde_trio.server.event_stream import TOO_SLOW, EventStream, answer_events, write_event
from concorde_trio.server.seam import Worker
from concorde_trio.server.session_declarations import LIVE
from concorde_trio.server.session_doors import harness_of
from concorde_trio.sessions.live import Seen
from concorde_trio.sessions.loop import SessionLoop

BUFFER = 2_000
"""Things that may wait for one reader before it is cut off."""
GATHER = 200
"""Things that are told in one write at most."""


def session_live(worker: Worker) -> Blueprint:
    """The one route."""
    routes = Blueprint("session_live", __name__)

    @serve(routes, LIVE)
    async def live(asked: Asked) -> Response:
        """Events from now on; a session that is not there yet begins with its first input."""
        loop = await harness_of(worker).loop(asked["name"])
        return answer_events(_Stream(worker, loop, server_closing()))

    return routes


class _Stream(EventStream):
    """One reader."""

    quiet = 5.0
    """What it waits for is told after so many seconds in any case, with the time that is left."""

    def __init__(self, worker: Worker, loop: SessionLoop, closing: trio.Event) -> None:
        super().__init__(closing)
        self._worker = worker
        self._loop = loop
        self._view = LiveView(loop, worker.mask, worker.mask_json)
        self._seen: trio.MemoryReceiveChannel[Seen]
        self._next: list[Seen] = []
        self._last: Any = None
        self._cut_off = False

    def enter(self, stack: AsyncExitStack) -> None:
        """Watch the loop."""
        self._seen = stack.enter_context(self._loop.watchers.watch(BUFFER))

    async def begin(self) -> str:
        """The session as it is."""
        return write_event("session", await _session(self._worker, self._loop))

    async def wait(self) -> None:
        """Until something happens, or the loop ends."""
        if not self._next:
            try:
                self._next.append(await self._seen.receive())
            except trio.EndOfChannel:
                self._cut_off = True

    async def tell(self) -> str:
        """What has happened, and what is waited for if that has changed or nothing has happened for a while."""
        pieces = self._gather()
        if self._cut_off:
            return "".join(pieces)
        waiting = await _waiting(self._worker, self._loop)
        now = {name: waiting["waiting_on"][name] for name in ("on", "about", "then")}
        if now != self._last or not pieces:
            self._last = now
            pieces.append(write_event("waiting_on", waiting))
        return "".join(pieces)

    def over(self) -> str | None:
        """Whether the loop ended, or this reader fell behind."""
        if not self._cut_off:
            return None
        return "the session was closed" if self._loop.over else TOO_SLOW

    def _gather(self) -> list[str]:
        pieces: list[str] = []
        taken, self._next = self._next, []
        try:
            while taken or len(pieces) < GATHER:
                pieces += [write_event(*named) for named in self._view.feed(taken.pop() if taken else self._news())]
        except trio.WouldBlock:
            pass
        except trio.EndOfChannel:
            self._cut_off = True
        return pieces

    def _news(self) -> Seen:
        return self._seen.receive_nowait()


async def _session(worker: Worker, loop: SessionLoop) -> Any:
    store = harness_of(worker).store
    return await session_view(
        loop.name,
        sessions=store,
        signals=worker.store,
        loop=loop,
        why=worker.why,
        mask=worker.mask_json,
        now=time.time(),
    )


async def _waiting(worker: Worker, loop: SessionLoop) -> dict[str, Any]:
    if not loop.machine.linked:
        waiting, lock = loop.machine.waiting_on().as_json(), None
    else:
        store = harness_of(worker).store
        waiting, lock = await waiting_view(
            loop.name, sessions=store, signals=worker.store, loop=loop, why=worker.why, now=time.time()
        )
    shown: dict[str, Any] = cut(worker.mask_json({"waiting_on": waiting, "lock": lock, "status": loop.machine.status}))
    return shown

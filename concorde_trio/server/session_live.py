"""``/sessions/{id}/live``: server-sent events of what one session does, for who talks to it (SES-12a, SRV-4).

The law: who does not keep up is cut off, never waited for; what is masked is masked over the borders of pieces; and the
stream ends as a whole when the server closes. It begins with the session as it is, so nothing is missed between a look and
the stream.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import Any, Self

import trio
from quart import Blueprint, Response, request
from quart.wrappers.response import ResponseBody

from concorde_trio.conversations.live_view import LiveView
from concorde_trio.conversations.views import cut, session_view, waiting_view
from concorde_trio.server.parameters import Parameters
from concorde_trio.server.problems import SAFE_HEADERS
from concorde_trio.server.seam import Worker
from concorde_trio.server.session_doors import harness_of
from concorde_trio.server.session_paths import session_name
from concorde_trio.sessions.live import Seen
from concorde_trio.sessions.loop import SessionLoop

BUFFER = 2_000
"""Things that may wait for one reader before it is cut off."""
ALIVE = 5.0
"""Seconds after which something is said in any case: what it waits for, with the time that is left."""
GATHER = 200
"""Things that are told in one write at most."""


def session_live(worker: Worker) -> Blueprint:
    """The one route."""
    routes = Blueprint("session_live", __name__)

    @routes.get("/sessions/<name>/live")
    async def live(name: str) -> Response:
        """Events from now on; a session that is not there yet begins with its first input."""
        Parameters(request.args)
        session = session_name(name)
        loop = await harness_of(worker).loop(session)
        headers = {**SAFE_HEADERS, "content-type": "text/event-stream", "x-accel-buffering": "no"}
        if request.method == "HEAD":
            return Response(b"", headers=headers)
        return Response(_Stream(worker, loop), headers=headers)

    return routes


class _Stream(ResponseBody):
    """The body of the answer. Quart enters it, iterates it, and leaves it however that ends."""

    def __init__(self, worker: Worker, loop: SessionLoop) -> None:
        self._worker = worker
        self._loop = loop
        self._view = LiveView(loop, worker.mask, worker.mask_json)
        self._watching = ExitStack()
        self._seen: trio.MemoryReceiveChannel[Seen]
        self._last: Any = None
        self._begun = self._ended = False

    async def __aenter__(self) -> Self:
        self._seen = self._watching.enter_context(self._loop.watchers.watch(BUFFER))
        return self

    async def __aexit__(self, *error: object) -> None:
        self._watching.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """What is told in one write."""
        if self._ended:
            raise StopAsyncIteration
        if not self._begun:
            self._begun = True
            return _event("session", await _session(self._worker, self._loop))
        pieces = await self._gather()
        if self._ended:
            reason = "the session was closed" if self._loop.over else "this reader was too slow and was cut off"
            return b"".join([*pieces, _event("end", {"reason": reason})])
        waiting = await _waiting(self._worker, self._loop)
        now = {name: waiting["waiting_on"][name] for name in ("on", "about", "then")}
        if now != self._last or not pieces:
            self._last = now
            pieces.append(_event("waiting_on", waiting))
        return b"".join(pieces)

    async def _gather(self) -> list[bytes]:
        """What has happened, nothing if it is quiet for a while."""
        pieces: list[bytes] = []
        with trio.move_on_after(ALIVE):
            try:
                pieces += [_event(*named) for named in self._view.feed(await self._seen.receive())]
                while len(pieces) < GATHER:
                    pieces += [_event(*named) for named in self._view.feed(self._seen.receive_nowait())]
            except trio.WouldBlock:
                pass
            except trio.EndOfChannel:
                self._ended = True
        return pieces


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


def _event(name: str, document: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(document, ensure_ascii=True, allow_nan=False)}\n\n".encode()

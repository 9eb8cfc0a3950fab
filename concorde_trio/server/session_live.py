"""``/sessions/{id}/live``: server-sent events of what one session does, for who talks to it (SES-12a, SRV-4).

The law: who does not keep up is cut off, never waited for; what is masked is masked over the borders of pieces; and the
stream ends as a whole when the server closes. It begins with the session as it is, so nothing is missed between a look and
the stream.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any

import trio
from quart import Blueprint, Response, request

from concorde_trio.conversations.live_view import LiveView
from concorde_trio.conversations.views import cut, session_view, waiting_view
from concorde_trio.server.parameters import Parameters
from concorde_trio.server.problems import SAFE_HEADERS
from concorde_trio.server.seam import Worker
from concorde_trio.server.session_doors import harness_of
from concorde_trio.server.session_paths import session_name
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
        return Response(_stream(worker, loop), headers=headers)

    return routes


async def _stream(worker: Worker, loop: SessionLoop) -> AsyncIterator[bytes]:
    view = LiveView(loop, worker.mask, worker.mask_json)
    with loop.watchers.watch(BUFFER) as seen:
        yield _event("session", await _session(worker, loop))
        last: Any = None
        while True:
            pieces: list[bytes] = []
            with trio.move_on_after(ALIVE):
                try:
                    for named in view.feed(await seen.receive()):
                        pieces.append(_event(*named))
                    while len(pieces) < GATHER:
                        pieces += [_event(*named) for named in view.feed(seen.receive_nowait())]
                except trio.WouldBlock:
                    pass
                except trio.EndOfChannel:
                    reason = "the session was closed" if loop.over else "this reader was too slow and was cut off"
                    yield b"".join(pieces) + _event("end", {"reason": reason})
                    return
            waiting = await _waiting(worker, loop)
            now = {name: waiting["waiting_on"][name] for name in ("on", "about", "then")}
            if now != last or not pieces:
                last = now
                pieces.append(_event("waiting_on", waiting))
            yield b"".join(pieces)


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

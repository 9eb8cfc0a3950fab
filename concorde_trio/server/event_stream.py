"""Server-sent events as the body of an answer: how they are written, and how every such stream begins, idles and ends.

The law: a stream waits for nothing but news, a while of quiet, and the server's stop; what was taken is told before anything
else is waited for; and its last event, ``end``, says why there will be no more. Whoever reads one and meets no ``end`` lost
the connection.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from contextlib import AsyncExitStack
from typing import Any, Self

import trio
from quart import Response, request
from quart.wrappers.response import ResponseBody

from concorde_trio.server.problems import SAFE_HEADERS

STOPPING = "the server is stopping"
TOO_SLOW = "this reader was too slow and was cut off"
HEADERS = {**SAFE_HEADERS, "content-type": "text/event-stream", "x-accel-buffering": "no"}


def write_event(name: str, document: Any, event_id: str | None = None) -> str:
    """One event as it stands in a stream. ``document``: masked already; ValueError or TypeError if it is no JSON."""
    number = "" if event_id is None else f"id: {event_id}\n"
    return f"event: {name}\n{number}data: {json.dumps(document, ensure_ascii=True, allow_nan=False)}\n\n"


def answer_events(stream: EventStream) -> Response:
    """The answer to a GET; to a HEAD its head alone."""
    return Response(b"" if request.method == "HEAD" else stream, headers=HEADERS)


class EventStream(ResponseBody):
    """The body of an answer. Quart enters it, iterates it, and leaves it however that ends.

    ``closing`` is set when the server begins to stop; ``quiet`` is how many seconds may pass in which nothing is written.
    """

    quiet = 15.0

    def __init__(self, closing: trio.Event) -> None:
        self._closing = closing
        self._patience = trio.CancelScope()
        self._begun = self._ended = False
        self._open = AsyncExitStack()
        self._nursery: trio.Nursery

    # --- what each kind of stream is -----------------------------------------------------------------------------

    def enter(self, stack: AsyncExitStack) -> None:
        """Begin to listen; what is entered into ``stack`` is left with the stream."""

    @abstractmethod
    async def begin(self) -> str:
        """What is told first."""

    async def wait(self) -> None:
        """Until there is something to tell, or it is over. May be cancelled at any checkpoint, and must lose nothing by that."""
        raise NotImplementedError

    @abstractmethod
    async def tell(self) -> str | bytes:
        """What there is to tell now; after a while of quiet something that shows that the stream lives."""

    def over(self) -> str | None:
        """Why there will be no more, None while there may."""
        return None

    def behind(self) -> bool:
        """Whether more is to be told, although the server stops."""
        return False

    # --- what all of them do -------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._nursery = await stack.enter_async_context(trio.open_nursery())
            self._nursery.start_soon(self.watch)
            self.enter(stack)
            self._open = stack.pop_all()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._nursery.cancel_scope.cancel()
        await self._open.__aexit__(*error)  # type: ignore[arg-type]  # noqa: ASYNC102 (all in it was cancelled)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """What is told in one write."""
        if self._ended:
            raise StopAsyncIteration
        if not self._begun:
            self._begun = True
            return (await self.begin()).encode()
        if not self._closing.is_set():
            await self.listen()
        told = await self.tell()
        data = told.encode() if isinstance(told, str) else told
        reason = self.over()
        if reason is None and self._closing.is_set() and not self.behind():
            reason = STOPPING
        if reason is not None:
            self._ended = True
            data += write_event("end", {"reason": reason}).encode()
        return data

    async def listen(self) -> None:
        """Until there is something to tell, quiet has lasted for long, or the server stops."""
        with trio.move_on_after(self.quiet) as self._patience:
            await self.wait()

    async def watch(self) -> None:
        """Beside it, while it is open: have ``listen`` return when the server stops."""
        await self._closing.wait()
        self._patience.cancel()

"""A served worker whose runtime keeps sessions, with a model and a tool that do what the test tells them to."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import quote

import attrs
import httpx2
import trio
from quart_trio import QuartTrio

from concorde_trio._sansio.model_events import (
    CallStarted,
    ModelEvent,
    ModelRequest,
    ReplyEnd,
    StopReason,
    TextDelta,
    ToolSpec,
)
from concorde_trio.errors import ModelError
from concorde_trio.records import Prompt, Signal
from concorde_trio.runtimes.in_process import InProcessRuntime
from concorde_trio.server.access import Access
from concorde_trio.server.app import create_app, install
from concorde_trio.server.serving import serve
from concorde_trio.sessions.harness import SessionHarness
from concorde_trio.sessions.model import OnEvent
from concorde_trio.sessions.tool import ToolContext, ToolResult
from concorde_trio.signals.store import SignalStore
from concorde_trio.signals.worker import SignalWorker, open_worker
from concorde_trio.stores.memory import MemoryStore
from tests.server.house import OPERATOR, Wire, wire


class ToldModel:
    """A model that says what the test gives it, request by request."""

    name = "told"
    context_window = None

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self._open: dict[str, trio.MemorySendChannel[ModelEvent | ModelError]] = {}
        self._changed = trio.Event()

    async def stream(self, request: ModelRequest, on_event: OnEvent) -> None:
        """Say what comes, until it was the end of the reply."""
        send, receive = trio.open_memory_channel[ModelEvent | ModelError](1000)
        self.requests.append(request)
        self._open[request.session] = send
        self._changed.set()
        try:
            async for event in receive:
                if isinstance(event, ModelError):
                    raise event
                on_event(event)
                if isinstance(event, ReplyEnd):
                    return
        finally:
            if self._open.get(request.session) is send:
                del self._open[request.session]

    async def until_asked(self, session: str) -> None:
        """Wait until a request of this session is out."""
        while session not in self._open:
            self._changed = trio.Event()
            await self._changed.wait()

    async def give(self, session: str, *events: ModelEvent | ModelError) -> None:
        """Have the model say this, once it is asked."""
        await self.until_asked(session)
        for event in events:
            self._open[session].send_nowait(event)

    async def answer(self, session: str, text: str) -> None:
        """A whole reply."""
        await self.until_asked(session)
        await self.give(session, TextDelta(text), ReplyEnd())
        while session in self._open:
            await trio.lowlevel.checkpoint()

    async def call(self, session: str, call_id: str, arguments: dict[str, Any] | None = None) -> None:
        """A reply that calls the tool."""
        call = CallStarted(0, call_id, "work", json.dumps(arguments or {}))
        await self.give(session, call, ReplyEnd(StopReason.CALLS))


class ToldTool:
    """A tool that works until the test says what it gives."""

    spec = ToolSpec(name="work", description="Do it.", parameters={"type": "object"})
    timeout = 60.0
    concurrent = False
    kind = "execute"

    def __init__(self) -> None:
        self.begun = trio.Event()
        self._send, self._receive = trio.open_memory_channel[str](1000)

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Wait for the result."""
        self.begun.set()
        return ToolResult(await self._receive.receive())

    def give(self, text: str) -> None:
        """Let a call end."""
        self._send.send_nowait(text)


@attrs.define
class SessionHouse:
    """A served worker with sessions. ``operator`` asks it with the operator token."""

    worker: SignalWorker
    harness: SessionHarness
    model: ToldModel
    tool: ToldTool
    url: str
    closing: trio.Event
    operator: httpx2.AsyncClient
    agent: httpx2.AsyncClient
    app: QuartTrio

    async def get(self, *segments: str, **query: Any) -> Any:
        """A document."""
        answer = await self.operator.get(path_of(*segments), params=query)
        assert answer.status_code == 200, answer.text
        assert answer.headers["cache-control"] == "no-store"
        return answer.json()

    async def post(self, *segments: str, status: int = 200, **body: Any) -> Any:
        """What a change is answered with."""
        answer = await self.operator.post(path_of(*segments), **({"json": body} if body else {}))
        assert answer.status_code == status, answer.text
        return answer.json()

    async def say(self, session: str, text: str, **more: Any) -> Any:
        """An input, and its receipt."""
        return await self.post("sessions", session, "input", status=202, text=text, **more)

    async def until(self, session: str, **fields: Any) -> Any:
        """The session's document once these fields of it are so; ``on`` is what it waits for."""
        while True:
            answer = await self.operator.get(path_of("sessions", session))
            if answer.status_code == 200:
                found = answer.json()
                if all({**found, "on": found["waiting_on"]["on"]}[name] == value for name, value in fields.items()):
                    return found
            await trio.sleep(0.01)


def path_of(*segments: str) -> str:
    """A path, each segment percent-encoded; HTTP clients would resolve dots."""
    return "/" + "/".join(quote(each, safe="").replace(".", "%2E") for each in segments)


def prompts(signal: Signal) -> list[Prompt]:
    """A handler: the payload says what its prompts are."""
    return [Prompt(**one) for one in signal.payload or []]


@asynccontextmanager
async def open_session_house(
    *, store: SignalStore | None = None, url_prefix: str | None = None, **options: Any
) -> AsyncIterator[SessionHouse]:
    """Serve a worker whose runtime keeps sessions; ``options`` are settings of them. ``url_prefix``: in a user's own app."""
    model, tool, closing = ToldModel(), ToldTool(), trio.Event()
    runtime = InProcessRuntime(model=model, tools=[tool], **options)
    access = Access.on("127.0.0.1", operator_token=OPERATOR)
    async with (
        open_worker(store or MemoryStore(), runtime, {"prompts": prompts}, stop_grace=2.0) as worker,
        trio.open_nursery() as nursery,
    ):
        if url_prefix is None:
            app = create_app(worker, access=access, closing=closing)
        else:
            app = QuartTrio("theirs")
            install(app, worker, access=access, closing=closing, url_prefix=url_prefix)
        url = await nursery.start(partial(serve, app, closing=closing, mask=worker.mask)) + (url_prefix or "")
        async with (
            httpx2.AsyncClient(base_url=url, timeout=20, verify=False) as agent,
            httpx2.AsyncClient(
                base_url=url, timeout=20, verify=False, headers={"authorization": f"Bearer {OPERATOR}"}
            ) as operator,
        ):
            yield SessionHouse(worker, runtime.sessions, model, tool, url, closing, operator, agent, app)
        closing.set()
        worker.stop("cancel")


class Live:
    """A stream of server-sent events, read as far as a test asks."""

    def __init__(self, connection: Wire) -> None:
        self._connection = connection
        self.seen: list[tuple[str, Any]] = []

    async def next(self) -> tuple[str, Any] | None:
        """The next event, None at the end of the stream, which must not be in the middle of one."""
        event = await self._connection.piece(b"\n\n")
        if event is None:
            assert await self._connection.rest() == b""
            return None
        name, document = event.decode().split("\n")
        found = name.removeprefix("event: "), json.loads(document.removeprefix("data: "))
        self.seen.append(found)
        return found

    async def until(self, wanted: str, **fields: Any) -> Any:
        """The next event of this name with these fields; what came before is kept in ``seen``."""
        while (found := await self.next()) is not None:
            name, document = found
            if name == wanted and all(document[field] == value for field, value in fields.items()):
                return document
        raise AssertionError(f"the stream ended before {wanted}: {self.seen}")

    def text(self, name: str = "text") -> str:
        """All that was streamed under a name."""
        return "".join(document["text"] for seen, document in self.seen if seen == name)


@asynccontextmanager
async def watching(house: SessionHouse, session: str) -> AsyncIterator[Live]:
    """Watch a session; the first event, the session itself, has come."""
    async with wire(house.url) as connection:
        lines = ("Host: localhost", f"authorization: Bearer {OPERATOR}", "", "")
        head = "\r\n".join((f"GET {path_of('sessions', session, 'live')} HTTP/1.0", *lines))
        await connection.send(head.encode())
        await connection.until(b"HTTP/1.1 200 ")
        await connection.until(b"content-type: text/event-stream\r\n")
        await connection.until(b"\r\n\r\n")
        live = Live(connection)
        first = await live.next()
        assert first is not None
        assert first[0] == "session"
        yield live

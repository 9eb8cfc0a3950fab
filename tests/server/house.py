"""A real worker behind a real server on a free port, and a client that can say what HTTP libraries will not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import attrs
import httpx2
import trio
from quart_trio import QuartTrio

from concorde_trio.records import Prompt, RunOutcome, RunPrompt, Signal
from concorde_trio.server.access import Access
from concorde_trio.server.app import create_app, install
from concorde_trio.server.serving import ServerLimits, serve
from concorde_trio.signals.store import RunFilter, SignalStore
from concorde_trio.signals.worker import SignalWorker, open_worker
from concorde_trio.stores.memory import MemoryStore

OPERATOR = "operator-token-of-the-tests"


class HeldRuns:
    """A runtime whose runs last until the test lets their session end."""

    def __init__(self) -> None:
        self.running: dict[str, trio.Event] = {}
        self.changed = trio.Event()
        self.closed = False

    async def run(self, prompt: RunPrompt) -> RunOutcome:
        """Wait to be let go, and say the prompt again."""
        over = self.running[prompt.session] = trio.Event()
        self.changed.set()
        try:
            if not self.closed:
                await over.wait()
        finally:
            del self.running[prompt.session]
        return RunOutcome.ok(prompt.text)

    async def until_running(self, *sessions: str) -> None:
        """Wait until runs of all these sessions are in flight."""
        while not set(sessions) <= self.running.keys():
            self.changed = trio.Event()
            await self.changed.wait()

    def let_all_go(self) -> None:
        """Every run in flight ends now."""
        for over in self.running.values():
            over.set()


def prompts(signal: Signal) -> list[Prompt]:
    """A handler: the payload says what its prompts are."""
    return [Prompt(**one) for one in signal.payload or []]


@attrs.define
class House:
    """A served worker. ``agent`` and ``operator`` ask it, with and without the operator token."""

    worker: SignalWorker
    runs: HeldRuns
    app: QuartTrio
    url: str
    closing: trio.Event
    agent: httpx2.AsyncClient
    operator: httpx2.AsyncClient

    async def start(self, **prompt: Any) -> str:
        """Start one run and give its id."""
        signal_id = await self.worker.emit("prompts", [{"text": "do it", **prompt}])
        await self.runs.until_running(prompt["session"])
        return f"{signal_id}-1"

    async def end(self, session: str) -> None:
        """End a session's run, and wait until its signal is settled."""
        found = await self.worker.store.runs(RunFilter(session=session))
        (run,) = (run for run in found if run.state == "running")
        self.runs.running[session].set()
        await self.worker.wait_settled(run.signal_id)


@asynccontextmanager
async def open_house(
    *,
    app: QuartTrio | None = None,
    access: Access | None = None,
    whole_app: bool = False,
    limits: ServerLimits | None = None,
    prepare: Any = None,
    store: SignalStore | None = None,
) -> AsyncIterator[House]:
    """Serve a new app, or the user's; ``prepare(app)`` adds routes to it before it is served."""
    runs, closing = HeldRuns(), trio.Event()
    access = Access.on("127.0.0.1", operator_token=OPERATOR) if access is None else access
    store = MemoryStore() if store is None else store
    async with open_worker(store, runs, {"prompts": prompts}) as worker, trio.open_nursery() as nursery:
        if app is None:
            app = create_app(worker, access=access, closing=closing)
        else:
            install(app, worker, access=access, closing=closing, whole_app=whole_app)
        if prepare is not None:
            prepare(app)
        url = await nursery.start(partial(serve, app, closing=closing, limits=limits, mask=worker.mask))
        async with (
            httpx2.AsyncClient(base_url=url, timeout=20, verify=False) as agent,
            httpx2.AsyncClient(
                base_url=url, timeout=20, verify=False, headers={"authorization": f"Bearer {OPERATOR}"}
            ) as operator,
        ):
            yield House(worker, runs, app, url, closing, agent, operator)
        closing.set()
        runs.closed = True
        runs.let_all_go()


@attrs.frozen
class Answer:
    """What a server said to one request."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Wire:
    """One TCP connection, byte by byte."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._buffer = b""

    async def send(self, data: bytes) -> None:
        """Send bytes, as far as the server takes them."""
        try:
            await self.stream.send_all(data)
        except trio.BrokenResourceError:
            pass

    async def answer(self) -> Answer | None:
        """The next answer, None when the server closed instead. Interim answers are skipped."""
        while True:
            head = await self._until(b"\r\n\r\n")
            if head is None:
                return None
            first, *lines = head.decode("latin-1").split("\r\n")
            status = int(first.split(" ")[1])
            if status >= 200:
                break
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if "content-length" in headers:
            body = await self._exactly(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            body = await self._chunks()
        else:
            body = b""
        return Answer(status, headers, body)

    async def until(self, text: bytes) -> None:
        """Read up to ``text``, which must come."""
        assert await self._until(text) is not None

    async def piece(self, end: bytes) -> bytes | None:
        """What comes up to ``end``, None if the server closed first."""
        return await self._until(end)

    async def rest(self) -> bytes:
        """All that still comes until the server closes."""
        while await self._more():
            pass
        return self._buffer

    async def _more(self) -> bool:
        try:
            data = await self.stream.receive_some(65536)
        except trio.BrokenResourceError:
            return False
        self._buffer += data
        return bool(data)

    async def _until(self, end: bytes) -> bytes | None:
        while end not in self._buffer:
            if not await self._more():
                return None
        found, self._buffer = self._buffer.split(end, 1)
        return found

    async def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size and await self._more():
            pass
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    async def _chunks(self) -> bytes:
        body = b""
        while (line := await self._until(b"\r\n")) is not None:
            size = int(line, 16)
            body += await self._exactly(size)
            await self._exactly(2)
            if not size:
                break
        return body


@asynccontextmanager
async def wire(url: str) -> AsyncIterator[Wire]:
    """A connection to the server at ``url``."""
    parts = urlsplit(url)
    assert parts.hostname and parts.port
    stream = await trio.open_tcp_stream(parts.hostname, parts.port)
    async with stream:
        yield Wire(stream)


async def ask(url: str, data: bytes) -> Answer | None:
    """Send ``data`` on a connection of its own and give the first answer."""
    async with wire(url) as connection:
        await connection.send(data)
        return await connection.answer()


def request(target: str = "/healthz", *lines: str, method: str = "GET", body: bytes = b"") -> bytes:
    """An HTTP/1.1 request. ``lines``: further header lines, each byte a character."""
    head = "\r\n".join([f"{method} {target} HTTP/1.1", "Host: localhost", *lines])
    return head.encode("latin-1") + b"\r\n\r\n" + body

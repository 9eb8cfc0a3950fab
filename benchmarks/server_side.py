"""The servers that are measured, each in a process of its own: ``python -m benchmarks.server_side ROLE [...]``.

It says where it listens in one line of JSON and ends with its input.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import hypercorn.config
import hypercorn.trio
import trio
from quart_trio import QuartTrio

from concorde_trio.events import Event, RunStarted
from concorde_trio.records import Prompt, RunOutcome, RunPrompt, Signal
from concorde_trio.server.access import Access
from concorde_trio.server.app import install
from concorde_trio.server.serving import serve
from concorde_trio.signals.worker import SignalWorker, open_worker
from concorde_trio.stores.memory import MemoryStore

TOKEN = "the-token-of-the-benchmark"
TAG = "tag-of-the-run-in-flight"


def _app() -> QuartTrio:
    app = QuartTrio("bench")
    app.config["RESPONSE_TIMEOUT"] = None

    @app.get("/ping")
    async def ping() -> dict[str, str]:
        return {"answer": "pong"}

    return app


def _say(**told: Any) -> None:
    print(json.dumps(told), flush=True)


async def _until_input_ends() -> None:
    await trio.to_thread.run_sync(sys.stdin.read)


async def bare() -> None:
    """A route of Quart-Trio, served by Hypercorn as it comes."""
    stop, config = trio.Event(), hypercorn.config.Config()
    config.bind = ["127.0.0.1:0"]
    config.graceful_timeout = 0.1
    config.errorlog = config.accesslog = None
    async with trio.open_nursery() as nursery:
        app: Any = _app()
        (url,) = await nursery.start(partial(hypercorn.trio.serve, app, config, shutdown_trigger=stop.wait))
        _say(url=url)
        await _until_input_ends()
        nursery.cancel_scope.cancel()


async def _worker(serving: Callable[[SignalWorker, str], Awaitable[None]]) -> None:
    """A worker with a run in flight that has a tag, behind the user's own app with the same route."""
    running, over = trio.Event(), trio.Event()

    class Held:
        async def run(self, prompt: RunPrompt, /) -> RunOutcome:
            running.set()
            await over.wait()
            return RunOutcome.ok()

    def one(signal: Signal) -> list[Prompt]:
        return [Prompt(text="do it", session="ann", tag=TAG)]

    async with open_worker(MemoryStore(), Held(), {"one": one}) as worker, trio.open_nursery() as nursery:
        app, closing = _app(), trio.Event()
        install(app, worker, access=Access.on("127.0.0.1", operator_token=TOKEN), closing=closing, whole_app=True)
        url = await nursery.start(partial(serve, app, closing=closing, mask=worker.mask))
        await worker.emit("one")
        await running.wait()
        gc.collect()
        gc.freeze()  # as the command ``serve`` does
        await serving(worker, url)
        closing.set()
        over.set()


async def ours() -> None:
    """The same route in an app with the agent server's routes, served by ``serve``."""

    async def serving(worker: SignalWorker, url: str) -> None:
        _say(url=url)
        await _until_input_ends()

    await _worker(serving)


def event(number: int) -> Event:
    """One of many; ``at`` is monotonic seconds here, the same clock in every process of the machine."""
    signal_id = f"{number:020x}"
    return RunStarted(
        at=time.monotonic(), run_id=f"{signal_id}-1", signal_id=signal_id, session=f"session-{number % 50}"
    )


async def _publish(rate: float, publish: Callable[[Event], None]) -> None:
    """Events at even distances, without end."""
    begun, number = time.monotonic(), 0
    while True:
        while number < (time.monotonic() - begun) * rate:
            number += 1
            publish(event(number))
        await trio.sleep(1 / rate)


async def events(rate: str) -> None:
    """``/events`` of a worker where so many things happen a second."""

    async def serving(worker: SignalWorker, url: str) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_publish, float(rate), lambda event: worker.bus.publish([event]))
            _say(url=url)
            await _until_input_ends()
            nursery.cancel_scope.cancel()

    await _worker(serving)


async def broadcast(rate: str) -> None:
    """The least that this can cost on Trio: the same events, each written once, to plain sockets, every 5 ms."""
    streams: list[trio.SocketStream] = []
    waiting: list[bytes] = []

    async def accept(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
        streams.append(stream)
        await trio.sleep_forever()

    def publish(event: Event) -> None:
        waiting.append(f"event: {event.name}\ndata: {json.dumps(event.as_json())}\n\n".encode())

    async def write() -> None:
        while True:
            await trio.sleep(0.005)
            data = b"".join(waiting)
            waiting.clear()
            for stream in streams if data else ():
                with suppress(trio.BrokenResourceError):
                    await stream.send_all(data)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, accept, 0, host="127.0.0.1"))
        nursery.start_soon(_publish, float(rate), publish)
        nursery.start_soon(write)
        _say(url=f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}")
        await _until_input_ends()
        nursery.cancel_scope.cancel()


ROLES = {"bare": bare, "ours": ours, "events": events, "broadcast": broadcast}

if __name__ == "__main__":
    trio.run(ROLES[sys.argv[1]], *sys.argv[2:])

"""How soon an emit becomes a run: from the call of the emit to the call of the Runtime, in milliseconds.

By who emits: a task of the worker's program, another process into the same database, and a request to the agent server; with
nothing else to do, and with a third process that commits signals (which make no prompts) into the same database as fast as it can.
Between two emits the queue becomes idle again: what is measured is its waking up.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import trio
from quart_trio import QuartTrio

from benchmarks import queue
from benchmarks.bench import Bench
from benchmarks.figures import Beside, Figure, Goal
from benchmarks.reference import reference
from benchmarks.samples import Sample, in_chunks, percentile
from concorde_trio.client.client import Client
from concorde_trio.records import RunOutcome, RunPrompt, Signal
from concorde_trio.server.access import Access
from concorde_trio.server.app import install
from concorde_trio.server.serving import serve
from concorde_trio.signals.handlers import SignalHandler
from concorde_trio.signals.worker import SignalWorker, open_worker
from concorde_trio.stores.sqlite import SqliteStore

Emit = Callable[[], Awaitable[float]]
"""Emits one signal; when it began to, in monotonic seconds."""

PAUSE = 0.01
"""Seconds after a run, for the queue to become idle."""

CHUNK = 100
"""Emits in a round."""

TOKEN = "the-token-of-the-benchmark"


class Noting:
    """A Runtime that notes when it was called last."""

    def __init__(self) -> None:
        self.called = 0.0
        self.started = trio.Event()

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        self.called = time.monotonic()
        self.started.set()
        return RunOutcome.ok()


def suite(bench: Bench) -> Iterator[Figure]:
    """By who emits; beside each a commit of the same rows, taken in turns with it."""
    idle = bench.times(3, 1) * CHUNK
    from_here = _measure(bench, "an emit in the same process", idle, _in_process)
    yield _figure("an emit in the same process", from_here, None)
    elsewhere = _measure(bench, "an emit in another process", idle, _in_another_process)
    yield _figure("an emit in another process", elsewhere, 50.0)
    by_http = _measure(bench, "a POST to the agent server", idle, _by_http)
    yield _figure("a POST to the agent server", by_http, None)
    busy = _measure(bench, "beside a saturated writer", bench.times(3, 1) * CHUNK, _in_another_process, busy=True)
    yield _figure("an emit in another process, beside a saturated writer", busy, 200.0)


def _figure(who: str, found: tuple[Sample, Sample, Sample], goal: float | None) -> Figure:
    p99, median, commits = found
    return Figure(
        name=f"{who} to the start of its run, p99",
        unit="ms",
        better="lower",
        sample=p99,
        beside=(
            Beside(what="the same, median", sample=median),
            Beside(what="two sequential commits of the same rows, p99", sample=commits, kind="limit"),
        ),
        goal=None
        if goal is None
        else Goal(says=f"under {goal:g} ms", sample=p99, bound=goal, at_least=False, absolute=True),
    )


def _measure(
    bench: Bench, phase: str, count: int, emits: Callable[..., object], *, busy: bool = False
) -> tuple[Sample, Sample, Sample]:
    """Of each chunk: the 99th percentile, the median, and that of two commits."""
    with bench.new_folder() as folder:
        found = trio.run(_emit_and_start, bench, phase, folder, count, emits, busy)
        with reference(folder) as rows:
            commits = [seconds * 1e3 for seconds in rows.seconds(2 * count, 1)]
    chunks = in_chunks(found, CHUNK)
    pairs = [first + second for first, second in zip(commits[::2], commits[1::2], strict=True)]
    return (
        Sample(percentile(chunk, 0.99) for chunk in chunks),
        Sample(statistics.median(chunk) for chunk in chunks),
        Sample(percentile(chunk, 0.99) for chunk in in_chunks(pairs, CHUNK)),
    )


async def _emit_and_start(
    bench: Bench, phase: str, folder: Path, count: int, emits: Callable[..., object], busy: bool
) -> list[float]:
    store, runtime, found = SqliteStore(folder / "queue.db"), Noting(), list[float]()
    handlers = queue.handlers(repeatable=True) | {"noise": SignalHandler(handle=_none, repeatable=True)}
    async with open_worker(store, runtime, handlers, sweep=None) as worker:
        with _busy_writer(store.path) if busy else _nobody():
            entered: object = emits(worker, store)
            async with entered as emit:  # type: ignore[attr-defined]
                for _ in range(3):
                    await _one(emit, runtime)
                for _ in bench.rounds(phase, count, collect=False):
                    found.append(await _one(emit, runtime))
    return found


async def _one(emit: Emit, runtime: Noting) -> float:
    runtime.started = trio.Event()
    called = await emit()
    await runtime.started.wait()
    await trio.sleep(PAUSE)
    return (runtime.called - called) * 1e3


def _none(signal: Signal) -> None:
    """A handler that makes no prompts."""


# --- who emits ----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _in_process(worker: SignalWorker, store: SqliteStore) -> AsyncIterator[Emit]:
    async def emit() -> float:
        called = time.monotonic()
        await worker.emit("bench", queue.payload(0))
        return called

    yield emit


@asynccontextmanager
async def _in_another_process(worker: SignalWorker, store: SqliteStore) -> AsyncIterator[Emit]:
    with _emitter(store.path) as process:

        def emit_there() -> float:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            called, _ = process.stdout.readline().split()
            return float(called)

        yield partial(trio.to_thread.run_sync, emit_there)


@asynccontextmanager
async def _by_http(worker: SignalWorker, store: SqliteStore) -> AsyncIterator[Emit]:
    """In the same process, as a gateway has it; the client is one more task, and what it costs is counted."""
    closing = trio.Event()
    app = QuartTrio("bench")
    install(app, worker, access=Access.on("127.0.0.1", operator_token=TOKEN), closing=closing, whole_app=True)
    async with trio.open_nursery() as nursery:
        url = await nursery.start(partial(serve, app, closing=closing, mask=worker.mask))
        async with Client(url, token=TOKEN) as client:

            async def emit() -> float:
                called = time.monotonic()
                await client.emit("bench", queue.payload(0))
                return called

            yield emit
        closing.set()


@contextmanager
def _emitter(database: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "benchmarks.emitting", str(database), *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.stdin.close()


@contextmanager
def _busy_writer(database: Path) -> Iterator[None]:
    with _emitter(database, "busy"):
        yield


@contextmanager
def _nobody() -> Iterator[None]:
    yield

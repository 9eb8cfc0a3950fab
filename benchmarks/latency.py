"""How long a run waits for nothing but us: from the release of its lock, and from an emit elsewhere, to its start."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

import trio

from benchmarks import queue
from benchmarks.figures import Figure, Goal, percentile, rounds
from benchmarks.reference import reference
from concorde_trio.events import Event, RunQueued
from concorde_trio.records import RunOutcome, RunPrompt
from concorde_trio.signals.worker import open_worker
from concorde_trio.stores.sqlite import SqliteStore

WAKE_BOUND = 100.0
"""Milliseconds of SIG-6: the worker notices what another process emitted."""

_EMIT = """
import sys, time
from concorde_trio.signals.emit import emit_sync
from concorde_trio.stores.sqlite import SqliteStore
store = SqliteStore(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    emit_sync(store, "bench", {"session": "session-0"})
    print(time.monotonic(), flush=True)
"""


class Noting:
    """A Runtime whose runs take a moment, and which notes when they begin and end; the first waits for ``gate``."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.gate = trio.Event()
        self.begun: list[float] = []
        self.ended: list[float] = []
        self.started = trio.Event()

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        self.begun.append(time.monotonic())
        self.started.set()
        await self.gate.wait()
        await trio.sleep(self.seconds)
        self.ended.append(time.monotonic())
        return RunOutcome.ok()


def release(quick: bool) -> list[Figure]:
    """From the end of a run to the start of the next in its session, in milliseconds; runs of 1 ms, one session.

    All are claimed before the first ends: claims of others share the commits of a busy queue, which ``runs`` measures.
    """
    found: list[float] = []
    commits: list[float] = []
    count = 300
    for _ in rounds(2 if quick else 7, "release to start"):
        runtime = Noting(0.001)
        with queue.fresh_store() as store:
            trio.run(queue.fill, store, count, 1)
            trio.run(_settle, store, runtime, count)
            with reference(store.path) as bare:
                commits += bare.seconds([json.dumps(queue.payload(0, 1))] * count, 1)
        found += [(begun - ended) * 1e3 for begun, ended in zip(runtime.begun[1:], runtime.ended[:-1], strict=True)]
    pairs = [(first + second) * 1e3 for first, second in zip(commits[::2], commits[1::2], strict=True)]
    p99 = percentile(found, 0.99)
    return [
        Figure(
            name="release of a lock to the start of the next run, p99",
            unit="ms",
            value=p99,
            beside=(("two sequential commits of the same rows, p99", percentile(pairs, 0.99)),),
            goal=Goal(
                says="under two commits (p99) + 2 ms",
                value=p99,
                bound=percentile(pairs, 0.99) + 2,
                at_least=False,
            ),
        ),
        Figure(
            name="the same, median",
            unit="ms",
            value=statistics.median(found),
            beside=(("two sequential commits of the same rows, median", statistics.median(pairs)),),
        ),
    ]


def wake(quick: bool) -> list[Figure]:
    """From the return of an emit in another process to the start of its run, in milliseconds; nothing else to do."""
    with queue.fresh_store() as store:
        found, commits = trio.run(_wake, store, 10 if quick else 40)
    p99 = percentile(found, 0.99)
    return [
        Figure(
            name="emit in another process to the start of its run, p99",
            unit="ms",
            value=p99,
            beside=(("one sequential commit of the same rows, p99", percentile(commits, 0.99)),),
            goal=Goal(says="noticed in 100 ms (SIG-6)", value=p99, bound=WAKE_BOUND, at_least=False),
        ),
        Figure(
            name="the same, median",
            unit="ms",
            value=statistics.median(found),
            beside=(("one sequential commit of the same rows, median", statistics.median(commits)),),
        ),
    ]


async def _settle(store: SqliteStore, runtime: Noting, count: int) -> None:
    settled, queued = queue.Countdown(count), 0

    def note(event: Event) -> None:
        nonlocal queued
        settled.note(event)
        if isinstance(event, RunQueued):
            queued += 1
            if queued == count:
                runtime.gate.set()

    async with open_worker(store, runtime, queue.handlers(repeatable=True)) as worker:
        worker.bus.call(note)
        await settled.over.wait()


async def _wake(store: SqliteStore, count: int) -> tuple[list[float], list[float]]:
    runtime = Noting(0)
    runtime.gate.set()
    found: list[float] = []
    commits: list[float] = []
    payload = json.dumps(queue.payload(0, 1))
    async with open_worker(store, runtime, queue.handlers(repeatable=True), sweep=None):
        producer = subprocess.Popen(  # noqa: ASYNC220
            [sys.executable, "-c", _EMIT, str(store.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with producer:
            assert producer.stdin is not None and producer.stdout is not None
            await trio.to_thread.run_sync(producer.stdout.readline)
            for _ in rounds(count, "emit elsewhere to start"):
                runtime.started = trio.Event()
                producer.stdin.write("emit\n")
                producer.stdin.flush()
                emitted = float(await trio.to_thread.run_sync(producer.stdout.readline))
                await runtime.started.wait()
                found.append((runtime.begun[-1] - emitted) * 1e3)
                await trio.sleep(0.05)  # until the queue is idle again: what is measured is its waking up
            producer.stdin.close()
    async with store.open():
        with reference(store.path) as bare:
            commits += [seconds * 1e3 for seconds in bare.seconds([payload] * count, 1)]
    return found, commits

"""What a waiting run costs in the worker's memory, and a live session in its harness's.

Counted by tracemalloc: every allocation of Python's, after the garbage was collected. Beside it stand the texts that any program would keep of
it. (What the system counts as resident says little: pages of earlier rounds are used again.)
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import trio

from benchmarks import queue
from benchmarks.bench import Bench
from benchmarks.figures import Beside, Figure, Goal
from benchmarks.samples import Sample
from benchmarks.transcripts import MESSAGES, WORDS, Stalling, Transcripts
from concorde_trio.events import Event, RunQueued
from concorde_trio.records import RunOutcome, RunPrompt
from concorde_trio.sessions.harness import SessionHarness
from concorde_trio.signals.worker import open_worker
from concorde_trio.stores.sqlite import SqliteStore


def suite(bench: Bench) -> Iterator[Figure]:
    """Bytes of one."""
    count = 2_000 if bench.quick else 10_000
    traced = _traced(bench, "waiting runs", lambda: _waiting(bench, count))
    yield Figure(
        name=f"a waiting run in the worker ({count:,} of them, claimed)",
        unit="bytes",
        better="lower",
        sample=traced,
        beside=(Beside(what="its payload's text, 200 bytes", sample=Sample([float(queue.PAYLOAD)]), kind="limit"),),
        goal=Goal(says="under 1 KB", sample=traced, bound=1024.0, at_least=False, absolute=True),
    )
    count = 500 if bench.quick else 2_000
    traced = _traced(bench, "live sessions", lambda: _sessions(count))
    text = Sample([float(MESSAGES * (len(WORDS) + 20))])
    yield Figure(
        name=f"a live session with {MESSAGES} messages ({count:,} of them)",
        unit="bytes",
        better="lower",
        sample=traced,
        beside=(Beside(what="the text of its messages", sample=text, kind="limit"),),
        goal=Goal(says="under 24 KB", sample=traced, bound=24.0 * 1024, at_least=False, absolute=True),
    )


def _traced(bench: Bench, phase: str, grown: Callable[[], float]) -> Sample:
    """By tracemalloc's count, some rounds; the first warms up."""
    found = []
    for number in bench.rounds(phase, 1 + bench.times(3, 1)):
        tracemalloc.start()
        try:
            bytes_of_one = grown()
        finally:
            tracemalloc.stop()
        if number:
            found.append(bytes_of_one)
    return Sample(found)


class Held:
    """A Runtime whose runs do not end before they are cancelled."""

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        await trio.sleep_forever()
        raise AssertionError


def _waiting(bench: Bench, count: int) -> float:
    async def main() -> float:
        with bench.new_folder() as folder:
            store = SqliteStore(folder / "queue.db")
            async with store.open():
                await queue.fill(store, queue.SESSIONS)
            async with _claiming(store, queue.SESSIONS) as claimed:
                await claimed.wait()
                before = _settled()
            async with store.open():
                await queue.fill(store, count)
            async with _claiming(store, count) as claimed:
                await claimed.wait()
                return (_settled() - before) / count

    return trio.run(main)


@asynccontextmanager
async def _claiming(store: SqliteStore, count: int) -> AsyncIterator[trio.Event]:
    """A worker whose runs do not end; the event is set once it has queued so many."""
    left, claimed = count, trio.Event()

    def note(event: Event) -> None:
        nonlocal left
        if isinstance(event, RunQueued):
            left -= 1
            if not left:
                claimed.set()

    async with open_worker(store, Held(), queue.handlers(repeatable=True)) as worker:
        worker.bus.call(note)
        yield claimed
        worker.stop("cancel")


def _sessions(count: int) -> float:
    async def main() -> float:
        async with SessionHarness(store=Transcripts(MESSAGES), model=Stalling()).open() as harness:  # type: ignore[arg-type]
            await harness.loop("warm")
            before = _settled()
            for number in range(count):
                await harness.loop(f"session-{number}")
            return (_settled() - before) / count

    return trio.run(main)


def _settled() -> int:
    """Bytes in use once the garbage is collected."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]

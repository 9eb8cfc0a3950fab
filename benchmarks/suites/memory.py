"""What a waiting run costs in the worker's memory, and a live session in its harness's.

Counted by tracemalloc: every allocation of Python's, after the garbage was collected. Beside it stand the texts that any program would keep of
it, and how much the resident memory grew that the system counts (in a round of its own, for tracemalloc needs memory too).
"""

from __future__ import annotations

import gc
import os
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

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

Used = Callable[[], float]
"""Bytes in use now."""


def suite(bench: Bench) -> Iterator[Figure]:
    """Bytes of one."""
    count = 2_000 if bench.quick else 10_000
    traced, resident = _twice(bench, "waiting runs", lambda used: _waiting(bench, count, used))
    yield Figure(
        name=f"a waiting run in the worker ({count:,} of them, claimed)",
        unit="bytes",
        better="lower",
        sample=traced,
        beside=(
            Beside(what="resident memory, by the system's count", sample=resident),
            Beside(what="its payload's text, 200 bytes", sample=Sample([float(queue.PAYLOAD)]), kind="limit"),
        ),
        goal=Goal(says="under 1 KB", sample=traced, bound=1024.0, at_least=False, absolute=True),
    )
    count = 500 if bench.quick else 3_000
    traced, resident = _twice(bench, "live sessions", lambda used: _sessions(count, used))
    yield Figure(
        name=f"a live session with {MESSAGES} messages ({count:,} of them)",
        unit="bytes",
        better="lower",
        sample=traced,
        beside=(
            Beside(what="resident memory, by the system's count", sample=resident),
            Beside(what="the text of its messages", sample=Sample([float(MESSAGES * (len(WORDS) + 20))]), kind="limit"),
        ),
        goal=Goal(says="under 24 KB", sample=traced, bound=24.0 * 1024, at_least=False, absolute=True),
    )


def _twice(bench: Bench, phase: str, grown: Callable[[Used], float]) -> tuple[Sample, Sample]:
    """By the system's count and by tracemalloc's, each some rounds; the first round of all warms up."""
    resident, traced = [], []
    rounds = bench.times(3, 1)
    for number in bench.rounds(phase, 1 + 2 * rounds):
        if number <= rounds:
            resident.append(grown(_resident))
            continue
        tracemalloc.start()
        try:
            traced.append(grown(lambda: float(tracemalloc.get_traced_memory()[0])))
        finally:
            tracemalloc.stop()
    return Sample(traced), Sample(resident[:1] if rounds == 1 else resident[1:])


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


class Held:
    """A Runtime whose runs do not end before they are cancelled."""

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        await trio.sleep_forever()
        raise AssertionError


def _waiting(bench: Bench, count: int, used: Used) -> float:
    async def main() -> float:
        with bench.new_folder() as folder:
            store = SqliteStore(folder / "queue.db")
            async with store.open():
                await queue.fill(store, queue.SESSIONS)
            async with _claiming(store, queue.SESSIONS) as claimed:
                await claimed.wait()
                before = _settled(used)
            async with store.open():
                await queue.fill(store, count)
            async with _claiming(store, count) as claimed:
                await claimed.wait()
                return (_settled(used) - before) / count

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


def _sessions(count: int, used: Used) -> float:
    async def main() -> float:
        async with SessionHarness(store=Transcripts(MESSAGES), model=Stalling()).open() as harness:  # type: ignore[arg-type]
            await harness.loop("warm")
            before = _settled(used)
            for number in range(count):
                await harness.loop(f"session-{number}")
            return (_settled(used) - before) / count

    return trio.run(main)


def _settled(used: Used) -> float:
    gc.collect()
    return used()

"""What sessions cost while they live: the heartbeat, many leases that expire at one instant, streams, one and a thousand at once.

The loops, the heartbeat, the host and the lock are the real ones; the store hands out transcripts and takes changes
without a disk, whose speed is no subject here. Of streams the processor's time is counted. Each figure stands beside bare Trio, or a bare client, in the same run.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import attrs
import trio

from benchmarks.bench import Bench
from benchmarks.figures import Beside, Figure, Goal
from benchmarks.samples import Sample
from benchmarks.transcripts import Stalling, Streaming, Transcripts
from concorde_trio._sansio.model_events import ModelRequest
from concorde_trio._sansio.session_terms import SessionSettings
from concorde_trio.events import Event, TurnEnded
from concorde_trio.sessions.harness import SessionHarness
from concorde_trio.sessions.loop import SessionLoop
from concorde_trio.sessions.model import OnEvent

CHUNKS = 5_000
"""Chunks of the one stream."""
LIVE, LIVE_CHUNKS = 1_000, 20
"""Streams at once, and the chunks of each."""


def suite(bench: Bench) -> Iterator[Figure]:
    """All of it."""
    yield from _heartbeat(bench, 1_000)
    yield _expiry(bench, 1_000 if bench.quick else 10_000)
    yield _streaming(bench)
    yield _live(bench)


def _heartbeat(bench: Bench, count: int) -> Iterator[Figure]:
    empty, idle, held = trio.run(_processor, bench, count)
    beside = Beside(what="the same program without a session", sample=empty, kind="limit")
    yield Figure(
        name=f"{count:,} idle sessions",
        unit="% of a core",
        better="lower",
        sample=idle,
        beside=(beside,),
    )
    yield Figure(
        name=f"{count:,} sessions that hold a lease, at the heartbeat",
        unit="% of a core",
        better="lower",
        sample=held,
        beside=(beside,),
        goal=Goal(says="% of a core over the same program", sample=held.minus(empty), bound=1.0, at_least=False),
    )


async def _processor(bench: Bench, count: int) -> tuple[Sample, Sample, Sample]:
    """Per cent of a core that goes in some seconds: without a session, with idle ones, with ones that hold a lease."""
    seconds, rounds = (1.0, 2) if bench.quick else (2.0, 3)
    model = Stalling(count)

    async def spent() -> Sample:
        found = []
        for _ in range(rounds):
            gc.collect()
            found.append(100 * await _processor_time(seconds))
        return Sample(found)

    async with SessionHarness(store=Transcripts(), model=model).open() as harness:  # type: ignore[arg-type]
        phases = bench.rounds("idle and held", 3, collect=False)
        next(phases)
        empty = await spent()
        next(phases)
        for number in range(count):
            await harness.loop(f"session-{number}")
        idle = await spent()
        next(phases)
        for number in range(count):
            await harness.submit(f"session-{number}", "hello")
        await model.all_asked.wait()
        held = await spent()
        next(phases, None)
    return empty, idle, held


async def _processor_time(seconds: float) -> float:
    before, begun = time.process_time(), time.perf_counter()
    await trio.sleep(seconds)
    return (time.process_time() - before) / (time.perf_counter() - begun)


def _expiry(bench: Bench, count: int) -> Figure:
    taken = [trio.run(_expiry_once, count) for _ in bench.rounds("expiry", bench.times(6, 3))][1:]
    bare, swept, stored = (Sample(column) for column in zip(*taken, strict=True))
    return Figure(
        name=f"{count:,} leases that expire at one instant, until each lock is swept and each scope cancelled",
        unit="s",
        better="lower",
        sample=swept,
        beside=(
            Beside(what="bare Trio: as many cancel scopes with one deadline", sample=bare, kind="limit"),
            Beside(what="until each turn has failed, and that is stored", sample=stored),
        ),
        goal=Goal(says="times what bare Trio needs", sample=swept.over(bare), bound=1.5, at_least=False),
    )


class Countdown:
    """Notes when the last of ``count`` is over."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.at = 0.0
        self.over = trio.Event()

    def one(self) -> None:
        self.left -= 1
        if not self.left:
            self.at = trio.current_time()
            self.over.set()


async def _bare_expiry(count: int) -> float:
    countdown = Countdown(count)

    async def wait(deadline: float) -> None:
        try:
            with trio.CancelScope(deadline=deadline):
                await trio.sleep_forever()
        finally:
            countdown.one()

    gc.collect()
    deadline = trio.current_time() + 0.3 + count / 10_000
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(wait, deadline)
    return countdown.at - deadline


async def _expiry_once(count: int) -> tuple[float, float, float]:
    cancelled, swept, stored = Countdown(count), Countdown(count), Countdown(count)

    class Noting(Stalling):
        async def stream(self, request: ModelRequest, on_event: OnEvent) -> None:
            self.asked()
            try:
                await trio.sleep_forever()
            finally:
                cancelled.one()

    def note(events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, TurnEnded):
                stored.one()

    settings = SessionSettings(llm_timeout=1000.0, heartbeat=1000.0)
    model = Noting(count)
    harness = SessionHarness(store=Transcripts(), model=model, settings=settings, publish=note)  # type: ignore[arg-type]
    async with harness.open():
        for number in range(count):
            await harness.submit(f"session-{number}", "hello")
        await model.all_asked.wait()
        bare = await _bare_expiry(count)  # beside it: in the same program, with as much in its memory
        gc.collect()
        deadline = trio.current_time() + 0.3 + count / 10_000
        for loop in harness.loops.values():
            _expire_at(harness, loop, deadline, swept)
        for each in (cancelled, swept, stored):
            await each.over.wait()
        return bare, max(cancelled.at, swept.at) - deadline, stored.at - deadline


def _expire_at(harness: SessionHarness, loop: SessionLoop, deadline: float, swept: Countdown) -> None:
    """Have its lease expire at this instant: they were taken one after another. And note when its lock is swept."""
    lock = loop.machine.books.lock
    lease = lock.llm
    assert lease is not None
    lock._llm = attrs.evolve(lease, started_at=deadline - lease.timeout)
    loop._requests[lease.epoch].extend(deadline)
    loop._heartbeat.look_at(loop, deadline)
    take = loop.machine.take_expired

    def noting(epoch: int | None = None) -> bool:
        before = lock.is_locked()
        taken = take(epoch)
        if before and not lock.is_locked():
            swept.one()
        return taken

    loop.machine.take_expired = noting  # type: ignore[method-assign]


def _streaming(bench: Bench) -> Figure:
    contenders = {"ours": partial(trio.run, _stream_once, CHUNKS), "bare": partial(trio.run, _bare_stream, CHUNKS)}
    found = bench.in_turns("a stream", contenders, bench.times(15, 5))
    return Figure(
        name="a chunk of a stream, through loop, lock and transcript",
        unit="µs",
        better="lower",
        sample=found["ours"],
        beside=(Beside(what="the bare client", sample=found["bare"], kind="limit"),),
        goal=Goal(
            says="µs over the bare client",
            sample=found["ours"].minus(found["bare"]),
            bound=60.0,
            at_least=False,
            absolute=True,
        ),
    )


def _live(bench: Bench) -> Figure:
    contenders = {"ours": partial(trio.run, _live_streams), "bare": partial(trio.run, _bare_live_streams)}
    found = bench.in_turns(f"{LIVE:,} streams", contenders, bench.times(5, 2))
    return Figure(
        name=f"a chunk, with {LIVE:,} streams at once, of {LIVE_CHUNKS} chunks each, turns and storing counted",
        unit="µs",
        better="lower",
        sample=found["ours"],
        beside=(Beside(what=f"bare Trio: {LIVE:,} tasks with a bare client", sample=found["bare"], kind="limit"),),
    )


async def _bare_stream(chunks: int) -> float:
    said: list[str] = []
    take: Callable[[Any], None] = lambda event: said.append(event)
    begun = time.thread_time()
    await Streaming(chunks).stream(None, take)  # type: ignore[arg-type]
    return (time.thread_time() - begun) / chunks * 1e6


async def _stream_once(chunks: int) -> float:
    async with SessionHarness(store=Transcripts(), model=Streaming(chunks)).open() as harness:  # type: ignore[arg-type]
        await harness.loop("ann")
        begun = time.thread_time()
        await harness.turn("ann", "hello")
        return (time.thread_time() - begun) / chunks * 1e6


async def _live_streams() -> float:
    async with SessionHarness(store=Transcripts(), model=Streaming(LIVE_CHUNKS)).open() as harness:  # type: ignore[arg-type]
        for number in range(LIVE):
            await harness.loop(f"session-{number}")
        begun = time.thread_time()
        async with trio.open_nursery() as nursery:
            for number in range(LIVE):
                nursery.start_soon(harness.turn, f"session-{number}", "hello")
        return (time.thread_time() - begun) / (LIVE * LIVE_CHUNKS) * 1e6


async def _bare_live_streams() -> float:
    said: list[list[Any]] = [[] for _ in range(LIVE)]
    begun = time.thread_time()
    async with trio.open_nursery() as nursery:
        for each in said:
            nursery.start_soon(Streaming(LIVE_CHUNKS).stream, None, each.append)  # type: ignore[arg-type]
    return (time.thread_time() - begun) / (LIVE * LIVE_CHUNKS) * 1e6

"""What sessions cost: memory, the heartbeat, many leases that expire at one instant, a chunk of a stream.

The loops, the heartbeat, the host and the lock are the real ones; the store hands out transcripts and takes changes
without a disk, whose speed is no subject here. Each figure stands beside bare Trio, or a bare client, in the same run.
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from benchmarks.figures import Figure, Goal
from benchmarks.figures import rounds as each_round
from concorde_trio._sansio.model_events import ModelRequest, ReplyEnd, TextDelta
from concorde_trio._sansio.session_terms import SessionSettings
from concorde_trio.events import Event, TurnEnded
from concorde_trio.messages import Input, Message, Role
from concorde_trio.sessions.harness import SessionHarness
from concorde_trio.sessions.loop import SessionLoop
from concorde_trio.sessions.model import OnEvent
from concorde_trio.sessions.store import SessionRecord, StoredSession

MESSAGES = 20
WORDS = "Some words of a conversation, as many as people write to an agent on an ordinary day, more or less. "


class Transcripts:
    """A store of sessions that all have the same number of messages; what is written to it is let go."""

    queue = "benchmark"

    def __init__(self, messages: int = 0) -> None:
        self.messages = messages

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        yield

    async def load_session(self, name: str) -> StoredSession:
        await trio.lowlevel.checkpoint()
        said = tuple(_message(name, seq) for seq in range(1, self.messages + 1))
        record = SessionRecord(name=name, created_at=0.0, updated_at=0.0)
        return StoredSession(record=record, last_seq=len(said), messages=said, inputs=())

    async def unsettled_inputs(self, session: str | None = None) -> list[Any]:
        return []

    async def input(self, input_id: str) -> None:
        return None

    async def apply(self, changes: Sequence[Any]) -> None:
        await trio.lowlevel.checkpoint()


def _message(name: str, seq: int) -> Message:
    text = f"{seq} of {name}: {WORDS}"
    if seq % 2:
        given = Input(id=f"{name}-{seq}", text=text, at=0.0)
        return Message(seq=seq, role=Role.USER, text=text, at=0.0, inputs=(given,))
    return Message(seq=seq, role=Role.ASSISTANT, text=text, at=0.0, model="benchmark")


class Stalling:
    """A model that never answers."""

    name = "stalling"
    context_window = None

    def __init__(self) -> None:
        self.asked = 0

    async def stream(self, request: ModelRequest, on_event: OnEvent) -> None:
        self.asked += 1
        await trio.sleep_forever()


class Streaming:
    """A model that says ``chunks`` words, with a checkpoint between them, as a socket would have."""

    name = "streaming"
    context_window = None

    def __init__(self, chunks: int) -> None:
        self.chunks = chunks

    async def stream(self, request: ModelRequest, on_event: OnEvent) -> None:
        event = TextDelta("word ")
        for _ in range(self.chunks):
            await trio.lowlevel.checkpoint()
            on_event(event)
        on_event(ReplyEnd())


def suite(quick: bool) -> list[Figure]:
    """All of it."""
    count = 1_000 if quick else 10_000
    return [
        _memory(count),
        _heartbeat(1_000, 3.0 if quick else 10.0),
        _expiry(count, 3 if quick else 5),
        _streaming(5 if quick else 15),
    ]


def _memory(count: int) -> Figure:
    async def main() -> float:
        async with SessionHarness(store=Transcripts(MESSAGES), model=Stalling()).open() as harness:  # type: ignore[arg-type]
            await harness.loop("warm")
            gc.collect()
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            for number in range(count):
                await harness.loop(f"session-{number}")
            gc.collect()
            used = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
        return used / count / 1024

    used = trio.run(main)
    text = MESSAGES * (len(WORDS) + 50) / 1024
    return Figure(
        name=f"memory of a loaded session with {MESSAGES} messages ({count:,} of them)",
        unit="KB",
        value=used,
        beside=(("the text of its messages alone", text),),
        goal=Goal(says="KB a session", value=used, bound=24.0, at_least=False),
    )


def _heartbeat(count: int, seconds: float) -> Figure:
    async def main() -> tuple[float, float]:
        model = Stalling()
        async with SessionHarness(store=Transcripts(), model=model).open() as harness:  # type: ignore[arg-type]
            idle = await _processor_time(seconds)
            for number in range(count):
                await harness.submit(f"session-{number}", "hello")
            while model.asked < count:
                await trio.sleep(0.01)
            held = await _processor_time(seconds)
        return 100 * held, 100 * idle

    held, idle = trio.run(main)
    return Figure(
        name=f"heartbeat over {count:,} sessions with a hold",
        unit="% of a core",
        value=held,
        beside=(("the same program without a session", idle),),
        goal=Goal(says="% of a core", value=held, bound=1.0, at_least=False),
    )


async def _processor_time(seconds: float) -> float:
    before, begun = time.process_time(), time.perf_counter()
    await trio.sleep(seconds)
    return (time.process_time() - before) / (time.perf_counter() - begun)


def _expiry(count: int, rounds: int) -> Figure:
    taken = [trio.run(_expiry_once, count) for _ in each_round(rounds, "sessions: expiry")]
    bare, swept, stored = (statistics.median(column) for column in zip(*taken, strict=True))
    return Figure(
        name=f"{count:,} leases that expire at one instant, until each lock is swept and each scope cancelled",
        unit="s",
        value=swept,
        beside=(
            ("bare Trio beside it: as many cancel scopes with one deadline", bare),
            ("until each turn has failed, and that is stored", stored),
        ),
        goal=Goal(
            says="times what bare Trio needs (median of the rounds' ratios)",
            value=statistics.median(ours / theirs for theirs, ours, _ in taken),
            bound=1.5,
            at_least=False,
        ),
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
        await countdown.over.wait()
        return countdown.at - deadline


async def _expiry_once(count: int) -> tuple[float, float, float]:
    model, cancelled, swept, stored = Stalling(), Countdown(count), Countdown(count), Countdown(count)

    class Noting(Stalling):
        async def stream(self, request: ModelRequest, on_event: OnEvent) -> None:
            model.asked += 1
            try:
                await trio.sleep_forever()
            finally:
                cancelled.one()

    def note(events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, TurnEnded):
                stored.one()

    settings = SessionSettings(llm_timeout=1000.0, heartbeat=1000.0)
    harness = SessionHarness(store=Transcripts(), model=Noting(), settings=settings, publish=note)  # type: ignore[arg-type]
    async with harness.open():
        for number in range(count):
            await harness.submit(f"session-{number}", "hello")
        while model.asked < count:
            await trio.sleep(0.01)
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


def _streaming(rounds: int) -> Figure:
    chunks = 5_000
    ours, bare = [], []
    for _ in each_round(rounds, "sessions: streaming"):
        bare.append(trio.run(_bare_stream, chunks))
        ours.append(trio.run(_stream_once, chunks))
    value, beside = statistics.median(ours), statistics.median(bare)
    return Figure(
        name="a chunk of a stream, through loop, lock and transcript",
        unit="µs",
        value=value,
        beside=(("the bare client", beside),),
        goal=Goal(says="µs over the bare client", value=value - beside, bound=60.0, at_least=False),
    )


async def _bare_stream(chunks: int) -> float:
    said: list[str] = []
    take: Callable[[Any], None] = lambda event: said.append(event)
    begun = time.perf_counter()
    await Streaming(chunks).stream(None, take)  # type: ignore[arg-type]
    return (time.perf_counter() - begun) / chunks * 1e6


async def _stream_once(chunks: int) -> float:
    async with SessionHarness(store=Transcripts(), model=Streaming(chunks)).open() as harness:  # type: ignore[arg-type]
        await harness.loop("ann")
        begun = time.perf_counter()
        await harness.turn("ann", "hello")
        return (time.perf_counter() - begun) / chunks * 1e6

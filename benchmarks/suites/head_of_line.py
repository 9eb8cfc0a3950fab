"""Whether one user's backlog makes others wait: 100 users, a run of 20 ms each, alone and beside a user with 10,000 waiting runs.

Both queues are open in one process, each with its worker. The busy user's runs go on, one after another, while the others' are
measured beside them, and stand still (the current one does not end) while the others are measured alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import trio

from benchmarks import queue
from benchmarks.bench import Bench, turn
from benchmarks.figures import Beside, Figure, Goal
from benchmarks.samples import Sample
from concorde_trio.events import Event, RunQueued
from concorde_trio.records import RunOutcome, RunPrompt
from concorde_trio.signals.emit import new_signal
from concorde_trio.signals.worker import SignalWorker, open_worker
from concorde_trio.stores.sqlite import SqliteStore

OTHERS = 100
RUN_SECONDS = 0.02
BUSY = "busy"


class Paced:
    """Runs of 20 ms; the busy user's go on only while ``going`` is set."""

    def __init__(self) -> None:
        self.going = trio.Event()
        self.paused = trio.Event()

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        if prompt.session == BUSY:
            while not self.going.is_set():
                self.paused.set()
                await self.going.wait()
        await trio.sleep(RUN_SECONDS)
        return RunOutcome.ok()

    def go(self) -> None:
        self.going.set()

    async def pause(self) -> None:
        """Return once the busy user's run stands still, if there is a busy user."""
        self.going, self.paused = trio.Event(), trio.Event()
        await self.paused.wait()


def suite(bench: Bench) -> Iterator[Figure]:
    """Seconds until all others are settled."""
    backlog = 2_000 if bench.quick else 10_000
    with bench.new_folder() as folder, bench.new_folder() as other:
        stores = SqliteStore(folder / "queue.db"), SqliteStore(other / "queue.db")
        alone, beside = trio.run(_main, bench, *stores, backlog)
    yield Figure(
        name=f"{OTHERS} users' runs of 20 ms beside one with {backlog:,} waiting",
        unit="ms",
        better="lower",
        sample=beside,
        beside=(
            Beside(what="the same users alone", sample=alone),
            Beside(
                what=f"if they stood in line behind the {backlog:,}",
                sample=Sample([backlog * RUN_SECONDS * 1e3]),
                kind="peer",
            ),
        ),
        goal=Goal(says="times what they take alone", sample=beside.over(alone), bound=1.1, at_least=False),
    )


async def _main(bench: Bench, quiet_store: SqliteStore, busy_store: SqliteStore, backlog: int) -> tuple[Sample, Sample]:
    quiet, busy = Paced(), Paced()
    handlers = queue.handlers(repeatable=True)
    times: dict[str, list[float]] = {"alone": [], "beside": []}
    async with open_worker(quiet_store, quiet, handlers) as alone, open_worker(busy_store, busy, handlers) as beside:
        queued, all_queued = 0, trio.Event()

        def note(event: Event) -> None:
            nonlocal queued
            if isinstance(event, RunQueued) and event.session == BUSY:
                queued += 1
                if queued == backlog:
                    all_queued.set()

        beside.bus.call(note)
        now = time.time()
        payload = {"session": BUSY, "text": ""}
        await busy_store.emit([new_signal("bench", payload, emitted_at=now) for _ in range(backlog)])
        await all_queued.wait()
        await busy.paused.wait()
        rounds = bench.times(9, 3)
        for number in bench.rounds("others, alone and beside", rounds + 1):
            for which in turn(["alone", "beside"], number):
                if which == "alone":
                    took = await _others(alone)
                else:
                    busy.go()
                    took = await _others(beside)
                    await busy.pause()
                if number:
                    times[which].append(took * 1e3)
        busy.go()
        beside.stop("cancel")
    return Sample(times["alone"]), Sample(times["beside"])


async def _others(worker: SignalWorker) -> float:
    """From the emit of one signal for each of the others to the last of them being settled."""
    countdown, begun = OTHERS, time.perf_counter()
    ended, over = math.nan, trio.Event()
    now = time.time()
    signals = [new_signal("bench", queue.payload(number, OTHERS), emitted_at=now) for number in range(OTHERS)]
    ours = {signal.id for signal in signals}

    def note(event: Event) -> None:
        nonlocal countdown, ended
        if event.name == "SignalSettled" and event.signal_id in ours:  # type: ignore[attr-defined]
            countdown -= 1
            if not countdown:
                ended = time.perf_counter()
                over.set()

    worker.bus.call(note)
    await worker.store.emit(signals)
    await over.wait()
    return ended - begun

"""How long a run waits for nothing but us: from the release of its lock to its start.

Runs of 1 ms, one session, all claimed before the first ends: claims of others share the commits of a busy queue, which the
suite ``runs`` measures. An end and the next start are one commit; two are allowed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import trio

from benchmarks import queue
from benchmarks.bench import Bench
from benchmarks.figures import Beside, Figure, Goal
from benchmarks.reference import reference
from benchmarks.samples import Sample, percentile
from concorde_trio.events import Event, RunQueued
from concorde_trio.records import RunOutcome, RunPrompt
from concorde_trio.signals.worker import open_worker
from concorde_trio.stores.sqlite import SqliteStore

RUNS = 300
RUN_SECONDS = 0.001


class Noting:
    """A Runtime whose runs take a moment, and which notes when they begin and end; the first waits for ``gate``."""

    def __init__(self) -> None:
        self.gate = trio.Event()
        self.begun: list[float] = []
        self.ended: list[float] = []

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        self.begun.append(time.perf_counter())
        await self.gate.wait()
        await trio.sleep(RUN_SECONDS)
        self.ended.append(time.perf_counter())
        return RunOutcome.ok()

    def waits(self) -> list[float]:
        """Milliseconds from each end to the next begin."""
        return [(begun - ended) * 1e3 for begun, ended in zip(self.begun[1:], self.ended[:-1], strict=True)]


def suite(bench: Bench) -> Iterator[Figure]:
    """Milliseconds, of each round the median and the 99th percentile."""
    ours: list[list[float]] = []
    commits: list[list[float]] = []
    for number in bench.rounds("release to start", bench.times(8, 3)):
        for what in ("worker", "rows") if number % 2 else ("rows", "worker"):
            with bench.new_folder() as folder:
                if what == "rows":
                    with reference(folder) as rows:
                        took = [seconds * 1e3 for seconds in rows.seconds(2 * RUNS, 1)]
                    commits.append([first + second for first, second in zip(took[::2], took[1::2], strict=True)])
                else:
                    runtime = Noting()
                    trio.run(_settle, SqliteStore(folder / "queue.db"), runtime)
                    ours.append(runtime.waits())
    del ours[0], commits[0]  # the warm-up
    for name, share in (("p99", 0.99), ("median", 0.5)):
        waits, pairs = (Sample(percentile(each, share) for each in found) for found in (ours, commits))
        goal = Goal(says="ms over two measured commits", sample=waits.minus(pairs), bound=1.0, at_least=False)
        yield Figure(
            name=f"release of a lock to the start of the next run, {name}",
            unit="ms",
            better="lower",
            sample=waits,
            beside=(Beside(what="two sequential commits of the same rows", sample=pairs, kind="limit"),),
            goal=goal if name == "p99" else None,
        )


async def _settle(store: SqliteStore, runtime: Noting) -> None:
    async with store.open():
        await queue.fill(store, RUNS, sessions=1)
    settled, queued = queue.Countdown(RUNS), 0

    def note(event: Event) -> None:
        nonlocal queued
        settled.note(event)
        if isinstance(event, RunQueued):
            queued += 1
            if queued == RUNS:
                runtime.gate.set()

    async with open_worker(store, runtime, queue.handlers(repeatable=True)) as worker:
        worker.bus.call(note)
        await settled.over.wait()

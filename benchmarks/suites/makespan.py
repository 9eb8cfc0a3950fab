"""From the first emit to the last end of a whole workload, beside its critical path: what the lock rule itself makes it wait.

Runs sleep as long as the workload says, on a SQLite queue. Beside it also stands one run at a time, the time that all of
them take in a row.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import trio

from benchmarks.bench import Bench
from benchmarks.figures import Beside, Figure
from benchmarks.samples import Sample
from benchmarks.workload import Work, convoy, critical_path, recorded, scaled, strangers, users
from concorde_trio.events import Event, RunEnded
from concorde_trio.records import Prompt, RunOutcome, RunPrompt, RunState, Signal
from concorde_trio.signals.emit import new_signal
from concorde_trio.signals.handlers import SignalHandler
from concorde_trio.signals.worker import SignalWorker, open_worker
from concorde_trio.stores.sqlite import SqliteStore

SECONDS = 2.0
"""The critical path that each workload is brought to: seconds of agents become hundredths, and the worker's share shows."""


class Sleeping:
    """A Runtime whose run says in its prompt how long it takes."""

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        await trio.sleep(float(prompt.text))
        return RunOutcome.ok()


def suite(bench: Bench) -> Iterator[Figure]:
    """Seconds, and how many times the critical path."""
    workloads = {
        "recorded: a household of agents": recorded()["household"],
        "50 users, some busy, some resources shared": users(bench.random(), 1_000),
        "a tenth of all runs wants one budget": convoy(bench.random(), 500),
        "strangers that share nothing": strangers(bench.random(), 1_000),
    }
    for name, works in workloads.items():
        works = scaled(works, SECONDS)
        taken = Sample(
            [_play(bench, works) for _ in bench.rounds(name, bench.times(4, 2))][1:]  # the first is the warm-up
        )
        path = Sample([critical_path(works)] * len(taken.values))
        yield Figure(
            name=f"{name} ({len(works):,} runs)",
            unit="s",
            better="lower",
            sample=taken,
            beside=(
                Beside(what="its critical path", sample=path, kind="limit"),
                Beside(what="one run at a time", sample=Sample([sum(work.seconds for work in works)]), kind="peer"),
            ),
        )


def _play(bench: Bench, works: list[Work]) -> float:
    with bench.new_folder() as folder:
        return trio.run(_main, SqliteStore(folder / "queue.db"), works)


async def _main(store: SqliteStore, works: list[Work]) -> float:
    def handle(signal: Signal) -> list[Prompt]:
        session, *resources = signal.payload["locks"]
        return [Prompt(text=repr(signal.payload["seconds"]), session=session, resources=resources)]

    left, last, over = len(works), math.nan, trio.Event()

    def note(event: Event) -> None:
        nonlocal left, last
        if isinstance(event, RunEnded):
            assert event.state is RunState.DONE, event.error
            left -= 1
            if not left:
                last = time.perf_counter()
                over.set()

    handlers = {"bench": SignalHandler(handle=handle, repeatable=True)}
    async with open_worker(store, Sleeping(), handlers) as worker:
        worker.bus.call(note)
        begun = time.perf_counter()
        await _emit(worker, works, begun)
        await over.wait()
    return last - begun


async def _emit(worker: SignalWorker, works: list[Work], begun: float) -> None:
    """Each when it comes; those that come at one time in one commit."""
    waiting = list(works)
    while waiting:
        here = time.perf_counter() - begun
        due = [work for work in waiting if work.at <= here]
        waiting = waiting[len(due) :]
        now = time.time()
        payloads = [{"seconds": work.seconds, "locks": list(work.locks)} for work in due]
        if payloads:
            await worker.store.emit([new_signal("bench", payload, emitted_at=now) for payload in payloads])
        if waiting:
            await trio.sleep(max(0.0, waiting[0].at - (time.perf_counter() - begun)))

"""A fleet on PostgreSQL, its members in processes of their own: what one leader can do, and what members add.

Everything is on one machine, the database too: members share its processors with it and with each other, which several machines
would not. So what is told of many members is a lower bound.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import trio

from benchmarks import queue
from benchmarks.bench import Bench, Skipped
from benchmarks.figures import Beside, Figure, Goal, at_least_share
from benchmarks.postgres import postgres
from benchmarks.reference import GROUP
from benchmarks.samples import Sample, percentile
from concorde_trio.events import Event, RunQueued
from concorde_trio.records import Prompt, RunOutcome, RunPrompt, Signal, SignalState
from concorde_trio.signals.emit import new_signal
from concorde_trio.signals.handlers import SignalHandler
from concorde_trio.signals.worker import open_worker

CAPACITY = 25
RUN_SECONDS = 0.02
CROWD = 1_000
"""Prompts of one signal of those that only wait."""

NewSchema = Callable[[], str]


def suite(bench: Bench) -> Iterator[Figure]:
    """The goals of a fleet, each beside the same PostgreSQL in the same rounds."""
    with ExitStack() as stack:
        try:
            url = stack.enter_context(postgres(bench.folder))
            import psycopg  # noqa: F401
        except Skipped as error:
            bench.skip(str(error))
            return
        except ImportError:
            bench.skip("PostgreSQL: psycopg is not installed; pip install 'concorde-trio[bench]'")
            return
        numbers = itertools.count(1)

        def schema() -> str:
            return f"bench{next(numbers)}"

        yield from _leader(bench, url, schema)
        yield from _executors(bench, url, schema)
        yield from _release(bench, url, schema)
        yield from _one_end(bench, url, schema)


# --- the leader -----------------------------------------------------------------------------------------------------


def _leader(bench: Bench, url: str, schema: NewSchema) -> Iterator[Figure]:
    from benchmarks.postgres_reference import postgres_reference
    from concorde_trio.stores.postgres.store import PostgresStore

    signals = 512 if bench.quick else 2_048

    def ours() -> float:
        return queue.signals_a_second(PostgresStore(url, schema=schema()), signals, repeatable=True)

    def rows() -> float:
        with postgres_reference(url, schema()) as reference:
            return signals / sum(reference.seconds(signals, GROUP))

    found = bench.in_turns("leader", {"ours": ours, "rows": rows}, bench.times(5, 2))
    yield Figure(
        name="one member alone, signals whose runs do nothing",
        unit="signals/s",
        sample=found["ours"],
        beside=(Beside(what=f"group commit of the same rows, {GROUP} a commit", sample=found["rows"], kind="limit"),),
        goal=at_least_share(found["ours"], found["rows"], 1 / 2, "half the group-commit rate"),
    )


# --- executors ------------------------------------------------------------------------------------------------------


def _executors(bench: Bench, url: str, schema: NewSchema) -> Iterator[Figure]:
    runs = 300 if bench.quick else 1_200
    contenders = {count: partial(_rate, url, schema, count, runs) for count in (1, 2, 4)}
    found = bench.in_turns(
        "executors", {str(count): rate for count, rate in contenders.items()}, bench.times(5, 2), warm_up=0
    )
    one = found["1"]
    for count in (2, 4):
        yield Figure(
            name=f"{count} members of capacity {CAPACITY}, runs of 20 ms",
            unit="runs/s",
            sample=found[str(count)],
            beside=(
                Beside(what="one such member", sample=one),
                Beside(
                    what=f"{count * CAPACITY} runs of 20 ms at once",
                    sample=Sample([count * CAPACITY / RUN_SECONDS]),
                    kind="limit",
                ),
            ),
            goal=at_least_share(found[str(count)], one, 3.5, "3.5 times one such member") if count == 4 else None,
        )


def _rate(url: str, schema: NewSchema, count: int, runs: int) -> float:
    """Runs a second, from the first that begins to the last that ends, over sessions enough for all of them."""
    name = schema()
    with _members(url, name, count, RUN_SECONDS) as members:
        trio.run(_emit_and_wait, url, name, runs, 4 * count * CAPACITY)
        spans = [span for member in members for span in _end(member)]
    return len(spans) / (max(ended for _, ended in spans) - min(begun for begun, _ in spans))


async def _emit_and_wait(url: str, name: str, signals: int, sessions: int) -> None:
    from concorde_trio.stores.postgres.store import PostgresStore

    store = PostgresStore(url, schema=name)
    async with store.open():
        await queue.fill(store, signals, sessions)
        while (await store.counts())["signals"][SignalState.DONE] < signals:
            await trio.sleep(0.05)


@contextmanager
def _members(url: str, schema: str, count: int, seconds: float) -> Iterator[list[subprocess.Popen[str]]]:
    """So many processes, once each is a member; the first one leads."""
    with ExitStack() as stack:
        members: list[subprocess.Popen[str]] = []
        for _ in range(count):
            command = [sys.executable, "-m", "benchmarks.fleet_member", url, schema, str(CAPACITY), str(seconds)]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            stack.callback(_kill, process)
            members.append(process)
        for process in members:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield members


def _end(member: subprocess.Popen[str]) -> list[tuple[float, float]]:
    """Have it end; when its runs began and ended."""
    assert member.stdin is not None and member.stdout is not None
    member.stdin.close()
    found: list[tuple[float, float]] = json.loads(member.stdout.readline())
    member.wait()
    return found


def _kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


# --- from a release to the next start -------------------------------------------------------------------------------


def _release(bench: Bench, url: str, schema: NewSchema) -> Iterator[Figure]:
    from benchmarks.postgres_reference import postgres_reference

    runs = 100 if bench.quick else 300
    waits: list[float] = []
    commits: list[float] = []
    for _ in bench.rounds("release to start", bench.times(5, 2)):
        name = schema()
        with _members(url, name, 2, 0.001) as members:
            trio.run(_emit_and_wait, url, name, runs, 1)
            spans = sorted(span for member in members for span in _end(member))
        gaps = [(begun - ended) * 1e3 for (_, ended), (begun, _) in itertools.pairwise(spans)]
        waits.append(percentile(gaps, 0.99))
        with postgres_reference(url, schema()) as reference:
            took = [seconds * 1e3 for seconds in reference.seconds(3 * runs, 1)]
        commits.append(percentile([sum(took[start : start + 3]) for start in range(0, len(took), 3)], 0.99))
    ours, three = Sample(waits), Sample(commits)
    yield Figure(
        name="release of a lock to the start of the next run, two members, p99",
        unit="ms",
        better="lower",
        sample=ours,
        beside=(Beside(what="three sequential commits of the same rows, p99", sample=three, kind="limit"),),
        goal=Goal(says="ms over three measured commits", sample=ours.minus(three), bound=15.0, at_least=False),
    )


# --- what an end costs beside many that wait --------------------------------------------------------------------------


class Crowded:
    """A Runtime whose first run, of the session that all wait for, goes on until ``over`` is set; the others do nothing."""

    def __init__(self) -> None:
        self.over = trio.Event()

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        if prompt.session == "crowd":
            await self.over.wait()
        return RunOutcome.ok()


def _crowd(signal: Signal) -> list[Prompt]:
    return [Prompt(text=queue.TEXT, session="crowd") for _ in range(CROWD)]


def _one_end(bench: Bench, url: str, schema: NewSchema) -> Iterator[Figure]:
    many = 20_000 if bench.quick else 100_000
    found = bench.in_turns(
        "one end",
        {
            "many": partial(trio.run, _seconds_of_an_end, url, schema, many),
            "few": partial(trio.run, _seconds_of_an_end, url, schema, 2_000),
        },
        bench.times(3, 1),
        warm_up=0,
    )
    yield Figure(
        name=f"a signal, its run and its end, with {many:,} runs waiting",
        unit="ms",
        better="lower",
        sample=found["many"],
        beside=(Beside(what="the same with 2,000 waiting", sample=found["few"]),),
        goal=Goal(
            says="times that with 2,000 waiting", sample=found["many"].over(found["few"]), bound=2.0, at_least=False
        ),
    )


async def _seconds_of_an_end(url: str, schema: NewSchema, waiting: int) -> float:
    """Milliseconds each of 500 signals takes while so many runs wait for a session that is busy."""
    from concorde_trio.stores.postgres.store import PostgresStore

    store, runtime, queued = PostgresStore(url, schema=schema()), Crowded(), 0
    all_wait, count = trio.Event(), queue.Countdown(500)
    handlers = queue.handlers(repeatable=True) | {"crowd": SignalHandler(handle=_crowd, repeatable=True)}

    def note(event: Event) -> None:
        nonlocal queued
        if isinstance(event, RunQueued):
            queued += 1
            if queued == waiting:
                all_wait.set()

    async with open_worker(store, runtime, handlers, claim_ahead=None) as worker:
        worker.bus.call(note)
        await store.emit([new_signal("crowd", emitted_at=time.time()) for _ in range(waiting // CROWD)])
        await all_wait.wait()
        worker.bus.call(count.note)
        begun = time.perf_counter()
        await queue.fill(store, 500)
        await count.over.wait()
        took = time.perf_counter() - begun
        worker.stop("cancel")
    return took / 500 * 1e3

"""The worker from end to end by store, by number of locks, with or without a post phase; runs that do nothing, and of 20 ms.

Beside each stands the same without a store: bare Trio, one nursery, a lock a session, a task a run. What a store adds is what
durability costs on this disk.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks import queue
from benchmarks.bench import Bench, Skipped
from benchmarks.figures import Beside, Figure, Point
from benchmarks.peers import ours
from benchmarks.postgres import postgres
from concorde_trio.signals.store import SignalStore
from concorde_trio.stores.memory import MemoryStore
from concorde_trio.stores.sqlite import SqliteStore

SIGNALS = 500
RUN_SECONDS = 0.02
LOCKS = (1, 3, 8)

NewStore = Callable[[Path], SignalStore]


def suite(bench: Bench) -> Iterator[Figure]:
    """Signals a second."""
    with ExitStack() as stack:
        stores: dict[str, NewStore] = {"memory": lambda folder: MemoryStore(), "SQLite": _sqlite}
        try:
            url = stack.enter_context(postgres(bench.folder))
            from concorde_trio.stores.postgres.store import PostgresStore

            schemas = itertools.count(1)
            stores["PostgreSQL"] = lambda folder: PostgresStore(url, schema=f"bench{next(schemas)}")
        except Skipped as error:
            bench.skip(str(error))
        except ImportError:
            bench.skip("PostgreSQL: psycopg is not installed; pip install 'concorde-trio[bench]'")
        yield from _measure(bench, stores)


def _measure(bench: Bench, stores: dict[str, NewStore]) -> Iterator[Figure]:
    contenders: dict[str, Callable[[], float]] = {
        "bare": partial(ours.bare_trio, SIGNALS, 0.0),
        "bare 20 ms": partial(ours.bare_trio, SIGNALS, RUN_SECONDS),
    }
    for store, make in stores.items():
        for locks in LOCKS:
            contenders[f"{store} {locks} False"] = partial(_rate, bench, make, locks=locks)
        contenders[f"{store} 1 True"] = partial(_rate, bench, make, locks=1, post=True)
        contenders[f"{store} strict"] = partial(_rate, bench, make, locks=1, repeatable=False)
        for post in (False, True):
            contenders[f"{store} 20 ms {post}"] = partial(_rate, bench, make, locks=1, post=post, run=RUN_SECONDS)
    found = bench.in_turns("by store", contenders, bench.times(4, 2))
    bare = Beside(what="bare Trio: a lock a session, a task a run, nothing stored", sample=found["bare"], kind="limit")
    for store in stores:
        for locks in LOCKS:
            yield Figure(
                name=f"{store}, repeatable, {locks} lock{'s' if locks > 1 else ''}",
                unit="signals/s",
                sample=found[f"{store} {locks} False"],
                beside=(bare,),
                point=Point(chart="worker: signals a second by locks a run", line=store, x=locks),
            )
        for name, key in (("repeatable, 1 lock, a post phase", "1 True"), ("strict, 1 lock", "strict")):
            alike = Beside(what=f"{store}, repeatable, 1 lock", sample=found[f"{store} 1 False"])
            sample = found[f"{store} {key}"]
            yield Figure(name=f"{store}, {name}", unit="signals/s", sample=sample, beside=(bare, alike))
        for post, name in ((False, "runs of 20 ms"), (True, "runs of 20 ms, a post phase")):
            sample = found[f"{store} 20 ms {post}"]
            beside = (Beside(what="bare Trio, nothing stored", sample=found["bare 20 ms"], kind="limit"),)
            yield Figure(name=f"{store}, repeatable, 1 lock, {name}", unit="signals/s", sample=sample, beside=beside)


def _sqlite(folder: Path) -> SignalStore:
    return SqliteStore(folder / "queue.db")


def _rate(
    bench: Bench, make: NewStore, *, locks: int, post: bool = False, repeatable: bool = True, run: float = 0.0
) -> float:
    with bench.new_folder() as folder:
        return queue.signals_a_second(make(folder), SIGNALS, repeatable=repeatable, locks=locks, post=post, run=run)

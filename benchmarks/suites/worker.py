"""The worker's speed on SQLite, from the claim of a signal to its being settled.

Signals are stored before; what is timed is the claim, handle (a plain function that makes one prompt), the run's row,
its start mark, the call of a Runtime that does nothing, its end, and the settling of its signal, for 50 sessions.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import attrs
import trio

from benchmarks import queue
from benchmarks.bench import Bench
from benchmarks.figures import Beside, Figure, Goal, at_least_share
from benchmarks.reference import GROUP, reference
from benchmarks.samples import Sample
from benchmarks.threads import Spent, spent
from concorde_trio.stores.sqlite import SqliteStore

RUN_SECONDS = 0.02
RUNS = 2_000


def repeatable(bench: Bench) -> Iterator[Figure]:
    """Signals of a repeatable handler a second, beside the group commit of the same rows (CLM-6)."""
    for locks, share, words in ((1, 1 / 5, "a fifth"), (3, 1 / 8, "an eighth")):
        costs: list[Spent] = []
        least: list[Spent] = []
        found = bench.in_turns(
            f"{locks} locks",
            {
                "ours": _ours(bench, 2_048, repeatable=True, locks=locks, costs=costs),
                "rows": _rows(bench, 2_048, GROUP, locks, least),
            },
            bench.times(9, 3),
        )
        yield Figure(
            name=f"repeatable handler, {_locks(locks)} a run",
            unit="signals/s",
            sample=found["ours"],
            beside=(
                Beside(what=f"group commit of the same rows, {GROUP} a commit", sample=found["rows"], kind="limit"),
            ),
            goal=at_least_share(found["ours"], found["rows"], share, f"{words} of the group-commit rate"),
        )
        yield from _processor(locks, costs[1:], least[1:])  # the first are the warm-up's


def _processor(locks: int, costs: list[Spent], rows: list[Spent]) -> Iterator[Figure]:
    """Where the time of a signal goes: in Trio's thread, and in those of the store. The emits before are counted too."""
    if not costs:
        return  # the system does not count it by thread
    main, others = (
        Sample(1e6 * each / 2_048 for each in column) for column in zip(*map(attrs.astuple, costs), strict=True)
    )
    bare = Sample(1e6 * each.main / 2_048 for each in rows)
    least = Beside(what="processor time of the same rows in group commits", sample=bare, kind="limit")
    name = f"processor time of a signal, {_locks(locks)} a run"
    yield Figure(name=f"{name}: Trio's thread", unit="µs", better="lower", sample=main, beside=(least,))
    yield Figure(name=f"{name}: the store's threads", unit="µs", better="lower", sample=others, beside=(least,))


def strict(bench: Bench) -> Iterator[Figure]:
    """Signals of a strict handler a second, beside commits of the same rows one after the other."""
    found = bench.in_turns(
        "strict",
        {"ours": _ours(bench, 200, repeatable=False), "rows": _rows(bench, 200, 1, 1)},
        bench.times(21, 5),
    )
    yield Figure(
        name="strict handler, 1 lock a run",
        unit="signals/s",
        sample=found["ours"],
        beside=(Beside(what="sequential commits of the same rows", sample=found["rows"], kind="limit"),),
        goal=at_least_share(found["ours"], found["rows"], 0.85, "85 % of the sequential commit rate"),
    )


def runs(bench: Bench) -> Iterator[Figure]:
    """Runs of 20 ms a second, 2,000 over 50 sessions, beside what sleeping and two commits a run allow."""
    commits: list[float] = []

    def limit() -> float:
        with bench.new_folder() as folder, reference(folder) as rows:
            commits.append(statistics.median(rows.seconds(200, 1)))
        return queue.SESSIONS / (RUN_SECONDS + 2 * commits[-1])

    found = bench.in_turns(
        "runs of 20 ms",
        {"ours": _ours(bench, RUNS, repeatable=True, run=RUN_SECONDS), "limit": limit, "trio": bare_trio},
        bench.times(5, 2),
    )
    yield Figure(
        name=f"runs of 20 ms, {RUNS:,} over 50 sessions",
        unit="runs/s",
        sample=found["ours"],
        beside=(
            Beside(what="50 / (20 ms + two measured commits)", sample=found["limit"], kind="limit"),
            Beside(what="bare Trio: 50 tasks that sleep, nothing stored", sample=found["trio"], kind="limit"),
        ),
        goal=Goal(
            says="95 % of 1 / (20 ms + two commits) a session",
            sample=found["ours"].over(found["limit"]),
            bound=0.95,
        ),
        facts={"two commits": f"{2e3 * statistics.median(commits):.2f} ms"},
    )


def bare_trio() -> float:
    """Runs a second of 50 tasks in one nursery, each of which sleeps as often as its session has runs."""

    async def session() -> None:
        for _ in range(RUNS // queue.SESSIONS):
            await trio.sleep(RUN_SECONDS)

    async def main() -> float:
        begun = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for _ in range(queue.SESSIONS):
                nursery.start_soon(session)
        return RUNS / (time.perf_counter() - begun)

    return trio.run(main)


def _ours(
    bench: Bench,
    signals: int,
    *,
    repeatable: bool,
    locks: int = 1,
    run: float = 0.0,
    costs: list[Spent] | None = None,
) -> Callable[[], float]:
    def rate() -> float:
        with bench.new_folder() as folder:
            store, before = SqliteStore(folder / "queue.db"), spent()
            found = queue.signals_a_second(store, signals, repeatable=repeatable, locks=locks, run=run)
            after = spent()
        if costs is not None and before is not None and after is not None:
            costs.append(after.since(before))
        return found

    return rate


def _rows(bench: Bench, signals: int, group: int, locks: int, costs: list[Spent] | None = None) -> Callable[[], float]:
    def rate() -> float:
        with bench.new_folder() as folder, reference(folder, locks=locks) as rows:
            before = spent()
            found = signals / sum(rows.seconds(signals, group))
            after = spent()
        if costs is not None and before is not None and after is not None:
            costs.append(after.since(before))
        return found

    return rate


def _locks(count: int) -> str:
    return "1 lock" if count == 1 else f"{count} locks"

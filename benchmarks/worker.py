"""The worker's speed on SQLite, from the claim of a signal to its being settled.

Signals are stored before; what is timed is the claim, handle (a plain function that makes one prompt), the run's row,
its start mark, the call of a Runtime that does nothing, its end, and the settling of its signal, for 50 sessions.
"""

from __future__ import annotations

import json
import statistics

import trio

from benchmarks import queue
from benchmarks.figures import Figure, Goal, rounds
from benchmarks.reference import GROUP, reference
from concorde_trio.stores.sqlite import SqliteStore

RUN_SECONDS = 0.02


def repeatable(quick: bool) -> list[Figure]:
    """Signals of a repeatable handler a second, beside the group commit of the same rows (CLM-6)."""
    ours, theirs = _rates("worker, repeatable", count=2_048, times=3 if quick else 9, repeatable=True, group=GROUP)
    return [
        Figure(
            name="signals a second, repeatable handler",
            unit="/s",
            value=statistics.median(ours),
            beside=((f"group commit of the same rows, {GROUP} a commit", statistics.median(theirs)),),
            goal=Goal(
                says="at least a tenth of the group-commit rate (median of the rounds' ratios)",
                value=statistics.median(mine / its for mine, its in zip(ours, theirs, strict=True)),
                bound=0.1,
                at_least=True,
            ),
        )
    ]


def strict(quick: bool) -> list[Figure]:
    """Signals of a strict handler a second, beside commits of the same rows one after the other."""
    ours, theirs = _rates("worker, strict", count=200, times=5 if quick else 21, repeatable=False, group=1)
    return [
        Figure(
            name="signals a second, strict handler",
            unit="/s",
            value=statistics.median(ours),
            beside=(("sequential commits of the same rows", statistics.median(theirs)),),
            goal=Goal(
                says="at least 70 % of the sequential commit rate (median of the rounds' ratios)",
                value=statistics.median(mine / its for mine, its in zip(ours, theirs, strict=True)),
                bound=0.7,
                at_least=True,
            ),
        )
    ]


def runs(quick: bool) -> list[Figure]:
    """Runs of 20 ms a second, 2,000 over 50 sessions, beside what sleeping and two commits a run allow."""
    count, rates, limits = 2_000, [], []
    for _ in rounds(2 if quick else 5, "worker, runs of 20 ms"):
        with queue.fresh_store() as store:
            trio.run(queue.fill, store, count)
            seconds = trio.run(_settle, store, RUN_SECONDS, count, True)
            with reference(store.path) as bare:
                commit = statistics.median(bare.seconds(_payloads(200), 1))
        rates.append(count / seconds)
        limits.append(queue.SESSIONS / (RUN_SECONDS + 2 * commit))
    return [
        Figure(
            name="runs of 20 ms a second, 2,000 over 50 sessions",
            unit="/s",
            value=statistics.median(rates),
            beside=(("50 / (20 ms + two commits)", statistics.median(limits)),),
            goal=Goal(
                says="at least 85 % of it (median of the rounds' ratios)",
                value=statistics.median(mine / its for mine, its in zip(rates, limits, strict=True)),
                bound=0.85,
                at_least=True,
            ),
        )
    ]


def _rates(suite: str, *, count: int, times: int, repeatable: bool, group: int) -> tuple[list[float], list[float]]:
    ours, theirs = [], []
    for _ in rounds(times, suite):
        with queue.fresh_store() as store:
            trio.run(queue.fill, store, count)
            ours.append(count / trio.run(_settle, store, 0.0, count, repeatable))
            with reference(store.path) as bare:
                theirs.append(count / sum(bare.seconds(_payloads(count), group)))
    return ours, theirs


async def _settle(store: SqliteStore, seconds: float, count: int, repeatable: bool) -> float:
    return await queue.seconds_to_settle(store, queue.Sleeping(seconds), count, repeatable=repeatable)


def _payloads(count: int) -> list[str]:
    return [json.dumps(queue.payload(number), separators=(",", ":")) for number in range(count)]

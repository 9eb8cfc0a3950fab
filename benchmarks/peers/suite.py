"""2,000 jobs over 50 keys, by this project, by its peers, and by the limits; and fewer jobs of 20 ms each.

Everybody works in turns, round by round. Peers are programs of their own, each in its environment, each round on a fresh database on the
same disk. Goals of ours stand at the peers' figures.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Literal

import attrs

from benchmarks import queue
from benchmarks.bench import Bench, Skipped, turn
from benchmarks.figures import Beside, Figure, Goal, Point
from benchmarks.peers import ours
from benchmarks.peers.adapter import Answer, ask
from benchmarks.peers.catalog import PEERS, Peer
from benchmarks.postgres import postgres
from benchmarks.reference import GROUP
from benchmarks.samples import Sample

OURS = "concorde_trio, SQLite"
LACKS = "priorities; trying a failed job again by itself"
TIMES = {"procrastinate": 6.0, "dbos-sqlite": 12.0}
"""How many times the rate of a peer ours shall be."""

Contender = Callable[[Path], float | Answer]


@attrs.frozen(kw_only=True)
class Work:
    """So many jobs, and how many seconds each takes."""

    jobs: int
    seconds: float

    @property
    def name(self) -> str:
        what = f"of {self.seconds * 1e3:.0f} ms" if self.seconds else "that do nothing"
        return f"{self.jobs:,} jobs {what} over {queue.SESSIONS} keys"


class Databases:
    """An empty database in PostgreSQL whenever one is asked for; the server is started with the first. Skipped without one."""

    def __init__(self, bench: Bench, stack: ExitStack) -> None:
        self._bench, self._stack = bench, stack
        self._url: str | None = None
        self._missing: str | None = None
        self._numbers = itertools.count(1)

    def new(self) -> str:
        if self._missing is not None:
            raise Skipped(self._missing)
        try:
            import psycopg

            if self._url is None:
                self._url = self._stack.enter_context(postgres(self._bench.folder))
        except (Skipped, ImportError) as error:
            self._missing = str(error) if isinstance(error, Skipped) else "PostgreSQL: psycopg is not installed"
            raise Skipped(self._missing) from None
        name = f"peer{next(self._numbers)}"
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(f"create database {name}")
        return self._url.replace("/postgres?", f"/{name}?")


def suite(bench: Bench) -> Iterator[Figure]:
    """Jobs a second."""
    peers = {name: peer for name, peer in PEERS.items() if not bench.only or name in bench.only}
    noop = Work(jobs=500 if bench.quick else 2_000, seconds=0.0)
    slow = Work(jobs=200 if bench.quick else 500, seconds=0.02)
    with ExitStack() as stack:
        databases = Databases(bench, stack)
        yield from _measure(bench, noop, peers, databases, bench.times(3, 1))
        yield from _measure(bench, slow, peers, databases, bench.times(2, 1))


def _measure(bench: Bench, work: Work, peers: dict[str, Peer], databases: Databases, rounds: int) -> Iterator[Figure]:
    contenders = _ours(work, databases) | {
        name: partial(_ask, name, peer, work, databases) for name, peer in peers.items()
    }
    rates: dict[str, list[float]] = {}
    answers: dict[str, list[Answer]] = {}
    with bench.new_folder() as folder:
        ours.on_sqlite(
            folder, 200, 0.0
        )  # peers' programs are warm or not, each as it comes; this one was never run yet
    total = rounds * len(contenders)
    for number in range(rounds):
        for place, name in enumerate(turn(list(contenders), number)):
            bench.tell(f"{name}, {work.name}", number * len(contenders) + place, total)
            try:
                with bench.new_folder() as folder:
                    found = contenders[name](folder)
            except Skipped as error:
                bench.skip(str(error))
                continue
            rates.setdefault(name, []).append(found.rate if isinstance(found, Answer) else found)
            if isinstance(found, Answer):
                answers.setdefault(name, []).append(found)
    complete = {name: Sample(found) for name, found in rates.items() if len(found) == rounds}
    for name in contenders:
        if name in complete:
            yield _figure(name, work, complete, answers.get(name, []))


def _ours(work: Work, databases: Databases) -> dict[str, Contender]:
    jobs, seconds = work.jobs, work.seconds
    found: dict[str, Contender] = {
        OURS: lambda folder: ours.on_sqlite(folder, jobs, seconds),
        "concorde_trio, SQLite, strict": lambda folder: ours.on_sqlite(folder, jobs, seconds, repeatable=False),
        "concorde_trio, PostgreSQL": lambda folder: ours.on_postgres(databases.new(), jobs, seconds),
        "limit: bare Trio, nothing stored": lambda folder: ours.bare_trio(jobs, seconds),
    }
    if not seconds:
        found |= {
            f"limit: the same rows, {GROUP} a commit": lambda folder: ours.group_commit(folder, jobs),
            "limit: the same rows, a commit each": lambda folder: ours.sequential_commits(folder, jobs),
        }
    return found


def _ask(name: str, peer: Peer, work: Work, databases: Databases, folder: Path) -> Answer:
    return ask(
        name,
        peer,
        jobs=work.jobs,
        keys=queue.SESSIONS,
        seconds=work.seconds,
        folder=folder,
        postgres=databases.new,
    )


def _figure(name: str, work: Work, found: dict[str, Sample], answers: list[Answer]) -> Figure:
    """Beside ours stand the limits; beside each other stands ours."""
    sample, mine = found[name], found[OURS]
    others = [OURS] if name != OURS else [other for other in found if _kind(other) == "limit"]
    beside = tuple(Beside(what=other, sample=found[other], kind=_kind(other)) for other in others)
    goal = None
    if name in TIMES and not work.seconds:
        says = f"{OURS}: {TIMES[name]:g} times this"
        goal = Goal(says=says, sample=mine.over(sample), bound=TIMES[name])
    facts = {}
    if answers:
        worst = max(answers, key=lambda each: each.out_of_order)
        emitted = f"all stored at {worst.jobs / worst.emit_seconds:,.0f} a second" if worst.emit_seconds else ""
        facts = {
            "lacks": PEERS[name].lacks if name in PEERS else _lacks(name),
            "version": worst.version,
            "how": worst.how,
            "fsync": worst.fsync,
            "order": worst.order,
            "emit": emitted,
        }
    return Figure(
        name=f"{name}: {work.name}",
        unit="jobs/s",
        sample=sample,
        beside=beside,
        goal=goal,
        point=Point(chart=f"{work.name}, a second", line="ours" if name == OURS else _kind(name), x=name),
        facts=facts,
    )


def _lacks(name: str) -> str:
    """What ours does not do. Here one member of a fleet works on PostgreSQL; on SQLite there is only ever one worker."""
    return LACKS if "PostgreSQL" in name else f"{LACKS}; several machines"


def _kind(name: str) -> Literal["limit", "peer", "reference"]:
    return "limit" if name.startswith("limit") else "reference" if name.startswith("concorde_trio") else "peer"

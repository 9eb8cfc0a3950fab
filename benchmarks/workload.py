"""A workload: what runs there were, what locks each wanted, when it came and how long it took; and the least time it can take.

The law: by LCK-2 a run starts as soon as no earlier unreleased run shares one of its locks. So with runs of known length and
costs of nothing, every start is known, and the last end of all is the critical path: no worker that keeps the rule can be faster.

``python -m benchmarks.workload QUEUE.db > FILE.json`` records one from a queue of yours. Names become numbers; nothing else of the
runs is kept.
"""

from __future__ import annotations

import json
import random
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from concorde_trio.errors import UsageError

FOLDER = Path(__file__).parent / "workloads"


def _names(locks: Iterable[str]) -> tuple[str, ...]:
    return tuple(locks)


@attrs.frozen
class Work:
    """One run: when it comes and how long it takes (seconds), and its locks, its session first."""

    at: float
    seconds: float
    locks: tuple[str, ...] = attrs.field(converter=_names)


def critical_path(works: Iterable[Work]) -> float:
    """Seconds from 0 to the last end, if nothing but the rule holds a run back. In the order of emission."""
    free: dict[str, float] = {}
    last = 0.0
    for work in works:
        end = max([work.at, *(free.get(lock, 0.0) for lock in work.locks)]) + work.seconds
        free.update(dict.fromkeys(work.locks, end))
        last = max(last, end)
    return last


def scaled(works: list[Work], seconds: float) -> list[Work]:
    """The same in another time: its critical path takes so many seconds."""
    times = seconds / critical_path(works)
    return [Work(work.at * times, work.seconds * times, work.locks) for work in works]


# --- synthetic ----------------------------------------------------------------------------------------------------


def users(chance: random.Random, runs: int) -> list[Work]:
    """50 users, some much busier than others; runs of very different length; now and then a shared resource or two."""
    sessions = [f"user-{number}" for number in range(50)]
    weights = [1 / (number + 1) for number in range(50)]
    works = []
    for _ in range(runs):
        (session,) = chance.choices(sessions, weights)
        shared = chance.sample([f"shared-{number}" for number in range(20)], chance.choice((0, 0, 0, 1, 1, 2)))
        works.append(Work(0.0, chance.lognormvariate(-3.5, 0.8), (session, *shared)))
    return works


def convoy(chance: random.Random, runs: int) -> list[Work]:
    """A session each, and every tenth run needs the one budget."""
    return [
        Work(0.0, chance.uniform(0.01, 0.03), (f"run-{number}", *(("budget",) if number % 10 == 0 else ())))
        for number in range(runs)
    ]


def strangers(chance: random.Random, runs: int) -> list[Work]:
    """Nothing shared: they come one after another, 2 ms apart, and may all run."""
    return [Work(number * 0.002, chance.uniform(0.05, 0.5), (f"run-{number}",)) for number in range(runs)]


# --- recorded -----------------------------------------------------------------------------------------------------


def recorded() -> dict[str, list[Work]]:
    """What was recorded, by name."""
    return {path.stem: from_text(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def from_text(text: str) -> list[Work]:
    return [Work(each["at"], each["seconds"], each["locks"]) for each in json.loads(text)["runs"]]


def to_text(works: list[Work], about: str) -> str:
    lines = ",\n".join(
        f'  {{"at": {work.at:.4f}, "seconds": {work.seconds:.4f}, "locks": {json.dumps(list(work.locks))}}}'
        for work in works
    )
    return f'{{"about": {json.dumps(about)}, "runs": [\n{lines}\n]}}\n'


def record(database: Path) -> list[Work]:
    """The runs of a queue that have started and ended, in their order."""
    if not database.is_file():
        raise UsageError(f"{database} is no file; name the database of a queue")
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        rows = connection.execute(
            "select queued_at, started_at, ended_at, session, resources from runs "
            "where started_at is not null and ended_at is not null order by position"
        ).fetchall()
    except sqlite3.Error as error:
        raise UsageError(f"{database} is not the database of a queue: {error}") from error
    finally:
        connection.close()
    if not rows:
        raise UsageError(f"{database} has no run that has ended")
    return list(_works(rows))


def _works(rows: list[tuple[float, float, float, str, str]]) -> Iterator[Work]:
    names: dict[tuple[str, str], str] = {}
    first = min(row[0] for row in rows)

    def name(space: str, of: str) -> str:
        return names.setdefault((space, of), f"{space}-{len(names) + 1}")

    for queued, started, ended, session, resources in rows:
        locks = (name("session", session), *(name("resource", each) for each in json.loads(resources)))
        yield Work(queued - first, max(0.0, ended - started), locks)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks.workload QUEUE.db > FILE.json")
    try:
        print(to_text(record(Path(sys.argv[1])), "recorded from a queue"), end="")
    except UsageError as error:
        sys.exit(str(error))

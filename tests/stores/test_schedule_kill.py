"""A worker killed at any moment while it fires: signals and rows agree, and no instant comes twice."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

FIRING = """
import sys, trio
from concorde_trio import FunctionRuntime, RunOutcome, Schedule, SqliteStore, open_worker

began = float(sys.argv[2])

async def ran(prompt):
    return RunOutcome.ok()

async def main():
    # A minute of the wall clock passes in 5 ms; the sweep has it looked at as often.
    start = trio.current_time()
    wall = lambda: began + (trio.current_time() - start) * 12_000
    every = [Schedule(name, "tick", name, cron="* * * * *") for name in "ab"]
    async with open_worker(
        SqliteStore(sys.argv[1]), FunctionRuntime(ran), {"tick": lambda signal: []},
        wall_clock=wall, sweep=0.003, schedules=every, schedule_grace=86_400, watchdog=0,
    ) as worker:
        worker.bus.call(lambda event: print(event.at, flush=True) if event.name == "ScheduleFired" else None)
        await trio.sleep_forever()

trio.run(main)
"""


def test_a_worker_killed_at_any_moment_emits_each_instant_once_or_never(tmp_path: Path) -> None:
    """SCH-4: what a row says it fired is there, nothing else is, and every key is there once; 4 kills."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    path = tmp_path / "q.db"
    wall = 1_774_681_200.0
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", FIRING, str(path), str(wall)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        heard = [process.stdout.readline()]
        killer = threading.Timer(0.02 + chance.random() * 0.2, process.kill)
        killer.start()
        heard += [line for line in process.stdout if line.endswith("\n")]
        killer.join()
        process.communicate()
        wall = float(heard[-1]) + 1

    connection = sqlite3.connect(path)
    for name in "ab":
        fired_at, signal_id, next_at, missed, put_at = connection.execute(
            "select fired_at, signal_id, next_at, missed, changed_at from concorde_schedules where name = ?", (name,)
        ).fetchone()
        found = connection.execute(
            'select id, "key" from signals where payload = ? order by seq', (f'"{name}"',)
        ).fetchall()
        assert len(found) > 6
        assert found[-1][0] == signal_id
        assert len({key for _, key in found}) == len(found)
        assert instant(found[-1][1]) == fired_at
        assert next_at == fired_at + 60
        # Every instant since it was put was either emitted or counted as missed.
        assert len(found) + missed == fired_at / 60 - put_at // 60
    connection.close()


def instant(key: str) -> float:
    """The instant in the key of a schedule's signal."""
    return datetime.fromisoformat(key.partition("@")[2]).timestamp()

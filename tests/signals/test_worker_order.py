"""LCK-5: the same input gives the same trace, however Trio wakes its tasks and Python hashes its strings."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from concorde_trio.events import Event, RunStarted
from tests.signals.lock_checker import LockChecker
from tests.signals.stage import Stage, play, run

ROOT = Path(__file__).parents[2]
SESSIONS = [None, "ann", "ben", "cy"]
KINDS = ["held", "free", "again", "quick", "nobody"]


def piece(draw: random.Random) -> list[tuple[float, str, dict[str, Any]]]:
    """When to emit what: everything lasts a whole number of seconds, so that much is due in one instant."""
    signals = []
    for number in range(30):
        runs = [
            run(
                f"{number}-{each}",
                draw.choice([0, 1, 1, 2, 3]),
                draw.choice(["ok", "ok", "ok", "fail", "limited", "raise"]),
                session=draw.choice(SESSIONS),
                resources=draw.sample(["desk", "car", "ann"], draw.randint(0, 2)),
                tag=draw.choice([None, None, "t" * 16, f"tag-of-run-{number:02}-{each}-x"]),
                time_limit=draw.choice([None, None, 1, 2]),
            )
            for each in range(draw.randint(0, 3))
        ]
        payload = {"runs": runs, "handle": draw.choice([0, 0, 1]), "post": draw.choice([0, 1, 2])}
        signals.append((float(draw.randint(0, 12)), draw.choice(KINDS), payload))
    return sorted(signals, key=lambda signal: signal[0])


async def trace(number: int) -> list[Any]:
    """Every event of this piece, in order, with signals called by their place."""
    draw = random.Random(number)
    signals = piece(draw)
    options: dict[str, Any] = draw.choice([{}, {"max_running": 3}, {"claim_ahead": 1}, {"claim_ahead": None}])
    stop = draw.choice([None, None, "park", "cancel"])
    stage = Stage()
    async with stage.recover(**options) as worker:
        for at, kind, payload in signals:
            await trio.sleep_until(at)
            await worker.emit(kind, payload)
        await trio.sleep(1)
        live = [each.id for each in (await stage.runs()).values() if each.ended_at is None]
        if live:
            await worker.cancel_run(live[len(live) // 2])
        await trio.sleep(1)
        if stop is not None:
            worker.stop(stop)
            await worker.stopped.wait()
        else:
            await stage.all_settled()
    LockChecker(max_running=options.get("max_running")).check(stage.events)
    names = {signal_id: f"S{place}" for place, signal_id in enumerate(await stage.signals())}
    return [named(event, names) for event in stage.events]


def named(event: Event, names: dict[str, str]) -> str:
    text = json.dumps(event.as_json())
    for signal_id, name in names.items():
        text = text.replace(signal_id, name)
    return text


@pytest.mark.parametrize("number", [0, *(pytest.param(number, marks=pytest.mark.slow) for number in range(1, 8))])
def test_twenty_scheduler_seeds_give_one_trace(number: int) -> None:
    """LCK-5: ties are settled by the rule, not by which task Trio wakes first."""
    first = play(lambda: trace(number), seed=0)
    assert sum(f'"{RunStarted.__name__}"' in line for line in first) > 10
    for seed in range(1, 20):
        assert play(lambda: trace(number), seed=seed) == first, f"seed {seed} gives another trace"


def test_different_pieces_give_different_traces() -> None:
    """LCK-5: or the test above would prove nothing."""
    assert len({json.dumps(play(lambda number=number: trace(number))) for number in range(4)}) == 4


@pytest.mark.slow
def test_hash_seeds_give_one_trace() -> None:
    """LCK-5: no set, and no dict of ids, decides an order."""
    program = "import tests.signals.test_worker_order as module; print(module.digest())"
    found = set()
    for seed in ("0", "1", "2", "77", "4294967295"):
        ran = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=False,
            text=True,
            timeout=120,
        )
        assert ran.returncode == 0, ran.stderr
        found.add(ran.stdout.strip())
    assert found == {digest()}


def digest() -> str:
    """One number for the traces of all pieces."""
    traces = [play(lambda number=number: trace(number), seed=number) for number in range(4)]
    return hashlib.sha256(json.dumps(traces).encode()).hexdigest()

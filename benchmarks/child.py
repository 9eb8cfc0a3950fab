"""One suite in a process of its own: ``python -m benchmarks.child``, started by ``running``.

The law: a suite inherits nothing of the one before it, and nothing is drawn on a terminal by the process that is measured.
It is told what to measure in one line of JSON, and says in lines of JSON how far it is and, last, what it found.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any, TextIO

from benchmarks import machine, profiling
from benchmarks.bench import Bench, Skipped
from benchmarks.catalog import SUITES
from benchmarks.figures import Figure, as_json

EVERY = 0.2
"""Seconds between two words on how far it is."""


def measure(asked: dict[str, Any], out: TextIO) -> None:
    """``asked``: suite, quick, seed, folder, only, profile."""
    told = 0.0

    def say(**what: Any) -> None:
        print(json.dumps(what), file=out, flush=True)

    def step(phase: str, done: int, of: int) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= EVERY or done == of:
            told = now
            say(phase=phase, done=done, of=of)

    bench = Bench(
        quick=asked["quick"],
        seed=asked["seed"],
        folder=None if asked["folder"] is None else Path(asked["folder"]),
        only=tuple(asked["only"]),
        step=step,
    )
    suite = SUITES[asked["suite"]].load()
    load, begun = machine.load(), time.monotonic()
    figures: list[Figure] = []
    broke: str | None = None
    try:
        with profiling.profiled(asked["profile"], asked["suite"]):
            figures.extend(suite(bench))
    except Skipped as error:
        bench.skip(str(error))
    except Exception:  # noqa: BLE001  Told by the parent, beside what was found before.
        broke = traceback.format_exc()
    say(
        found={
            "seconds": time.monotonic() - begun,
            "load": [load, machine.load()],
            "skipped": bench.skipped,
            "broke": broke,
            "figures": [as_json(figure) for figure in figures],
        }
    )


if __name__ == "__main__":
    to_parent = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a suite, or a library, prints is no figure
    measure(json.loads(sys.stdin.readline()), to_parent)

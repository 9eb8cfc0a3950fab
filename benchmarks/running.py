"""Run suites one after another, each in a process of its own, and hear how far they are.

The law: suites never run beside each other. One that breaks is told of with its own words, and the others are measured.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs

from benchmarks.figures import Figure, from_json

ROOT = Path(__file__).parents[1]
END_WITHIN = 30.0
"""Seconds that a suite has after a Ctrl-C to stop servers and remove databases."""
TAIL = 40
"""Lines of what a suite that broke had to say."""


@attrs.frozen(kw_only=True)
class Measured:
    """What one suite found. ``broke``: what it said, if it did (``figures`` are those measured before); ``load``: of the machine, before and after."""

    figures: tuple[Figure, ...] = ()
    skipped: tuple[str, ...] = ()
    seconds: float = 0.0
    load: tuple[float, float] = (0.0, 0.0)
    broke: str | None = None


@attrs.frozen(kw_only=True)
class Asked:
    """How to measure; see ``Bench``. ``profile``: the folder for profiles, None for none."""

    quick: bool = False
    seed: int = 1
    folder: Path | None = None
    only: tuple[str, ...] = ()
    profile: Path | None = None


class Watcher(Protocol):
    """Who wants to know how far it is."""

    def begins(self, suite: str) -> None: ...

    def step(self, suite: str, phase: str, done: int, of: int) -> None: ...

    def ends(self, suite: str, measured: Measured) -> None: ...


def run(suites: Sequence[str], asked: Asked, watcher: Watcher) -> dict[str, Measured]:
    """Measure these suites in this order."""
    found: dict[str, Measured] = {}
    for suite in suites:
        watcher.begins(suite)
        found[suite] = _run_one(suite, asked, lambda *step, suite=suite: watcher.step(suite, *step))
        watcher.ends(suite, found[suite])
    return found


def _end(process: subprocess.Popen[str]) -> None:
    """Have it end what it has started, and itself."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(END_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()


def _run_one(suite: str, asked: Asked, step: Callable[[str, int, int], None]) -> Measured:
    environment = {**os.environ, "PYTHONHASHSEED": "0"}  # the same order in every set, every time
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH")]))
    words = attrs.asdict(asked) | {
        "suite": suite,
        "folder": None if asked.folder is None else str(asked.folder),
        "profile": None if asked.profile is None else str(asked.profile),
    }
    answer: dict[str, Any] | None = None
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        command = [sys.executable, "-m", "benchmarks.child"]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env=environment,
            start_new_session=True,  # a Ctrl-C comes to this process, which tells that one, once
        )
        with process:
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.write(json.dumps(words) + "\n")
                process.stdin.close()
                for line in process.stdout:
                    told = json.loads(line)
                    if "found" in told:
                        answer = told["found"]
                    else:
                        step(told["phase"], told["done"], told["of"])
            except BaseException:
                _end(process)
                raise
        if answer is None:
            said.seek(0)
            tail = "".join(said.readlines()[-TAIL:]).strip()
            return Measured(broke=tail or f"ended with {process.returncode} and without a word")
    before, after = answer["load"]
    return Measured(
        figures=tuple(from_json(each) for each in answer["figures"]),
        skipped=tuple(answer["skipped"]),
        seconds=answer["seconds"],
        load=(before, after),
        broke=None if answer["broke"] is None else "".join(answer["broke"].splitlines(keepends=True)[-TAIL:]).strip(),
    )

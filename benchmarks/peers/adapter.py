"""Run one peer's program on a fresh database, and read what it answers.

The law: a peer that does not do all of the work, or says nothing that can be read, is skipped with its own words; it is never
given a rate.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import attrs

from benchmarks.bench import Skipped
from benchmarks.peers import environment
from benchmarks.peers.catalog import Peer

SCRIPTS = Path(__file__).parent / "scripts"
PATIENCE = 120.0
"""Seconds that all jobs together may take."""


@attrs.frozen(kw_only=True)
class Answer:
    """``seconds``: from the begin of the first job to the end of the last; ``emit_seconds``: until all were stored."""

    jobs: int
    ran: int
    seconds: float
    emit_seconds: float
    out_of_order: int
    version: str
    how: str
    fsync: str

    @property
    def rate(self) -> float:
        """Jobs a second."""
        return self.jobs / self.seconds

    @property
    def order(self) -> str:
        """What was found of it, in words."""
        return "kept" if not self.out_of_order else f"broken {self.out_of_order:,} times in {self.jobs:,}"


def read_answer(name: str, text: str, jobs: int) -> Answer:
    """The answer on the last line of a program's output; Skipped if it is none, or not all jobs were done once."""
    lines = text.strip().splitlines()
    try:
        answer = Answer(**json.loads(lines[-1]))
        complete = answer.jobs == answer.ran == jobs and answer.seconds > 0
    except (IndexError, ValueError, TypeError):
        raise Skipped(f"{name}: no answer that can be read: {lines[-1:]!r:.200}") from None
    if not complete:
        raise Skipped(f"{name}: {answer.jobs:,} of {jobs:,} jobs were done, in {answer.ran:,} runs")
    return answer


def ask(
    name: str, peer: Peer, *, jobs: int, keys: int, seconds: float, folder: Path, postgres: Callable[[], str]
) -> Answer:
    """Have it do the work. ``postgres()``: the URL of an empty database; ``folder``: for a file of SQLite."""
    program = sys.executable if peer.environment is None else environment.python(peer.environment, peer.needs)
    database = {"none": "", "sqlite": str(folder / "peer.db")}.get(peer.database)
    asked = {
        "jobs": jobs,
        "keys": keys,
        "seconds": seconds,
        "database": postgres() if database is None else database,
        "way": peer.way,
        "patience": PATIENCE,
    }
    try:
        done = subprocess.run(
            [program, str(SCRIPTS / f"{peer.script}.py")],
            input=json.dumps(asked) + "\n",
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=2 * PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Skipped(f"{name}: not over in {2 * PATIENCE:.0f} s") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise Skipped(f"{name}: it ended with {done.returncode}: {last:.300}")
    return read_answer(name, done.stdout, jobs)

"""Serves, kills, and serves again, until everything has settled; then gathers the evidence."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from concorde_trio import SqliteStore
from concorde_trio._sansio.diagnosis import diagnose
from concorde_trio.records import NewSignal
from concorde_trio.stores.sqlite_examination import examine_sqlite
from tests.acceptance.killing.checker import Cut, Evidence

SERVED = Path(__file__).with_name("served.py")
PEOPLE = ("ann", "bob", "cleo", "../../dan", "-eve")
THINGS = ("budget", "kitchen", "garden")
READY = 60
"""Seconds in which a process must have recovered, whatever the machine is doing."""


def payloads(chance: random.Random, count: int) -> dict[int, dict[str, Any]]:
    """Signals to emit, by number."""
    made = {}
    for number in range(count):
        runs = [
            {
                "session": chance.choice(PEOPLE),
                "resources": chance.sample(THINGS, chance.choice([0, 0, 1, 1, 2])),
                "ms": chance.choice([10, 30, 60]),
            }
            for _ in range(chance.choice([0, 1, 1, 1, 2, 3]))
        ]
        kind = chance.choice(["strict", "strict.post", "repeat.post"])
        made[number] = {"n": number, "kind": kind, "runs": runs}
    return made


class Killing:
    """One queue in a folder of its own, and the processes that serve it one after the other."""

    def __init__(self, folder: Path, *, seed: int, fault: str = "none", each: int = 6) -> None:
        self.database = folder / "queue.db"
        self.journal = folder / "journal"
        self.journal.touch()
        self.chance = random.Random(seed)
        self.fault = fault
        self.each = each
        self.payloads: dict[int, dict[str, Any]] = {}
        self.cuts: list[Cut] = []

    def kill(self) -> None:
        """Emit a few signals, some before and some while a process serves; kill it at a random moment."""
        new = list(payloads(self.chance, self.each).values())
        half = len(new) // 2
        self._emit(new[:half])
        served = self._serve()
        try:
            if self.chance.random() < 0.8:
                self._wait_ready(served)
                self._emit(new[half:])
                time.sleep(self.chance.uniform(0, 0.4))
            else:
                # In the middle of its start: what kills a recovery must not be able to hurt either.
                self._emit(new[half:])
                time.sleep(self.chance.uniform(0.2, 0.7))
        finally:
            served.send_signal(signal.SIGKILL)
            served.wait()
            served.stdout.close()  # type: ignore[union-attr]
            served.stdin.close()  # type: ignore[union-attr]
        self.cuts.append(self._look())

    def finish(self) -> Evidence:
        """Serve until all is settled, and gather the evidence."""
        served = self._serve()
        self._wait_ready(served)
        while served.poll() is None and self._unsettled():  # a drain claims nothing more, so it must not come early
            time.sleep(0.05)
        served.communicate(timeout=180)
        if served.returncode != 0:
            raise AssertionError(f"the serving process ended with {served.returncode}")
        journal = [json.loads(line) for line in self.journal.read_text().splitlines()]
        rows = sqlite3.connect(self.database)
        try:
            settled = dict(rows.execute("select payload ->> 'n', state from signals").fetchall())
            queue = rows.execute("select count(*) from runs where state in ('pending', 'running')").fetchone()[0]
        finally:
            rows.close()
        if queue:
            raise AssertionError(f"Q-21: {queue} runs are neither ended nor anybody's")
        if found := diagnose(examine_sqlite(self.database)):
            raise AssertionError(f"Q-21: {found}")
        return Evidence(journal, self.payloads, settled, self.cuts, left=list(self._left()))

    def _unsettled(self) -> int:
        rows = sqlite3.connect(self.database)
        try:
            count = rows.execute("select count(*) from signals where state in ('pending', 'processing')").fetchone()
        finally:
            rows.close()
        return int(count[0])

    def _emit(self, new: list[dict[str, Any]]) -> None:
        for payload in new:
            number = len(self.payloads)
            payload["n"] = number
            self.payloads[number] = payload
            # The wall clock is as wrong as it likes: order is seq alone (SIG-3).
            emitted_at = time.time() + self.chance.uniform(-100, 100)
            text = json.dumps(payload)
            made = NewSignal(id=f"s{number}", kind=payload["kind"], payload=text, emitted_at=emitted_at)
            SqliteStore(self.database).emit_sync([made])

    def _serve(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(SERVED), str(self.database), str(self.journal), self.fault],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _wait_ready(self, served: subprocess.Popen[str]) -> None:
        assert served.stdout is not None
        if served.stdout.readline() != "ready\n":
            raise AssertionError(f"the serving process ended with {served.wait(READY)} before it was ready")

    def _look(self) -> Cut:
        """Which marks a kill left: a handle begun, a run started, a post started."""
        rows = sqlite3.connect(self.database)
        try:
            cut = rows.execute(
                "select phase, payload ->> 'n' from signals where phase in ('handling', 'posting')"
            ).fetchall()
            started = rows.execute(
                "select distinct s.payload ->> 'n' from runs r join signals s on s.id = r.signal_id "
                "where r.state = 'running'"
            ).fetchall()
        finally:
            rows.close()
        return Cut(
            frozenset(number for phase, number in cut if phase == "handling"),
            frozenset(number for (number,) in started),
            frozenset(number for phase, number in cut if phase == "posting"),
        )

    def _left(self) -> Iterator[int]:
        """Processes of this queue that live although all is over: agents and guards, by their command lines."""
        for folder in Path("/proc").iterdir():
            if not folder.name.isdecimal() or int(folder.name) == os.getpid():
                continue
            try:
                words = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
                cwd = os.readlink(folder / "cwd")
            except OSError:
                continue
            if str(self.database).encode() in words or cwd.startswith(f"{self.database}.folders"):
                yield int(folder.name)

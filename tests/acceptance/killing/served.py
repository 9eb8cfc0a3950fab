"""The process that the kill test kills: a SQLite queue, served with real programs as runs.

``python served.py DATABASE JOURNAL FAULT``: FAULT is ``none``, or what is broken on purpose (see ``FAULTS``), so that the
checker can be seen to find it. It prints ``ready`` once it has recovered, and drains when stdin closes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from concorde_trio import CommandRuntime, PostOutcome, Prompt, Signal, SqliteStore, open_worker
from concorde_trio._sansio.changes import Change, EndRun, StartRun
from concorde_trio.records import RunState, SignalRecord, Unfinished

AGENT = Path(__file__).with_name("agent.py")


class Journal:
    """The file that everybody appends to."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, what: str, number: int, **more: Any) -> None:
        line = {"at": time.monotonic(), "what": what, "signal": number, "pid": os.getpid(), **more}
        os.write(self._file, (json.dumps(line) + "\n").encode())


@attrs.frozen
class Work:
    """A handler that does what its payload says, with a post phase."""

    journal: Journal
    repeatable: bool = False

    async def handle(self, signal: Signal) -> list[Prompt]:
        number = signal.payload["n"]
        self.journal.write("handle-start", number)
        await trio.sleep(0.002)
        prompts = [
            Prompt(
                session=run["session"],
                resources=run["resources"],
                text=json.dumps({**run, "run": f"{number}.{index}", "journal": self.journal.path}),
            )
            for index, run in enumerate(signal.payload["runs"])
        ]
        self.journal.write("handle-end", number)
        return prompts

    async def post(self, signal: Signal, outcome: PostOutcome) -> None:
        number = signal.payload["n"]
        told = {"failed": outcome.failed, "interrupted": outcome.interrupted}
        self.journal.write("post-start", number, **told)
        await trio.sleep(0.02)
        self.journal.write("post-end", number)


class LateStartMarks(SqliteStore):
    """Broken: a run's start mark is written with its end, so after the call of its Runtime."""

    _late: dict[str, StartRun]

    async def apply(self, changes: Sequence[Change]) -> None:
        self._late = getattr(self, "_late", {})
        written: list[Change] = []
        for change in changes:
            if isinstance(change, StartRun):
                self._late[change.run_id] = change
                continue
            if isinstance(change, EndRun) and change.run_id in self._late:
                written.append(self._late.pop(change.run_id))
            written.append(change)
        if written:
            await super().apply(written)


class OrderByTime(SqliteStore):
    """Broken: signals are taken in the order of the wall clock at which they say they happened."""

    async def pending(self, limit: int) -> list[SignalRecord]:
        return sorted(await super().pending(limit), key=lambda signal: signal.emitted_at)


class RunAgain(SqliteStore):
    """Broken: recovery takes a run that had started for one that had not."""

    _again: set[str]

    async def unfinished(self) -> list[Unfinished]:
        found = await super().unfinished()
        running = [run.id for entry in found for run in entry.runs if run.state is RunState.RUNNING]
        self._again = set(running)
        return [
            attrs.evolve(
                entry,
                runs=tuple(
                    attrs.evolve(run, state=RunState.PENDING, started_at=None) if run.id in self._again else run
                    for run in entry.runs
                ),
            )
            for entry in found
        ]

    async def apply(self, changes: Sequence[Change]) -> None:
        kept = [each for each in changes if not (isinstance(each, StartRun) and each.run_id in self._again)]
        if kept:
            await super().apply(kept)


FAULTS: dict[str, type[SqliteStore]] = {
    "none": SqliteStore,
    "late-start-marks": LateStartMarks,
    "order-by-time": OrderByTime,
    "run-again": RunAgain,
}


async def main(database: str, journal_path: str, fault: str) -> None:
    journal = Journal(journal_path)
    plain, repeatable = Work(journal), Work(journal, repeatable=True)
    runtime = CommandRuntime(
        [sys.executable, "-I", "-S", str(AGENT)], cwd=f"{database}.folders/{{session}}", stop=[(15, 0.2)]
    )
    handlers = {"strict": plain.handle, "strict.post": plain, "repeat.post": repeatable}
    async with open_worker(FAULTS[fault](database), runtime, handlers, sweep=None):
        print("ready", flush=True)
        await trio.lowlevel.wait_readable(sys.stdin)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])

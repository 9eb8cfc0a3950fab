"""A member of a fleet, in a process of its own: ``python -m benchmarks.fleet_member URL SCHEMA CAPACITY RUN_SECONDS``.

It says ``ready`` once it is one, and ends when its input does, with one line of JSON: when each of its runs began and ended, on the
monotonic clock that all processes of the machine share.
"""

from __future__ import annotations

import json
import sys
import time

import trio

from benchmarks import queue
from concorde_trio.records import RunOutcome, RunPrompt
from concorde_trio.signals.worker import open_worker
from concorde_trio.stores.postgres.store import PostgresStore


class Noting:
    """A Runtime whose runs take ``seconds``, and which notes when they begin and end."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.runs: list[tuple[float, float]] = []

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        begun = time.monotonic()
        if self.seconds:
            await trio.sleep(self.seconds)
        self.runs.append((begun, time.monotonic()))
        return RunOutcome.ok()


async def main(url: str, schema: str, capacity: int, seconds: float) -> None:
    """Until the input ends."""
    store, runtime = PostgresStore(url, schema=schema), Noting(seconds)
    async with open_worker(store, runtime, queue.handlers(repeatable=True), capacity=capacity):
        print("ready", flush=True)
        await trio.to_thread.run_sync(sys.stdin.read)
    print(json.dumps(runtime.runs), flush=True)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))

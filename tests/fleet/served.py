"""One process of the fleet under faults: ``concorde-trio serve served:gateway``, told by its environment what it is.

FLEET_STORE: the URL, through this process's own way of the proxy. FLEET_LEASE: seconds. FLEET_JOURNAL: the file that all append to.
FLEET_FOLDER: where its programs work. FLEET_BROKEN: what is broken on purpose (see ``breaking``), ``nothing`` if nothing is.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from concorde_trio import CommandRuntime, Gateway, RunOutcome, RunPrompt
from concorde_trio.signals.runtime import RuntimeContext
from tests.acceptance.killing.served import AGENT, Journal, Work
from tests.fleet.breaking import store_of

BEAT = 0.005
"""Seconds between two signs of life of a function; an agent program has the same."""


class ProgramsAndFunctions:
    """Runs a real program, or a function in this process; both write into the journal as they live."""

    def __init__(self, journal: Journal, folder: Path) -> None:
        self._journal = os.open(journal.path, os.O_WRONLY | os.O_APPEND)
        self._programs = CommandRuntime(
            [sys.executable, "-I", "-S", str(AGENT)], cwd=f"{folder}/{{session}}", stop=[(15, 0.2)]
        )

    @asynccontextmanager
    async def open(self, context: RuntimeContext) -> AsyncIterator[None]:
        """For the programs."""
        async with self._programs.open(context):
            yield

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        """By what the prompt says."""
        told = json.loads(prompt.text)
        if told["how"] == "program":
            return await self._programs.run(prompt)
        self._write("run-start", told["run"])
        until = time.monotonic() + told["ms"] / 1000
        while time.monotonic() < until:
            await trio.sleep(BEAT)
            self._write("run-beat", told["run"])
        self._write("run-end", told["run"])
        return RunOutcome.ok("done")

    def _write(self, what: str, run: str) -> None:
        line = {"at": time.monotonic(), "what": what, "run": run, "pid": os.getpid()}
        os.write(self._journal, (json.dumps(line) + "\n").encode())


def _gateway() -> Gateway:
    journal = Journal(os.environ["FLEET_JOURNAL"])
    made = Gateway(
        store=store_of(
            os.environ["FLEET_STORE"], lease=float(os.environ["FLEET_LEASE"]), broken=os.environ["FLEET_BROKEN"]
        ),
        runtime=ProgramsAndFunctions(journal, Path(os.environ["FLEET_FOLDER"])),
    )
    made.add_handler("strict", Work(journal).handle)
    made.add_handler("strict.post", Work(journal))
    made.add_handler("repeat.post", Work(journal, repeatable=True), repeatable=True)
    return made


gateway = _gateway()

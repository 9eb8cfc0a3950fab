"""How far the benchmarks are: bars on a terminal, now and then a line elsewhere; on stderr, so that a result can be piped.

Drawn by a process that measures nothing.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from benchmarks.running import Measured

EVERY = 15.0
"""Seconds between two lines where there is no terminal."""


class Bars:
    """A watcher with a bar for the suites and one for the rounds of the suite that is measured."""

    def __init__(self, suites: int) -> None:
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._all = self._progress.add_task("suites", total=suites)
        self._one: TaskID | None = None
        self._told = time.monotonic()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    def begins(self, suite: str) -> None:
        self._one = self._progress.add_task(suite, total=None)

    def step(self, suite: str, phase: str, done: int, of: int) -> None:
        if self._one is not None:
            self._progress.update(self._one, description=f"{suite}: {phase}", completed=done, total=of)
        if not self._console.is_terminal and time.monotonic() - self._told >= EVERY:
            self._told = time.monotonic()
            print(f"{suite}: {phase}, round {done} of {of}", file=sys.stderr, flush=True)

    def ends(self, suite: str, measured: Measured) -> None:
        if self._one is not None:
            self._progress.remove_task(self._one)
        self._progress.advance(self._all)
        if not self._console.is_terminal:
            what = "broke" if measured.broke is not None else f"measured in {measured.seconds:.0f} s"
            print(f"{suite}: {what}", file=sys.stderr, flush=True)

"""Stores whose worker dies at a commit of choice: just before it is made, or just after.

The law: what dies is the worker alone. The store outlives it, as a database file does.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import trio

from concorde_trio._sansio.changes import Change
from concorde_trio.errors import StoreError
from concorde_trio.records import RequestKind
from concorde_trio.stores.memory import MemoryStore
from concorde_trio.stores.sqlite import SqliteStore
from tests.signals.stage import Stage


class Crash(StoreError):
    """The worker is gone."""


class _Crashing:
    """Crashes its worker at commit ``crash_at`` (0: at none), before or after it is made. Put before a store."""

    commits = 0
    crash_at = 0
    after = False

    async def apply(self, changes: Sequence[Change]) -> None:
        self.commits += 1
        if self.commits == self.crash_at and not self.after:
            raise Crash("before this commit")
        await super().apply(changes)  # type: ignore[misc]
        if self.commits == self.crash_at and self.after:
            raise Crash("after this commit")


class CrashingMemory(_Crashing, MemoryStore):
    """In memory."""


class CrashingSqlite(_Crashing, SqliteStore):
    """In a file."""


def crashing(kind: str, folder: Path, name: str = "queue") -> Any:
    """A store of this kind, ``memory`` or ``sqlite``, that does not crash yet."""
    return CrashingMemory() if kind == "memory" else CrashingSqlite(folder / f"{name}.db", inline=True)


async def die(stage: Stage) -> None:
    """The worker dies now, at a commit of no matter (it would only have finished a request for nothing)."""
    stage.store.crash_at, stage.store.commits = 1, 0
    await stage.store.request(RequestKind.CANCEL_RUN, "nobody")
    await trio.sleep_forever()


async def crash(stage: Stage, *, at: float = 1, **options: Any) -> None:
    """After the signals of ``stage.script`` were emitted, the worker dies at this time."""
    with suppress(Crash):
        async with stage.serve(**options):
            for emit in stage.script:  # type: ignore[attr-defined]
                await emit()
            await trio.sleep(at - trio.current_time())
            await die(stage)
    stage.store.crash_at = 0
    stage.events.clear()
    assert trio.current_time() == at


def script(stage: Stage, *signals: tuple[Any, ...]) -> None:
    """Signals to be emitted by ``crash``: (kind, runs…, options)."""

    def emitting(kind: str, *runs: Any) -> Any:
        *runs, last = runs
        options = {} if "text" in last else last
        return lambda: stage.emit(kind, *runs, *([last] if last is not options else []), **options)

    stage.script = [emitting(*signal) for signal in signals]  # type: ignore[attr-defined]

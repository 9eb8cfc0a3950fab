"""A queue with a worker whose agents do nothing, or sleep: what the suites of the worker measure."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from concorde_trio.events import Event, SignalSettled
from concorde_trio.records import JSON, Prompt, RunOutcome, RunPrompt, Signal, SignalState
from concorde_trio.signals.emit import new_signal
from concorde_trio.signals.handlers import SignalHandler
from concorde_trio.signals.runtime import Runtime
from concorde_trio.signals.worker import open_worker
from concorde_trio.stores.sqlite import SqliteStore

SESSIONS = 50
PAYLOAD = 200
"""Bytes of a payload's JSON text."""


class Sleeping:
    """A Runtime whose runs take ``seconds`` (0: none, without giving up their turn)."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.outcome = RunOutcome.ok()

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        if self.seconds:
            await trio.sleep(self.seconds)
        return self.outcome


def payload(number: int, sessions: int = SESSIONS) -> JSON:
    """A payload of 200 bytes as JSON text, of the session that its number falls on."""
    session = f"session-{number % sessions}"
    return {"session": session, "text": "x" * (PAYLOAD - len(f'{{"session":"{session}","text":""}}'))}


def one_prompt(signal: Signal) -> list[Prompt]:
    """The handler: a plain function that makes one prompt of a signal."""
    return [Prompt(text="do it", session=signal.payload["session"])]


def handlers(*, repeatable: bool) -> dict[str, SignalHandler]:
    return {"bench": SignalHandler(handle=one_prompt, repeatable=repeatable)}


@contextmanager
def fresh_store(folder: Path | None = None) -> Iterator[SqliteStore]:
    """A store in a folder of its own, which goes with it."""
    with tempfile.TemporaryDirectory(prefix="concorde-bench-", dir=folder) as path:
        yield SqliteStore(Path(path) / "queue.db")


async def fill(store: SqliteStore, count: int, sessions: int = SESSIONS) -> None:
    """Emit ``count`` signals, in one commit; the store must not be open."""
    async with store.open():
        now = time.time()
        await store.emit([new_signal("bench", payload(number, sessions), emitted_at=now) for number in range(count)])


class Countdown:
    """Set once ``count`` signals are settled; a failed one is an error of the benchmark."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.over = trio.Event()

    def note(self, event: Event) -> None:
        if isinstance(event, SignalSettled):
            assert event.state is SignalState.DONE, event.error
            self.left -= 1
            if not self.left:
                self.over.set()


async def seconds_to_settle(store: SqliteStore, runtime: Runtime, count: int, *, repeatable: bool) -> float:
    """From a worker that has recovered to the last of ``count`` signals, which were stored before, being settled."""
    countdown = Countdown(count)
    async with open_worker(store, runtime, handlers(repeatable=repeatable)) as worker:
        worker.bus.call(countdown.note)
        begun = time.perf_counter()
        await countdown.over.wait()
        return time.perf_counter() - begun

"""A queue with a worker whose agents do nothing, or sleep: what the suites of the worker measure.

Signals fall on 50 sessions in turn, one prompt each, with payloads of 200 bytes. Further locks are resources of the same
user (``calendar-7``, ``mailbox-7``, ...), so that their number changes and what waits for what does not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import trio

from concorde_trio.events import Event, SignalSettled
from concorde_trio.records import JSON, PostOutcome, Prompt, RunOutcome, RunPrompt, Signal, SignalState
from concorde_trio.signals.emit import new_signal
from concorde_trio.signals.handlers import SignalHandler
from concorde_trio.signals.runtime import Runtime
from concorde_trio.signals.store import SignalStore
from concorde_trio.signals.worker import open_worker

SESSIONS = 50
PAYLOAD = 200
"""Bytes of a payload's JSON text."""
RESOURCES = ("calendar", "mailbox", "workspace", "budget", "phone", "shop", "printer")
TEXT = "do it"


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


def payload_text(number: int, sessions: int = SESSIONS) -> str:
    """The same as it is stored."""
    return json.dumps(payload(number, sessions), separators=(",", ":"))


def resources(session: str, locks: int) -> list[str]:
    """The resources of a run that has so many locks, its session counted."""
    user = session.rpartition("-")[2]
    return [f"{name}-{user}" for name in RESOURCES[: locks - 1]]


def handlers(*, repeatable: bool, locks: int = 1, post: bool = False) -> dict[str, SignalHandler]:
    """A plain function that makes one prompt of a signal; a post phase, if any, that does nothing."""

    def one_lock(signal: Signal) -> list[Prompt]:
        return [Prompt(text=TEXT, session=signal.payload["session"])]

    def several(signal: Signal) -> list[Prompt]:
        session = signal.payload["session"]
        return [Prompt(text=TEXT, session=session, resources=resources(session, locks))]

    def nothing(signal: Signal, outcome: PostOutcome) -> None:
        assert not outcome.failed

    handle: Callable[[Signal], list[Prompt]] = one_lock if locks == 1 else several
    return {"bench": SignalHandler(handle=handle, post=nothing if post else None, repeatable=repeatable)}


async def fill(store: SignalStore, count: int, sessions: int = SESSIONS) -> None:
    """Emit ``count`` signals, in one commit, into a store that is open."""
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


async def seconds_to_settle(
    store: SignalStore, runtime: Runtime, signals: int, handlers: dict[str, SignalHandler]
) -> float:
    """From a worker that has recovered to the last of ``signals`` signals, which were stored before, being settled."""
    async with store.open():
        await fill(store, signals)
    countdown = Countdown(signals)
    async with open_worker(store, runtime, handlers) as worker:
        worker.bus.call(countdown.note)
        begun = time.perf_counter()
        await countdown.over.wait()
        return time.perf_counter() - begun


def signals_a_second(
    store: SignalStore, signals: int, *, repeatable: bool = True, locks: int = 1, post: bool = False, run: float = 0.0
) -> float:
    """The rate of a fresh worker on a store that has nothing to do yet."""
    by_kind = handlers(repeatable=repeatable, locks=locks, post=post)
    return signals / trio.run(seconds_to_settle, store, Sleeping(run), signals, by_kind)

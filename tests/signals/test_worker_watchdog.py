"""F-28: what blocks a worker's event loop is seen from outside, and put down to whose code it is."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from concorde_trio import (
    FunctionRuntime,
    InProcessRuntime,
    MemoryStore,
    Prompt,
    RunPrompt,
    ScriptedModel,
    open_worker,
    watchdog,
)
from concorde_trio.errors import UsageError
from concorde_trio.events import Event, LoopBlocked

pytestmark = pytest.mark.slow


class Barks(logging.Handler):
    """What the watchdog logs while the loop is blocked, and an event that its first word sets."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = threading.Event()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a word."""
        self.said.append(record.getMessage())
        self.heard.set()


@pytest.fixture
def barks() -> Iterator[Barks]:
    """What is logged."""
    barks = Barks()
    logging.getLogger("concorde_trio.watchdog").addHandler(barks)
    yield barks
    logging.getLogger("concorde_trio.watchdog").removeHandler(barks)


class Blocking:
    """A handler whose phases block, one of them, until the watchdog has said so."""

    def __init__(self, barks: Barks, phase: str) -> None:
        self.barks = barks
        self.phase = phase

    def block(self, phase: str) -> None:
        """Block the event loop in this phase."""
        if phase == self.phase:
            assert self.barks.heard.wait(50)

    def handle(self, signal: Any) -> list[Prompt]:
        """A plain handler."""
        self.block("handle")
        return [Prompt(text="go", session="ann")]

    async def run(self, prompt: RunPrompt) -> str:
        """The agent."""
        self.block("run")
        return "done"

    async def post(self, signal: Any, outcome: Any) -> None:
        """The post phase."""
        self.block("post")


@pytest.mark.parametrize("phase", ["handle", "run", "post"])
async def test_a_handler_a_run_or_a_post_that_blocks_the_event_loop_is_named(phase: str, barks: Barks) -> None:
    """F-28: while it does, with its frames, and afterwards for how long; and as an event."""
    blocking = Blocking(barks, phase)
    told: list[Event] = []
    heard = trio.Event()

    def hear(event: Event) -> None:
        if isinstance(event, LoopBlocked):
            told.append(event)
            heard.set()

    runtime = FunctionRuntime(blocking.run)
    async with open_worker(MemoryStore(), runtime, {"jobs": blocking}, watchdog=0.2) as worker:
        worker.bus.call(hear)
        signal_id = await worker.emit("jobs")
        await heard.wait()
    name = {
        "handle": f"handle of signal {signal_id} (jobs)",
        "run": f"run {signal_id}-1",
        "post": f"post of signal {signal_id}",
    }
    (event,) = told
    assert isinstance(event, LoopBlocked)
    assert event.who == name[phase]
    assert event.seconds >= 0.2
    assert f"held up by {event.who}" in barks.said[0]
    assert "in block" in barks.said[0]
    assert barks.said[1].startswith(f"{event.who} blocked the event loop for")


async def test_many_short_things_in_a_row_are_put_down_to_none_of_them(
    barks: Barks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-28: only who is found at work twice is named; the line where it stood is told in any case."""
    seen = iter([f"run {number}" for number in range(100)])
    monkeypatch.setattr(watchdog, "_who", lambda frame: next(seen))
    blocking = Blocking(barks, "handle")
    told: list[LoopBlocked] = []
    heard = trio.Event()

    def hear(event: Event) -> None:
        if isinstance(event, LoopBlocked):
            told.append(event)
            heard.set()

    async with open_worker(MemoryStore(), FunctionRuntime(blocking.run), {"jobs": blocking}, watchdog=0.2) as worker:
        worker.bus.call(hear)
        await worker.emit("jobs")
        await heard.wait()
    assert told[0].who is None
    assert "held up by" not in barks.said[0]
    assert barks.said[1].startswith("something blocked the event loop for")


async def test_how_late_the_event_loop_is_can_be_measured_and_is_not_unless_asked() -> None:
    """F-28: signs of life, four times in a limit, are what the lag is known by; nobody has to listen."""
    measured: list[tuple[str, float]] = []
    enough = trio.Event()

    def take(name: str, seconds: float) -> None:
        measured.append((name, seconds))
        if {"lag", "commit"} <= {each for each, _ in measured}:
            enough.set()

    async def agent(prompt: RunPrompt) -> str:
        return "done"

    runtime = FunctionRuntime(agent)
    async with open_worker(MemoryStore(), runtime, {"jobs": lambda signal: []}, watchdog=0.02) as worker:
        assert worker.bus.measured is None
        worker.bus.measured = take
        await worker.emit("jobs")
        await enough.wait()
    assert all(seconds >= 0 for _, seconds in measured)


async def test_a_worker_and_its_sessions_share_one_watchdog_and_may_have_none() -> None:
    """F-28: one for a thread, however many ask; 0 is none, and what is no number of seconds is refused."""

    def watchdogs() -> int:
        return sum(each.name == "concorde-trio watchdog" for each in threading.enumerate())

    for seconds, expected in ((1.0, 1), (0, 0)):
        runtime = InProcessRuntime(model=ScriptedModel([]), watchdog=seconds)
        async with open_worker(MemoryStore(), runtime, {}, watchdog=seconds):
            assert watchdogs() == expected
        while watchdogs():  # noqa: ASYNC110 - the bound of the test turns a hang into a failure
            await trio.sleep(0.01)
    for wrong in (-1, "1", True):
        with pytest.raises(UsageError, match="watchdog"):
            async with open_worker(MemoryStore(), runtime, {}, watchdog=wrong):
                raise AssertionError("it was taken")

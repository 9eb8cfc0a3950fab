"""What ``serve`` says of its worker while it works, and what it never says."""

from __future__ import annotations

import logging

import pytest
import trio
import trio.testing

from concorde_trio import Prompt, RunOutcome, open_worker
from concorde_trio.cli.serve_log import Told
from concorde_trio.records import RunPrompt, Signal
from concorde_trio.stores.memory import MemoryStore

logger = logging.getLogger("tests.serve_log")
TAG = "tag-of-ann-0123456789"


class Agents:
    """Sleeps a second, and fails where its prompt says so."""

    async def run(self, prompt: RunPrompt) -> RunOutcome:
        await trio.sleep(1)
        return RunOutcome.failed(f"no money {TAG}\nmore" * 100) if "fail" in prompt.text else RunOutcome.ok("secret")


def on_message(signal: Signal) -> list[Prompt]:
    """Two runs in one session, the second with a tag."""
    return [Prompt(session="ann\u202e", text="secret"), Prompt(session="ann\u202e", text=f"secret fail {TAG}", tag=TAG)]


async def test_starts_ends_and_a_drain_are_told_and_no_payload_prompt_or_tag(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """STP-1, TAG-4: a line for each start and end, and what a drain still waits for."""
    caplog.set_level(logging.INFO, logger.name)
    async with open_worker(MemoryStore(), Agents(), {"message": on_message}, wall_clock=trio.current_time) as worker:
        worker.bus.call(Told(logger, worker.locks))
        signal_id = await worker.emit("message", "secret")
        await trio.sleep(0.5)
        worker.stop("drain")
        await worker.wait_settled(signal_id)
    lines = [record.getMessage() for record in caplog.records if record.name == logger.name]
    assert lines[:4] == [
        f"run {signal_id}-1 starts in session ann\\u202e",
        "stopping: what is claimed reaches its end first (1 running, 1 waiting); ask again to park what waits",
        f"run {signal_id}-1 is done after 1.00s",
        f"run {signal_id}-2 starts in session ann\\u202e",
    ]
    assert lines[4].startswith(f"run {signal_id}-2 is failed after 1.00s: no money ")
    assert len(lines) == 5
    assert not any("secret" in line or TAG in line or "\n" in line for line in lines)


async def test_claims_are_told_to_whoever_asks_for_more(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """CLM-1: for debugging alone."""
    caplog.set_level(logging.DEBUG, logger.name)
    async with open_worker(MemoryStore(), Agents(), {"message": lambda signal: None}) as worker:
        worker.bus.call(Told(logger, worker.locks))
        signal_id = await worker.emit("message", "secret")
        await worker.wait_settled(signal_id)
    lines = [record.getMessage() for record in caplog.records if record.name == logger.name]
    assert lines[:2] == [f"signal {signal_id} (message) is claimed", f"signal {signal_id} is done"]

"""F-28: a plain tool freezes nobody; and what does block the event loop is seen from outside, while it does."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.lowlevel

from concorde_trio import tool
from concorde_trio.errors import UsageError
from concorde_trio.events import LoopBlocked, TurnEnded
from tests.field.stage import FieldModel, FieldTool, S, calls, play, says, stage

pytestmark = pytest.mark.slow

LOGGER = "concorde_trio.watchdog"


def watchdogs() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "concorde-trio watchdog"]


async def gone() -> None:
    """Until no watchdog is left; the bound of the test turns a hang into a failure."""
    while watchdogs():  # noqa: ASYNC110
        await trio.sleep(0.01)


class Barks(logging.Handler):
    """What the watchdog logs, and an event that its first word sets."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = threading.Event()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "has not come back" in record.getMessage():
            self.said.append(record.getMessage())
            self.heard.set()


@pytest.fixture
def barks() -> Iterator[Barks]:
    barks = Barks()
    logging.getLogger(LOGGER).addHandler(barks)
    yield barks
    logging.getLogger(LOGGER).removeHandler(barks)


async def test_a_plain_tool_that_blocks_holds_up_no_other_session(barks: Barks) -> None:
    """F-28, SES-13: it blocks its thread until 20 turns of other sessions, with calls and heartbeats, are over."""
    go_on = threading.Event()

    @tool
    def block() -> str:
        """Wait for the others."""
        return "they were done" if go_on.wait(50) else "they never were"

    others = [f"s{number}" for number in range(20)]
    model = FieldModel(calls(("a", "block")), *[calls(("b", "work"))] * len(others), then=says("so"))
    async with stage(model, block, FieldTool("work", 0.02), heartbeat=0.01) as scene:
        await scene.say("go")
        async with trio.open_nursery() as nursery:
            for name in others:
                nursery.start_soon(scene.harness.turn, name, "hi")
        assert scene.status() == "tools" and [each.outcome for each in scene.told(TurnEnded)] == ["ok"] * len(others)
        go_on.set()
        await scene.idle()
        assert (await scene.messages())[2].text == "they were done"


async def test_a_tool_that_blocks_the_event_loop_is_named_while_it_does(
    barks: Barks, caplog: pytest.LogCaptureFixture
) -> None:
    """F-28: an async tool that blocks all the same, until the watchdog has said so; once, with its frames, and an event after."""

    async def rude(arguments: Any, context: Any) -> str:
        return "it barked" if barks.heard.wait(50) else "nobody barked"

    model = FieldModel(calls(("a", "rude")), says("so"))
    async with stage(model, FieldTool("rude", rude), watchdog=0.2) as scene:
        assert (await scene.harness.turn(S, "go")).outcome == "ok"
        assert (await scene.messages())[2].text == "it barked"
        while not scene.told(LoopBlocked):  # noqa: ASYNC110 - another thread tells it
            await trio.sleep(0.01)
        (event,) = scene.told(LoopBlocked)
        assert event.seconds >= 0.2 and "wait" in event.where
        assert event.who == f"tool 'rude' (call {(await scene.messages())[1].calls[0].id}) of session {S!r}"
        (said,) = barks.said
        assert "in rude" in said and "barks.heard.wait(50)" in said and "held up by tool 'rude'" in said
        assert [each for each in caplog.messages if each.startswith(f"{event.who} blocked the event loop for")]
    await gone()


async def test_each_blockage_is_told_once(barks: Barks) -> None:
    """F-28: two blockages, two words; none in between, and none of an idle loop."""

    async def rude(arguments: Any, context: Any) -> str:
        barks.heard.clear()
        return str(barks.heard.wait(50))

    model = FieldModel(calls(("a", "rude")), says("so"), calls(("b", "rude")), says("so"))
    async with stage(model, FieldTool("rude", rude), watchdog=0.1) as scene:
        for turn in (1, 2):
            await scene.harness.turn(S, "go")
            while len(scene.told(LoopBlocked)) < turn:  # noqa: ASYNC110
                await trio.sleep(0.01)
        await trio.sleep(0.5)
        assert len(barks.said) == len(scene.told(LoopBlocked)) == 2


async def test_the_watchdog_ends_with_its_harness_and_may_be_left_out() -> None:
    """F-28: no thread that does not end; none at all with 0; and what is no number of seconds is refused."""
    async with stage(FieldModel()) as scene:
        assert len(watchdogs()) == 1
        await trio.lowlevel.checkpoint()
        assert scene.told(LoopBlocked) == []
    await gone()
    async with stage(FieldModel(), watchdog=0):
        assert watchdogs() == []
    for wrong in (-1, "1", None, True, float("nan")):
        with pytest.raises(UsageError, match="watchdog"):
            async with stage(FieldModel(), watchdog=wrong):
                raise AssertionError("it was taken")


def test_there_is_no_watchdog_under_a_virtual_clock() -> None:
    """F-28: its seconds would say nothing of ours."""

    async def main() -> None:
        async with stage(FieldModel()):
            assert watchdogs() == []

    play(main)

"""A session that nobody uses leaves memory, and whoever names it again finds it as it was (SES-19)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio
import trio.testing

from concorde_trio import MemoryStore, SessionHarness
from concorde_trio._sansio.model_events import ModelRequest, ReplyEnd, TextDelta
from concorde_trio.events import Event, SessionLoaded, SessionUnloaded
from concorde_trio.sessions.model import OnEvent


class Echo:
    """Says how many messages it was shown."""

    name = "echo"
    context_window = None

    async def stream(self, request: ModelRequest, on_event: OnEvent, /) -> None:
        on_event(TextDelta(f"{len(request.messages)} messages"))
        on_event(ReplyEnd())


class SlowStore(MemoryStore):
    """Takes ten seconds for each commit."""

    async def apply(self, changes: Sequence[Any]) -> None:
        await trio.sleep(10)
        await super().apply(changes)


async def test_an_idle_session_leaves_memory_and_goes_on_by_its_name(autojump_clock: trio.testing.MockClock) -> None:
    """SES-19, SES-17: it is loaded anew for the next input, with all that was said."""
    told: list[Event] = []
    async with SessionHarness(
        store=MemoryStore(), model=Echo(), unload_after=60, publish=told.extend
    ).open() as harness:
        assert (await harness.turn("ann", "one")).text == "1 messages"
        await trio.sleep(30)
        assert harness.loaded("ann") is not None
        await trio.sleep(90)
        assert harness.loaded("ann") is None
        assert (await harness.turn("ann", "two")).text == "3 messages"
    names = [type(each) for each in told if isinstance(each, SessionLoaded | SessionUnloaded)]
    assert names == [SessionLoaded, SessionUnloaded, SessionLoaded]


async def test_a_session_whose_last_step_is_being_stored_stays(autojump_clock: trio.testing.MockClock) -> None:
    """SES-19, SES-0: what is loaded from a store that lags behind memory would be a second session of the same name."""
    async with SessionHarness(store=SlowStore(), model=Echo(), unload_after=1).open() as harness:
        for number in range(3):
            await harness.submit("ann", f"input {number}")
            await trio.sleep(8)  # the reply's commit is under way, and nothing else
            assert harness.loaded("ann") is not None
        assert (await harness.turn("ann", "last")).text == "7 messages"

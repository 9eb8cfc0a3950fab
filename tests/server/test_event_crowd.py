"""A thousand readers, two hundred of them deaf: nobody waits for them, and what they cost has a bound."""

from __future__ import annotations

import gc
import re
import resource
from contextlib import AsyncExitStack

import pytest
import trio

from concorde_trio.events import HandleFailed
from concorde_trio.server import event_feed
from concorde_trio.server.connection import Connection
from concorde_trio.server.event_feed import EventFeed
from concorde_trio.server.event_routes import _Events
from concorde_trio.server.event_stream import STOPPING, TOO_SLOW
from tests.server.event_reader import EventReader, plain, until
from tests.server.house import OPERATOR, House, open_house, request

pytestmark = pytest.mark.slow

READERS = 800
DEAF = 200
KEPT = 300
SIZE = 400
"""Bytes of text in each event."""
EVENTS = 1_200
_NUMBER = re.compile(rb'"HandleFailed", "at": ([0-9]+)')
ABOUT_A_SECOND = 5.0
"""The bound of a stop is 1 s by design; here the thousand clients that must notice it are in the same process."""


@pytest.fixture(autouse=True)
def many_files() -> None:
    """Two sockets for each stream."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4_000:
        pytest.skip(f"a process may have {hard} open files here; this needs 4,000")
    if soft != resource.RLIM_INFINITY and soft < 4_000:
        resource.setrlimit(resource.RLIMIT_NOFILE, (4_000, hard))


class Counting:
    """A reader that looks at the numbers alone: ``told`` is how many events came, each the next of the one before."""

    def __init__(self, reader: EventReader) -> None:
        self._reader = reader
        self.told = 0
        self.last = b""

    async def run(self) -> None:
        """To the end of the stream."""
        while data := await self._reader.piece():
            for number in _NUMBER.findall(data):
                assert int(number) == self.told
                self.told += 1
            self.last = data


async def stream(stack: AsyncExitStack, house: House, receive_buffer: int | None = None) -> EventReader:
    """A stream that has begun."""
    connection = await stack.enter_async_context(plain(house.url, receive_buffer))
    await connection.send(request("/events", f"authorization: Bearer {OPERATOR}"))
    assert await connection.piece(b"\r\n\r\n") is not None
    return EventReader(connection)


async def test_a_thousand_streams_of_which_two_hundred_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-4: the others get everything, in order and at once; what is kept has its bound; and a stop takes no longer."""
    monkeypatch.setattr(event_feed, "KEPT", KEPT)
    async with open_house() as house, AsyncExitStack() as stack, trio.open_nursery() as nursery:
        counting = [Counting(await stream(stack, house)) for _ in range(READERS)]
        deaf = [await stream(stack, house, 4_096) for _ in range(DEAF)]
        for each in counting:
            nursery.start_soon(each.run)
        for number in range(EVENTS):
            house.worker.bus.publish([HandleFailed(at=float(number), signal_id="s", error="x" * SIZE)])
            if number % 100 == 99:
                # All that happened is with all who read before more happens, whatever the deaf ones do.
                await until(lambda number=number: all(each.told == number + 1 for each in counting))
        streams: list[_Events] = []
        feeds: list[EventFeed] = []
        connections: list[Connection] = []
        for thing in gc.get_objects():
            if isinstance(thing, _Events):
                streams.append(thing)
            elif isinstance(thing, EventFeed) and thing.log.last >= EVENTS:
                feeds.append(thing)
            elif isinstance(thing, Connection):
                connections.append(thing)
        (feed,) = feeds
        assert len(streams) == len(connections) == READERS + DEAF
        left_behind = [one for one in streams if feed.log.lost(one._at)]
        assert len(left_behind) == DEAF
        # What a reader has that waits is a write that began, and no more; what happened since is nowhere but in the log.
        assert all(not one._data for one in streams)
        assert feed.log.last - feed.log.first + 1 == KEPT
        assert len(feed._written) <= 1 + EVENTS // 100
        assert await deaf[0].rest() and deaf[0].ended
        began = trio.current_time()
        house.closing.set()
        with trio.fail_after(ABOUT_A_SECOND):
            await until(lambda: all(STOPPING.encode() in each.last for each in counting))
        nursery.cancel_scope.deadline = began + ABOUT_A_SECOND
    assert all(each.told == EVENTS for each in counting)


async def test_the_deaf_are_told_if_they_read_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-4: what was on its way when they were cut off, and why there is no more."""
    monkeypatch.setattr(event_feed, "KEPT", KEPT)
    async with open_house() as house, AsyncExitStack() as stack:
        deaf = [await stream(stack, house, 4_096) for _ in range(50)]
        for number in range(EVENTS):
            house.worker.bus.publish([HandleFailed(at=float(number), signal_id="s", error="x" * SIZE)])
            if number % 10 == 9:
                await trio.sleep(0.001)
        for each in deaf:
            found = await each.rest()
            assert found[-1] == ("end", {"reason": TOO_SLOW})
            seen = [document["at"] for name, document in found if name == "HandleFailed"]
            assert seen == list(range(len(seen)))
            assert len(found) < EVENTS

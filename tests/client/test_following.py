"""Following events from Python: over torn connections, servers that are away, and restarts."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import repeat
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio

from concorde_trio.client import following
from concorde_trio.client.client import Client
from concorde_trio.client.following import Happened, Reset
from concorde_trio.errors import RequestRefused, ServerGone, UsageError
from concorde_trio.events import HandleFailed, RunEnded, RunQueued, RunStarted
from concorde_trio.records import RunState
from concorde_trio.server import event_feed
from concorde_trio.server.event_routes import _Events
from tests.server.house import OPERATOR, House, open_house

pytestmark = pytest.mark.slow


class Between:
    """What a client asks instead of the server: it tears connections, and may lead to another server, or nowhere."""

    def __init__(self, url: str) -> None:
        self.url = ""
        self.target: str | None = url
        self.cut_after: Iterator[int] = repeat(1 << 60)
        self.connections = 0
        self._passing: set[trio.CancelScope] = set()

    def tear(self) -> None:
        """Tear every connection."""
        for scope in self._passing:
            scope.cancel()

    async def pass_on(self, client: trio.SocketStream) -> None:
        """One connection."""
        if self.target is None:
            await client.aclose()
            return
        self.connections += 1
        parts = urlsplit(self.target)
        assert parts.hostname and parts.port
        with suppress(OSError, trio.BrokenResourceError, trio.ClosedResourceError), trio.CancelScope() as scope:
            self._passing.add(scope)
            server = await trio.open_tcp_stream(parts.hostname, parts.port)
            async with server, client, trio.open_nursery() as nursery:
                nursery.start_soon(self._pump, client, server, 1 << 60)
                await self._pump(server, client, next(self.cut_after))
                nursery.cancel_scope.cancel()
        self._passing.discard(scope)

    async def _pump(self, source: trio.SocketStream, sink: trio.SocketStream, most: int) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while most > 0 and (data := await source.receive_some(min(most, 65536))):
                most -= len(data)
                await sink.send_all(data)


@asynccontextmanager
async def between(url: str) -> AsyncIterator[Between]:
    """Stand between a client and the server at ``url``."""
    middle = Between(url)
    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(trio.serve_tcp, middle.pass_on, 0)
        middle.url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        yield middle
        nursery.cancel_scope.cancel()


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """A served worker."""
    async with open_house() as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask again soon."""
    monkeypatch.setattr(following, "SOON", 0.01)
    monkeypatch.setattr(following, "LATER", 0.05)


def told(number: int) -> HandleFailed:
    """An event, made up; its error says which."""
    return HandleFailed(at=float(number), signal_id="s", error="x" * (number % 200))


async def test_events_come_as_their_classes(house: House) -> None:
    """SRV-4: with enumerations and tuples as they were."""
    async with Client(house.url, token=OPERATOR) as client, client.follow(kinds=["RunQueued", "RunEnded"]) as follow:
        run = await house.start(session="ann", resources=["car", "key"])
        await house.end("ann")
        queued, ended = await anext(follow), await anext(follow)
        assert isinstance(queued, Happened) and isinstance(ended, Happened)
        assert isinstance(queued.event, RunQueued) and queued.event.resources == ("car", "key")
        assert isinstance(ended.event, RunEnded) and ended.event.state is RunState.DONE
        assert (queued.data["run_id"], ended.name) == (run, "RunEnded")
        later = Happened(id="b-1", name="RunStarted", data={**queued.data, "new_in_a_later_version": 1})
        assert isinstance(later.event, RunStarted)
        assert Happened(id="b-1", name="FromTheFuture", data={}).event is None
        assert Happened(id="b-1", name="RunStarted", data={"at": 1.0}).event is None
        assert Happened(id="b-1", name="RunEnded", data={**ended.data, "state": "melted"}).event is None


async def test_torn_at_every_place_it_gives_each_event_once_and_in_order(house: House) -> None:
    """SRV-4: whether in a head, between two events, or in the middle of one."""
    async with between(house.url) as middle, Client(middle.url, token=OPERATOR) as client:
        snapshot = await client.snapshot()
        seen: list[int] = []
        async with client.follow(after=snapshot["id"]) as follow, trio.open_nursery() as nursery:

            async def happen() -> None:
                for number in range(300):
                    house.worker.bus.publish([told(number)])
                    await trio.sleep(0.001)

            nursery.start_soon(happen)
            chance = random.Random(1)
            middle.cut_after = iter(lambda: chance.randint(1, 2_000), 0)
            middle.tear()
            for _ in range(300):
                each = await anext(follow)
                assert isinstance(each, Happened)
                seen.append(int(each.data["at"]))
        assert seen == list(range(300))
        assert middle.connections > 10


async def test_a_call_that_is_cancelled_loses_nothing(house: House) -> None:
    """SRV-4: so that it can be waited for in turns with other things."""
    async with Client(house.url, token=OPERATOR) as client, client.follow() as follow, trio.open_nursery() as nursery:

        async def happen() -> None:
            for number in range(100):
                house.worker.bus.publish([told(number)])
                await trio.sleep(0.003)

        nursery.start_soon(happen)
        seen: list[int] = []
        while len(seen) < 100:
            with trio.move_on_after(0.004):
                each = await anext(follow)
                assert isinstance(each, Happened)
                seen.append(int(each.data["at"]))
        assert seen == list(range(100))


async def test_a_restart_of_the_server_is_a_reset(house: House) -> None:
    """SRV-4: it waits while nobody is there, says that a snapshot is needed, and goes on."""
    async with between(house.url) as middle, Client(middle.url, token=OPERATOR) as client, client.follow() as follow:
        house.worker.bus.publish([told(1)])
        assert isinstance(await anext(follow), Happened)
        middle.target = None
        middle.tear()
        house.closing.set()
        async with open_house() as again, trio.open_nursery() as nursery:

            async def come_back() -> None:
                await trio.sleep(0.2)
                middle.target = again.url

            nursery.start_soon(come_back)
            reset = await anext(follow)
            assert isinstance(reset, Reset) and "started anew" in reset.reason
            snapshot = await client.snapshot()
            assert snapshot["id"] == reset.id
            again.worker.bus.publish([told(2)])
            each = await anext(follow)
            assert isinstance(each, Happened) and each.data["at"] == 2.0


async def test_a_server_that_stops_is_waited_for(house: House) -> None:
    """SRV-4: its ``end`` is no event of what happens."""
    async with between(house.url) as middle, Client(middle.url, token=OPERATOR) as client, client.follow() as follow:
        house.closing.set()
        with trio.move_on_after(0.3):
            raise AssertionError(await anext(follow))
        async with open_house() as again:
            middle.target = again.url
            assert isinstance(await anext(follow), Reset)


async def test_who_asked_for_little_comes_back_to_where_the_stream_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-4: an id without an event is noted, so that nothing is lost by what was not asked for."""
    monkeypatch.setattr(_Events, "quiet", 0.02)
    monkeypatch.setattr(event_feed, "KEPT", 100)
    async with (
        open_house() as house,
        between(house.url) as middle,
        Client(middle.url, token=OPERATOR) as client,
        client.follow(kinds=["RunStarted"]) as follow,
    ):
        for number in range(5):
            house.worker.bus.publish([told(number) for number in range(90)])
            await trio.sleep(0.1)  # several times as long as a stream is quiet
            middle.tear()
            house.worker.bus.publish([RunStarted(at=float(number), run_id="r-1", signal_id="r", session="ann")])
            each = await anext(follow)
            assert isinstance(each, Happened) and each.data["at"] == number


async def test_what_cannot_be_cured_by_waiting_is_raised(house: House) -> None:
    """SRV-5: a wrong token, a wrong question, and that nobody is there at the begin."""
    async with Client(house.url, token="wrong-token-wrong-token") as client:
        with pytest.raises(RequestRefused, match="operator token"):
            async with client.follow():
                pass
    async with Client(house.url, token=OPERATOR) as client:
        with pytest.raises(RequestRefused, match="NoSuchEvent"):
            async with client.follow(kinds=["NoSuchEvent"]):
                pass
        with pytest.raises(UsageError, match="kinds must be names"):
            client.follow(kinds="RunEnded")
        with pytest.raises(ZeroDivisionError):
            async with client.follow():
                raise ZeroDivisionError
    async with Client("http://127.0.0.1:9", token=OPERATOR) as client:
        with pytest.raises(ServerGone):
            async with client.follow():
                pass


async def test_one_stream_as_the_server_tells_it(house: House) -> None:
    """SRV-4: without coming back, to its last event."""
    async with Client(house.url, token=OPERATOR) as client, client.events(session="ann") as stream:
        house.worker.bus.publish([told(1), RunStarted(at=2.0, run_id="r-1", signal_id="r", session="ann")])
        house.closing.set()
        found = [each async for each in stream]
        assert [each.name for each in found if each.data is not None] == ["RunStarted", "end"]
        assert found[-1].data == {"reason": "the server is stopping"}

"""How the views of the command line hear a gateway: over torn connections, one that is away, and a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from concorde_trio.cli.feed import Feed
from concorde_trio.client.client import Client
from concorde_trio.client.wire import ServerEvent
from concorde_trio.errors import RefusedId
from concorde_trio.server.endpoint import Endpoint, write_endpoint
from tests.client.test_following import between
from tests.server.house import OPERATOR, House, open_house

pytestmark = pytest.mark.slow


class Told:
    """A listener that writes down what it is told."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.reasons: list[str | None] = []
        self.endpoint: Endpoint | None = None
        self._more = trio.Event()

    def _note(self, what: str) -> None:
        self.log.append(what)
        self._more.set()

    async def begin(self, client: Client) -> str:
        """As a view does."""
        found = await client.snapshot(["signals"])
        self._note("begin")
        return found["id"]

    async def hear(self, event: ServerEvent) -> None:
        """The runs' ends are enough."""
        if event.name == "RunEnded":
            self._note(event.data["session"])

    def reached(self, endpoint: Endpoint | None) -> None:
        """Remember it."""
        self.endpoint = endpoint

    async def unserved(self, reason: str | None) -> None:
        """Once each time."""
        self.reasons.append(reason)
        if self.log[-1:] != ["unserved"]:
            self._note("unserved")

    async def until(self, *log: str) -> None:
        """Wait until it was told so much; it was told this and nothing else."""
        with trio.fail_after(20):
            while len(self.log) < len(log):
                self._more = trio.Event()
                await self._more.wait()
        assert self.log == list(log)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """A served worker."""
    async with open_house() as opened:
        yield opened


@pytest.fixture
async def told(tmp_path: Path, nursery: trio.Nursery) -> Told:
    """Who listens to the gateway of ``queue.db``, wherever its endpoint file leads."""
    listener = Told()
    nursery.start_soon(Feed(tmp_path / "queue.db", listener).run)
    return listener


async def run(house: House, session: str) -> None:
    """A run of this session, from its beginning to its end."""
    await house.start(session=session)
    await house.end(session)


async def test_a_torn_connection_is_taken_up_where_it_was(house: House, told: Told, tmp_path: Path) -> None:
    """SRV-4: nothing begins anew and the gateway is not called gone, for all that happened meanwhile is heard, once."""
    await told.until("unserved")
    async with between(house.url) as middle:
        with write_endpoint(tmp_path / "queue.db", url=middle.url, token=OPERATOR):
            await told.until("unserved", "begin")
            await run(house, "ann")
            await told.until("unserved", "begin", "ann")
            middle.tear()
            await run(house, "bob")
            await run(house, "cleo")
            await told.until("unserved", "begin", "ann", "bob", "cleo")
            assert told.endpoint is not None and middle.connections >= 2
        middle.tear()
        await told.until("unserved", "begin", "ann", "bob", "cleo", "unserved")
        assert told.endpoint is None


async def test_a_gateway_that_is_there_and_does_not_answer_is_gone_after_a_while(
    house: House, told: Told, tmp_path: Path
) -> None:
    """SRV-4: and heard again when it answers."""
    await told.until("unserved")
    async with between(house.url) as middle:
        with write_endpoint(tmp_path / "queue.db", url=middle.url, token=OPERATOR):
            await told.until("unserved", "begin")
            target, middle.target = middle.target, None
            middle.tear()
            await told.until("unserved", "begin", "unserved")
            assert told.reasons[-1] is not None and "went away" in told.reasons[-1]
            middle.target = target
            await run(house, "ann")
            await told.until("unserved", "begin", "unserved", "ann")


async def test_another_start_of_the_gateway_begins_anew(house: House, told: Told, tmp_path: Path) -> None:
    """SRV-4: an event of the old start means nothing to the new one."""
    await told.until("unserved")
    async with open_house() as second, between(house.url) as middle:
        with write_endpoint(tmp_path / "queue.db", url=middle.url, token=OPERATOR):
            await told.until("unserved", "begin")
            await run(house, "ann")
            await told.until("unserved", "begin", "ann")
            middle.target = second.url
            middle.tear()
            await told.until("unserved", "begin", "ann", "begin")
            await run(second, "bob")
            await told.until("unserved", "begin", "ann", "begin", "bob")


async def test_what_cannot_pass_ends_it_with_the_servers_own_words(house: House, tmp_path: Path) -> None:
    """SRV-5: somebody else listens there, who knows no events."""
    with write_endpoint(tmp_path / "queue.db", url=f"{house.url}/elsewhere", token=OPERATOR), pytest.raises(RefusedId):
        with trio.fail_after(20):
            await Feed(tmp_path / "queue.db", Told()).run()

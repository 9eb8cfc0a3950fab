"""As many connections as there may be, and one more."""

from __future__ import annotations

import resource
from contextlib import AsyncExitStack

import pytest
import trio
from quart_trio import QuartTrio

from concorde_trio.server.connection import ConnectionLimits
from concorde_trio.server.serving import ServerLimits
from tests.server.house import House, Wire, open_house, request, wire

pytestmark = pytest.mark.slow

MOST = 5


class Slow:
    """An app with a route that takes its time."""

    def __init__(self) -> None:
        self.app = QuartTrio("theirs")
        self.goes_on, self.all_busy = trio.Event(), trio.Event()
        self._busy = 0
        self.app.add_url_rule("/slow", "slow", self.slow)

    async def slow(self) -> str:
        """Wait for the others, and to be let go."""
        self._busy += 1
        if self._busy == MOST:
            self.all_busy.set()
        await self.goes_on.wait()
        return "done"


async def status(connection: Wire, path: str = "/healthz") -> int | None:
    """Ask, and give the status; None if the server closed instead."""
    await connection.send(request(path))
    answer = await connection.answer()
    return None if answer is None else answer.status


async def fill(house: House, stack: AsyncExitStack) -> list[Wire]:
    """Open as many connections as there may be, one after another, and ask by each."""
    found = []
    for _ in range(MOST):
        connection = await stack.enter_async_context(wire(house.url))
        assert await status(connection) == 200
        found.append(connection)
    return found


async def test_one_more_closes_the_one_that_was_idle_for_longest() -> None:
    """SRV-5: whoever opens connections and says nothing locks nobody out."""
    async with open_house(limits=ServerLimits(connections=MOST)) as house, AsyncExitStack() as stack:
        first, second, third, *others = await fill(house, stack)
        assert await status(first) == 200  # so it is idle for less than the others
        newest = await stack.enter_async_context(wire(house.url))
        assert await status(newest) == 200
        assert await second.rest() == b""
        for connection in (first, third, *others):
            assert await status(connection) == 200


async def test_where_all_are_busy_one_more_is_told_so_and_the_others_go_on() -> None:
    """SRV-5: a 503 that says what to do; what is being answered is never cut for somebody new."""
    slow = Slow()
    async with open_house(app=slow.app, limits=ServerLimits(connections=MOST)) as house, AsyncExitStack() as stack:
        busy = await fill(house, stack)
        for connection in busy:
            await connection.send(request("/slow"))
        await slow.all_busy.wait()
        for _ in range(3):
            async with wire(house.url) as refused:
                answer = await refused.answer()
                assert answer is not None
                assert (answer.status, answer.headers["connection"]) == (503, "close")
                assert "try again" in answer.json["detail"]
                assert await refused.rest() == b""
        slow.goes_on.set()
        for connection in busy:
            answer = await connection.answer()
            assert answer is not None
            assert answer.body == b"done"
        async with wire(house.url) as later:
            assert await status(later) == 200


async def test_connections_leave_half_of_the_files_that_a_process_may_have_to_its_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SRV-5: without files a worker can neither open its store nor start a program, whoever took them."""
    monkeypatch.setattr(resource, "getrlimit", lambda what: (2 * MOST, 10_000))
    patient = ServerLimits(connection=ConnectionLimits(idle=1000))  # so that nothing else closes one
    async with open_house(limits=patient) as house, AsyncExitStack() as stack:
        first, *others = await fill(house, stack)
        async with wire(house.url) as newest:
            assert await status(newest) == 200
            with trio.fail_after(60):
                assert await first.rest() == b""
            for connection in (*others, newest):
                assert await status(connection) == 200

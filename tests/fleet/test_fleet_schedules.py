"""Schedules in a fleet: its leader fires, and whoever leads after it goes on where it was."""

from __future__ import annotations

import pytest
import trio

from concorde_trio import Schedule
from concorde_trio.events import Event, ScheduleFired
from tests.fleet.members import SOON, Fleet, until
from tests.stores.postgres_server import PostgresServer, postgres

pytestmark = pytest.mark.slow

__all__ = ["postgres"]

BEGAN = 1_774_681_200.0


async def test_the_leader_fires_and_the_next_one_goes_on_where_it_was(postgres: PostgresServer) -> None:
    """SCH-1, SCH-4: no instant comes twice, and none is lost at the change, though a minute passes in 50 ms."""
    fleet = Fleet(postgres, postgres.place())
    start = trio.current_time()
    told: dict[str, list[Event]] = {"first": [], "second": []}

    def wall() -> float:
        return BEGAN + (trio.current_time() - start) * 1_200

    def fired(name: str) -> list[float]:
        return [event.due for event in told[name] if isinstance(event, ScheduleFired)]

    every = Schedule("minutely", "tick", cron="* * * * *")
    # What is waited for is counted in seconds of the wall clock; the sweep looks often enough for a fast one.
    options = {
        "wall_clock": wall,
        "sweep": 0.02,
        "schedules": [every],
        "watchdog": 0,
        "handlers": {"tick": lambda arrived: None},
    }
    async with trio.open_nursery() as nursery:
        leave, left = trio.Event(), trio.Event()

        async def first_member(task_status: trio.TaskStatus[None]) -> None:
            async with fleet.member("first", **options) as worker:
                worker.bus.call(told["first"].append)
                task_status.started()
                await leave.wait()
            left.set()

        await nursery.start(first_member)
        async with fleet.member("second", **options) as second:
            second.bus.call(told["second"].append)
            await until(lambda: len(fired("first")) > 2)
            assert not second.leads
            assert fired("second") == []
            leave.set()
            await until(lambda: len(fired("second")) > 2)
            with trio.fail_after(SOON):
                await left.wait()
        assert max(fired("first")) < min(fired("second"))
        keys = [key for (key,) in fleet.sql("select \"key\" from {}.signals where kind = 'tick'")]
        assert len(set(keys)) == len(keys) >= len(fired("first")) + len(fired("second"))
        nursery.cancel_scope.cancel()

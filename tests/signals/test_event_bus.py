"""The event bus: in order, after the commit, and never waiting for anybody."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
import trio.testing

from concorde_trio._sansio.changes import Change
from concorde_trio.errors import StoreError
from concorde_trio.events import Event, RunEnded, RunQueued, RunStarted, SignalClaimed, SignalSettled, WorkerStopped
from concorde_trio.signals.event_bus import EventBus
from concorde_trio.stores.memory import MemoryStore
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock


async def drained(receive: trio.MemoryReceiveChannel[Event]) -> list[Event]:
    return [event async for event in receive]


async def test_every_subscriber_gets_every_event_in_order() -> None:
    """SRV-4: from the moment it subscribed, to the end."""
    bus = EventBus()
    told = [WorkerStopped(at=float(number)) for number in range(10)]
    with bus.subscribe() as all_of_them:
        bus.publish(told[:5])
        with bus.subscribe() as later:
            bus.publish(told[5:])
            bus.close()
            assert await drained(later) == told[5:]
        assert await drained(all_of_them) == told


async def test_a_slow_subscriber_is_cut_off_and_told_by_the_end_of_its_stream() -> None:
    """SRV-4: it gets what was in its buffer, and then the end; the others lose nothing."""
    bus = EventBus()
    told = [WorkerStopped(at=float(number)) for number in range(10)]
    with bus.subscribe(buffer=3) as slow, bus.subscribe(buffer=10) as quick:
        bus.publish(told)
        assert await drained(slow) == told[:3]
        bus.close()
        assert await drained(quick) == told


async def test_one_that_keeps_up_is_never_cut_off() -> None:
    """SRV-4: the buffer bounds what waits, not what was told."""
    bus = EventBus()
    with bus.subscribe(buffer=1) as receive:
        for number in range(100):
            bus.publish([WorkerStopped(at=float(number))])
            assert (await receive.receive()).at == number


async def test_leaving_a_subscription_forgets_it() -> None:
    """SRV-4: also when its receiver was closed by itself."""
    bus = EventBus()
    with bus.subscribe() as receive:
        receive.close()
        bus.publish([WorkerStopped(at=0.0)])
    with bus.subscribe():
        pass
    assert not bus._sends
    bus.publish([WorkerStopped(at=0.0)])


async def test_a_stream_asked_for_after_the_end_ends_at_once() -> None:
    """SRV-4: nobody waits for a worker that is gone."""
    bus = EventBus()
    bus.close()
    with bus.subscribe() as receive:
        assert await drained(receive) == []


async def test_a_subscriber_of_a_worker_is_told_of_its_end(autojump_clock: Clock) -> None:
    """STP-4: the last event, and then the end of the stream; a slow one holds up nothing."""
    stage, told = Stage(), []
    async with trio.open_nursery() as nursery:

        async def listen(buffer: int) -> None:
            assert stage.worker is not None
            with stage.worker.bus.subscribe(buffer) as receive:
                await trio.sleep(0 if buffer > 10 else 50)
                told.append([event.name async for event in receive])

        async with stage.serve():
            nursery.start_soon(listen, 1_000)
            nursery.start_soon(listen, 2)
            await trio.testing.wait_all_tasks_blocked()
            await stage.emit("free", run("R1", 1))
            await stage.all_settled()
    everything = [
        "SignalClaimed",
        "RunQueued",
        "RunStarted",
        "RunEnded",
        "SignalSettled",
        "WorkerStopping",
        "WorkerStopped",
    ]
    assert told == [everything, everything[:2]]
    assert trio.current_time() == 50


class Counting(MemoryStore):
    """Refuses its n-th commit; knows how many were made."""

    commits = 0
    refuse = 0

    async def apply(self, changes: Sequence[Change]) -> None:
        self.commits += 1
        if self.commits == self.refuse:
            raise StoreError("refused")
        await super().apply(changes)


@pytest.mark.parametrize("refuse", range(1, 6))
async def test_a_commit_that_fails_tells_nothing_and_starts_nothing(autojump_clock: Clock, refuse: int) -> None:
    """REC-5, RUN-1: events are told after the commit that made them true, and Runtimes called after it."""
    whole, stage = Stage(Counting()), Stage(Counting())
    for each in (whole, stage):
        each.store.refuse = 0 if each is whole else refuse  # type: ignore[attr-defined]
        try:
            async with each.serve():
                await each.emit("held", run("R1", 1, session="s"), run("R2", 1, session="s"))
                await each.all_settled()
        except StoreError:
            assert each is stage
    made = whole.store.commits  # type: ignore[attr-defined]
    assert made == 5
    told = [event.name for event in stage.events if event.name != "WorkerStopped"]
    assert told == [event.name for event in whole.events][: len(told)]
    before = {
        1: [],
        2: ["SignalClaimed"],
        3: ["SignalClaimed", "RunQueued", "RunQueued", "RunStarted"],
        4: ["SignalClaimed", "RunQueued", "RunQueued", "RunStarted", "RunEnded", "RunStarted"],
        5: [
            "SignalClaimed",
            "RunQueued",
            "RunQueued",
            "RunStarted",
            "RunEnded",
            "RunStarted",
            "RunEnded",
            "PostStarted",
        ],
    }
    assert told == before[refuse]
    assert len(stage.noted("start")) == told.count("RunStarted")
    assert len(stage.noted("post")) == told.count("PostStarted")
    assert len(stage.noted("handle")) == told.count("SignalClaimed")


async def test_what_an_event_tells_is_stored_when_it_is_told(autojump_clock: Clock) -> None:
    """RUN-1: whoever hears of it finds it in the store."""
    stage, wrong = Stage(), []

    def look(event: Event) -> None:
        tables = stage.store._tables
        stored = {
            SignalClaimed: lambda: tables._signals[event.signal_id].state == "processing",  # type: ignore[attr-defined]
            RunQueued: lambda: event.run_id in tables._runs,  # type: ignore[attr-defined]
            RunStarted: lambda: tables._runs[event.run_id].started_at == event.at,  # type: ignore[attr-defined]
            RunEnded: lambda: tables._runs[event.run_id].state == event.state,  # type: ignore[attr-defined]
            SignalSettled: lambda: tables._signals[event.signal_id].state == event.state,  # type: ignore[attr-defined]
        }.get(type(event))
        if stored is not None and not stored():
            wrong.append(event)

    async with stage.serve() as worker:
        worker.bus.call(look)
        for kind in ("held", "quick"):
            await stage.emit(kind, run("R1", 1, session="s"), run("R2", 1, "fail", session="s"))
            await stage.all_settled()
    assert wrong == []

"""Who reads events: woken in step, given the same bytes, and never waited for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from concorde_trio._sansio.event_log import EVERYTHING, EventFilter
from concorde_trio._sansio.run_tags import RunTags
from concorde_trio.events import Event, HandleFailed, RunStarted, WorkerStopped
from concorde_trio.server import event_feed
from concorde_trio.server.event_feed import PACE, EventFeed
from concorde_trio.signals.event_bus import EventBus

TAG = "the-tag-of-a-run-that-lives"


class Stage:
    """A feed, its bus, and how often a document was masked, which is how often one was written."""

    def __init__(self) -> None:
        self.bus = EventBus()
        self.tags: RunTags[str] = RunTags()
        self.written = 0
        self.feed = EventFeed(self.bus, self.tags.mask, self._mask_json)

    def _mask_json(self, value: Any) -> Any:
        self.written += 1
        return self.tags.mask_json(value)

    def publish(self, count: int = 1, make: Callable[[int], Event] | None = None) -> None:
        """So many events at once."""
        first = self.feed.log.last + 1
        make = make or (lambda number: RunStarted(at=float(number), run_id=f"r{number}", signal_id="s", session="ann"))
        self.bus.publish([make(number) for number in range(first, first + count)])


@attrs.define(eq=False)
class Reader:
    """Reads until told otherwise: ``writes`` are the numbers of the events in each write."""

    stage: Stage
    where: EventFilter = EVERYTHING
    at: int = 0
    writes: list[list[int]] = attrs.field(factory=list)
    times: list[float] = attrs.field(factory=list)
    given: list[bytes] = attrs.field(factory=list)

    async def run(self) -> None:
        """As a stream does."""
        feed = self.stage.feed
        while not (feed.over and self.at >= feed.log.last):
            await feed.wait(self.at, self)
            data, self.at = feed.read(self.at, self.where)
            if data:
                self.given.append(data)
                self.writes.append(numbers(data))
                self.times.append(trio.current_time())


def numbers(data: bytes) -> list[int]:
    """The numbers of the events in a piece of a stream."""
    return [int(line.rpartition(b"-")[2]) for line in data.split(b"\n") if line.startswith(b"id: ")]


def documents(data: bytes) -> list[Any]:
    """The documents of the events in it."""
    return [json.loads(line[6:]) for line in data.split(b"\n") if line.startswith(b"data: ")]


async def test_all_who_read_are_given_the_same_bytes_written_once(autojump_clock: trio.testing.MockClock) -> None:
    """SRV-4: an event is written once, whatever the number of readers."""
    stage = Stage()
    readers = [Reader(stage) for _ in range(50)]
    async with trio.open_nursery() as nursery:
        for reader in readers:
            nursery.start_soon(reader.run)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(20):
            stage.publish(3)
            await trio.sleep(PACE)
        stage.bus.publish([WorkerStopped(at=0.0)])
    assert stage.written == 61
    for reader in readers:
        assert [number for write in reader.writes for number in write] == list(range(1, 62))
        assert all(mine is first for mine, first in zip(reader.given, readers[0].given, strict=True))  # not even a copy


async def test_what_happens_within_a_moment_is_one_write(autojump_clock: trio.testing.MockClock) -> None:
    """SRV-4: the first is told at once, what follows every few milliseconds."""
    stage = Stage()
    reader = Reader(stage)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reader.run)
        await trio.sleep(1)
        for _ in range(100):
            stage.publish()
            await trio.sleep(0.001)
        stage.bus.publish([WorkerStopped(at=0.0)])
    assert reader.writes[0] == [1] and reader.times[0] == pytest.approx(1.0)
    assert len(reader.writes) < 25
    assert [number for write in reader.writes for number in write] == list(range(1, 102))


async def test_a_reader_that_keeps_the_time_for_all_may_leave(autojump_clock: trio.testing.MockClock) -> None:
    """SRV-4: the others are woken nevertheless."""
    stage = Stage()
    stage.feed.show()
    first, second = Reader(stage), Reader(stage)
    async with trio.open_nursery() as nursery:
        leaving = trio.CancelScope()

        async def leave() -> None:
            with leaving:
                await first.run()

        nursery.start_soon(leave)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(second.run)
        await trio.testing.wait_all_tasks_blocked()
        stage.publish()
        await trio.lowlevel.checkpoint()
        leaving.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert second.writes == [[1]]
        await trio.sleep(1)
        stage.publish()
        await trio.testing.wait_all_tasks_blocked()
        assert second.writes == [[1], [2]]
        nursery.cancel_scope.cancel()


async def test_readers_come_and_go_at_any_moment_and_miss_nothing(autojump_clock: trio.testing.MockClock) -> None:
    """SRV-4: cancelled wherever they wait, and begun anew where they were."""
    stage = Stage()

    async def read(number: int, seen: list[int]) -> None:
        at, seen_by = 0, object()
        while at < 200:
            with trio.move_on_after(0.0007 * (1 + number)):
                await stage.feed.wait(at, seen_by)
            data, at = stage.feed.read(at, EVERYTHING)
            seen += numbers(data)

    async with trio.open_nursery() as nursery:
        found: list[list[int]] = [[] for _ in range(20)]
        for number, seen in enumerate(found):
            nursery.start_soon(read, number, seen)
        for _ in range(200):
            stage.publish()
            await trio.sleep(0.0013)
    assert all(seen == list(range(1, 201)) for seen in found)


async def test_a_filter_passes_over_what_was_not_asked_for(autojump_clock: trio.testing.MockClock) -> None:
    """SRV-4: and the reader's place moves on, so that it does not fall behind by what it does not want."""
    stage = Stage()
    stage.publish(9)
    stage.publish(1, lambda number: HandleFailed(at=1.0, signal_id="other", error="no"))
    stage.feed.show()
    assert stage.feed.read(0, EventFilter(signal_id="none")) == (b"", 10)
    data, at = stage.feed.read(0, EventFilter(signal_id="other"))
    assert (numbers(data), at) == ([10], 10)
    assert stage.written == 1


async def test_a_write_has_a_bound_however_much_there_is(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SRV-4: who is far behind is given one piece after another."""
    monkeypatch.setattr(event_feed, "WRITE", 2_000)
    stage = Stage()
    stage.publish(500)
    stage.feed.show()
    at, seen = 0, 0
    while at < 500:
        data, at = stage.feed.read(at, EVERYTHING)
        assert len(data) < 2_500
        seen += len(numbers(data))
    assert seen == 500


async def test_what_nobody_reads_is_kept_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-4: the last ones, not written until somebody asks."""
    monkeypatch.setattr(event_feed, "KEPT", 100)
    stage = Stage()
    stage.publish(10_000)
    stage.feed.show()
    assert stage.written == 0
    assert stage.feed.log.first == 9_901
    assert stage.feed.log.lost(9_899) and not stage.feed.log.lost(9_900)
    data, _ = stage.feed.read(9_900, EVERYTHING)
    assert numbers(data) == list(range(9_901, 10_001))


@pytest.mark.parametrize("tag", [TAG, '"state":"running"', "{}{}{}{}{}{}{}{}"])
async def test_a_tag_is_masked_whenever_it_became_known(tag: str) -> None:
    """TAG-4: before an event was written, and after: it may name what was a text like any other when it happened."""
    stage = Stage()
    stage.publish(3, lambda number: HandleFailed(at=1.0, signal_id="s", error=f"{number}: boo_hoo {tag}"))
    stage.feed.show()
    data, _ = stage.feed.read(0, EVERYTHING)
    assert [each["error"] for each in documents(data)] == [f"{number}: boo_hoo {tag}" for number in (1, 2, 3)]
    stage.tags.claim(tag, "run")
    stage.publish(1, lambda number: HandleFailed(at=1.0, signal_id="s", error=f"{number}: boo_hoo {tag}"))
    stage.feed.show()
    for where in (EVERYTHING, EventFilter(signal_id="s")):
        data, _ = stage.feed.read(0, where)
        assert [each["error"] for each in documents(data)] == [
            f"{number}: boo_hoo [run tag]" for number in (1, 2, 3, 4)
        ]
        assert {each["event"] for each in documents(data)} == {"HandleFailed"}


async def test_an_event_that_is_no_json_is_told_of_all_the_same() -> None:
    """SRV-4: a runtime's own events may hold anything; nobody's stream ends for it."""

    @attrs.frozen(kw_only=True)
    class DoorOpened(Event):
        door: object

    stage = Stage()
    for door in (object(), float("nan"), b"\xff", "\udc80", {"a": {1, 2}}):
        stage.publish(1, lambda number, door=door: DoorOpened(at=1.0, door=door))  # type: ignore[misc]
    stage.publish(1)
    stage.feed.show()
    data, _ = stage.feed.read(0, EVERYTHING)
    found = documents(data)
    assert [each["event"] for each in found] == ["DoorOpened"] * 5 + ["RunStarted"]
    assert found[0] == {"event": "DoorOpened", "unreadable": True}

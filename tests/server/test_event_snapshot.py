"""The snapshot: with the events after it, it is the truth; and it has a bound."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
import trio

from concorde_trio import events
from concorde_trio._sansio.changes import Change
from concorde_trio.records import PostOutcome, Prompt, RunOutcome, RunPrompt, Signal
from concorde_trio.server.event_feed import EventFeed
from concorde_trio.server.event_snapshot import PARTS, Snapshot
from concorde_trio.signals.worker import SignalWorker, open_worker
from concorde_trio.stores.memory import MemoryStore

ALL = frozenset(PARTS)


class SlowStore(MemoryStore):
    """A commit takes its time, so that what was decided is in memory a while before anybody is told of it."""

    async def apply(self, changes: Sequence[Change]) -> None:
        """As a disk would."""
        await trio.sleep(0.001)
        await super().apply(changes)


class Held:
    """Runs last until they are let go."""

    def __init__(self) -> None:
        self.running: list[trio.Event] = []

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        """Wait."""
        over = trio.Event()
        self.running.append(over)
        await over.wait()
        return RunOutcome.ok()


class Posting:
    """Handles a list of prompts, and has a post phase."""

    def handle(self, signal: Signal) -> list[Prompt]:
        """What the payload says."""
        return [Prompt(**one) for one in signal.payload or []]

    async def post(self, signal: Signal, outcome: PostOutcome) -> None:
        """Takes a while."""
        await trio.sleep(0.002)


def plain(signal: Signal) -> list[Prompt]:
    """What the payload says."""
    return [Prompt(**one) for one in signal.payload or []]


@attrs.define
class Picture:
    """What a client makes of a snapshot and of events, by the rules of the documentation."""

    number: int
    signals: set[str]
    runs: dict[str, str]

    @classmethod
    def of(cls, snapshot: Any) -> Picture:
        """The picture that a snapshot shows."""
        runs = {run["id"]: _known(run["state"]) for run in snapshot["runs"]}
        return cls(int(snapshot["id"].split("-")[1]), {each["id"] for each in snapshot["signals"]}, runs)

    def apply(self, event: events.Event) -> None:
        """One event more."""
        match event:
            case events.SignalClaimed():
                self.signals.add(event.signal_id)
            case events.RunQueued():
                self.runs[event.run_id] = "queued"
            case events.RunStarted():
                self.runs[event.run_id] = "running"
            case events.RunEnded(held=True):
                self.runs[event.run_id] = "held"
            case events.RunEnded():
                self.runs.pop(event.run_id, None)
            case events.SignalSettled():
                self.signals.discard(event.signal_id)
                for run_id in [each for each in self.runs if each.startswith(f"{event.signal_id}-")]:
                    del self.runs[run_id]


def _known(state: str) -> str:
    return "queued" if state in ("waiting", "ready") else state


@pytest.mark.parametrize("seed", range(4))
async def test_a_snapshot_and_the_events_after_it_are_the_truth_whenever_it_was_taken(seed: int) -> None:
    """SRV-4: nothing is missing and nothing wrong, though memory is ahead of what was told."""
    chance = random.Random(seed)
    runtime = Held()
    handlers = {"post": Posting(), "plain": plain}
    async with open_worker(SlowStore(), runtime, handlers, settle=_settle, stop_grace=0.1) as worker:
        feed = EventFeed(worker.bus, worker.mask, worker.mask_json)
        pictures: list[Picture] = []
        for _ in range(120):
            match chance.choice(["emit", "emit", "end", "end", "look", "wait"]):
                case "emit":
                    prompts = [
                        {"text": "x", "session": chance.choice("abcde"), "resources": chance.sample("pqr", 1)}
                        for _ in range(chance.randint(0, 3))
                    ]
                    await worker.emit(chance.choice(["post", "plain"]), prompts)
                case "end" if runtime.running:
                    runtime.running.pop(chance.randrange(len(runtime.running))).set()
                case "look":
                    pictures.append(Picture.of(await taken(worker, feed)))
                case _:
                    await trio.sleep(chance.random() * 0.002)
            await trio.lowlevel.checkpoint()
        await quiet(worker, feed)
        truth = Picture.of(await taken(worker, feed))
        assert truth.number == feed.log.last
        assert truth.runs and pictures
        for picture in pictures:
            for entry in feed.log.entries(picture.number, feed.log.last):
                picture.apply(entry.event)
            assert (picture.signals, picture.runs) == (truth.signals, truth.runs)
        worker.stop("cancel")


async def _settle() -> None:
    await trio.lowlevel.checkpoint()


async def taken(worker: SignalWorker, feed: EventFeed, limit: int = 10_000) -> Any:
    """A snapshot."""
    return json.loads(await Snapshot(worker, feed.log).write(ALL, limit))


async def quiet(worker: SignalWorker, feed: EventFeed) -> None:
    """Wait until all that can happen by itself has happened."""
    while True:
        before = feed.log.last
        await trio.sleep(0.05)
        pending = await worker.store.pending(1)
        if feed.log.last == before and not pending:
            return


async def test_it_says_who_waits_for_whom_and_what_is_held() -> None:
    """LCK-7, LCK-4: by ids, with the end of the chain."""
    runtime = Held()
    async with open_worker(MemoryStore(), runtime, {"post": Posting(), "plain": plain}) as worker:
        feed = EventFeed(worker.bus, worker.mask, worker.mask_json)
        first = await worker.emit("plain", [{"text": "x", "session": "ann", "resources": ["car"]}])
        second = await worker.emit("plain", [{"text": "x", "session": "bob", "resources": ["car"], "time_limit": 60}])
        third = await worker.emit("plain", [{"text": "x", "session": "bob"}])
        await quiet(worker, feed)
        found = await taken(worker, feed)
        runs = {run["id"]: run for run in found["runs"]}
        assert [run["id"] for run in found["runs"]] == [f"{first}-1", f"{second}-1", f"{third}-1"]
        assert [run["state"] for run in found["runs"]] == ["running", "waiting", "waiting"]
        assert runs[f"{second}-1"]["waits_for"] == [
            {"space": "resource", "name": "car", "run_id": f"{first}-1", "position": 1}
        ]
        assert runs[f"{third}-1"]["waits_for"][0]["run_id"] == f"{second}-1"
        assert runs[f"{third}-1"]["root"] == f"{first}-1"
        assert runs[f"{second}-1"]["time_limit"] == 60
        assert runs[f"{first}-1"]["waits_for"] == [] and runs[f"{first}-1"]["root"] is None
        assert [(each["id"], each["phase"], each["runs"], each["open"]) for each in found["signals"]] == [
            (each, "running", 1, 1) for each in (first, second, third)
        ]
        locks = {(lock["space"], lock["name"]): lock for lock in found["locks"]}
        assert locks["resource", "car"]["holders"] == [f"{first}-1"]
        assert locks["session", "bob"]["waiting"] == [f"{second}-1", f"{third}-1"]
        worker.stop("cancel")


async def test_what_is_not_claimed_yet_is_listed_apart() -> None:
    """CLM-2: with no event that tells of it, and never twice."""
    runtime = Held()
    async with open_worker(MemoryStore(), runtime, {"plain": plain}, claim_ahead=0) as worker:
        feed = EventFeed(worker.bus, worker.mask, worker.mask_json)
        emitted = [await worker.emit("plain", [{"text": "x", "session": "ann"}]) for _ in range(300)]
        await quiet_claims(worker)
        found = await taken(worker, feed)
        here = [each["id"] for each in found["signals"]]
        waiting = [each["id"] for each in found["pending"]]
        assert here and here == emitted[: len(here)]
        assert waiting == emitted[len(here) : len(here) + 200] and found["more_pending"] is True
        worker.stop("cancel")


async def quiet_claims(worker: SignalWorker) -> None:
    """Wait until no more is claimed."""
    before = -1
    while (now := len(await worker.store.unfinished())) != before or not now:
        before = now
        await trio.sleep(0.02)


async def test_it_has_a_bound_and_says_what_is_left_out() -> None:
    """SRV-4: what runs comes first, however many wait before it."""
    runtime = Held()
    async with open_worker(MemoryStore(), runtime, {"plain": plain}) as worker:
        feed = EventFeed(worker.bus, worker.mask, worker.mask_json)
        await worker.emit("plain", [{"text": "x", "session": "ann"} for _ in range(500)])
        last = await worker.emit("plain", [{"text": "x", "session": "bob"}])
        await quiet(worker, feed)
        found = await taken(worker, feed, limit=10)
        assert len(found["runs"]) == 10 and found["more_runs"] == 491
        assert [run["state"] for run in found["runs"]] == ["running", "running"] + ["waiting"] * 8
        assert f"{last}-1" in [run["id"] for run in found["runs"]]
        (lock,) = (lock for lock in found["locks"] if lock["name"] == "ann")
        assert len(lock["waiting"]) == 20 and lock["more_waiting"] == 479
        assert found["more_signals"] == found["more_sessions"] == found["more_locks"] == 0
        only = json.loads(await Snapshot(worker, feed.log).write(frozenset({"locks"}), 1))
        assert set(only) == {"id", "at", "worker", "locks", "more_locks"}
        worker.stop("cancel")


async def test_before_the_worker_works_there_is_nothing_in_hand() -> None:
    """SRV-7: a server may be asked while it starts."""
    worker = SignalWorker(store := MemoryStore(), Held(), {"plain": plain}, _options())
    feed = EventFeed(worker.bus, worker.mask, worker.mask_json)
    async with store.open():
        found = await taken(worker, feed)
    assert found["worker"]["status"] == "starting" and found["id"].endswith("-0")
    assert found["runs"] == found["signals"] == found["locks"] == found["sessions"] == []


def _options() -> Any:
    from concorde_trio.signals.options import WorkerOptions

    return WorkerOptions()

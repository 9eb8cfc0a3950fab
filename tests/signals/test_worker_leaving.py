"""Leaving ``open_worker``: normally, by an exception, by cancellation, and because the worker itself failed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from concorde_trio._sansio.changes import Change, EndRun, StartRun
from concorde_trio.errors import StoreError, WrongState
from concorde_trio.events import WorkerStopped
from concorde_trio.records import Prompt, RunOutcome, RunPrompt
from concorde_trio.signals.options import WorkerOptions
from concorde_trio.signals.worker import SignalWorker, open_worker
from concorde_trio.stores.memory import MemoryStore
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock


class Breaking(MemoryStore):
    """A store whose ``apply`` fails, or hangs, once ``broken`` says so for a kind of change."""

    broken: type | None = None
    hangs = False

    async def apply(self, changes: Sequence[Change]) -> None:
        if self.broken is not None and any(isinstance(change, self.broken) for change in changes):
            if self.hangs:
                await trio.sleep_forever()
            raise StoreError("the disk is full")
        await super().apply(changes)


async def busy(stage: Stage) -> None:
    await stage.emit("held", run("R1", 50, session="s"), run("R2", 50, session="s"))
    await trio.sleep(1)


@pytest.mark.parametrize(
    "error",
    [ValueError("mine"), KeyboardInterrupt(), StopIteration(), StopAsyncIteration(), ExceptionGroup("g", [OSError()])],
    ids=lambda error: type(error).__name__,
)
async def test_an_exception_in_the_block_arrives_as_it_was_raised(autojump_clock: Clock, error: BaseException) -> None:
    """STP-4: and the stop is a cancel: what ran was cancelled and written down."""
    stage = Stage()
    with pytest.raises(type(error)) as caught:
        async with stage.serve():
            await busy(stage)
            raise error
    assert caught.value is error and trio.current_time() == 1
    assert await stage.states() == {"R1": "cancelled", "R2": "pending"}
    assert stage.worker is not None and (stage.worker.status, stage.worker.last_error) == ("stopped", None)


async def test_a_cancellation_is_a_cancelling_stop(autojump_clock: Clock, some_seed: int) -> None:
    """STP-4: written down although the scope is cancelled; nothing swallows it."""
    stage = Stage()
    with trio.move_on_after(1) as scope:
        async with stage.serve():
            await busy(stage)
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert await stage.states() == {"R1": "cancelled", "R2": "pending"}
    assert stage.worker is not None and (stage.worker.status, stage.worker.last_error) == ("stopped", None)


async def test_a_cancellation_during_the_drain_makes_it_a_cancel(autojump_clock: Clock) -> None:
    """STP-4."""
    stage = Stage()
    with trio.move_on_after(3) as scope:
        async with stage.serve():
            await busy(stage)
    assert scope.cancelled_caught and trio.current_time() == 3
    assert await stage.states() == {"R1": "cancelled", "R2": "pending"}


async def test_a_nursery_in_the_block_changes_none_of_this(autojump_clock: Clock) -> None:
    """STP-4: Trio wraps what comes out of it in groups, cancellations too."""
    stage = Stage()
    with trio.move_on_after(1) as scope:
        async with stage.serve(), trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            nursery.start_soon(trio.sleep_forever)
            await busy(stage)
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert await stage.states() == {"R1": "cancelled", "R2": "pending"}


@pytest.mark.parametrize("nested", [False, True])
async def test_a_store_that_fails_for_good_stops_the_worker_with_its_error(
    autojump_clock: Clock, some_seed: int, nested: bool
) -> None:
    """REC-5, STP-4: the error arrives unwrapped, whatever the block was waiting for; and the worker says so."""
    store = Breaking()
    stage = Stage(store)
    with pytest.raises(StoreError, match="the disk is full"):
        async with stage.serve() as worker:
            await busy(stage)
            store.broken = EndRun
            if nested:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(trio.sleep_forever)
                    await trio.sleep_forever()
            await worker.wait_settled(next(iter(await stage.signals())))
    assert trio.current_time() == 50
    assert (worker.status, worker.last_error) == ("stopped", "StoreError: the disk is full")
    assert isinstance(stage.events[-1], WorkerStopped)
    store.broken = None
    async with stage.serve():
        await stage.all_settled()
    assert await stage.states() == {"R1": "failed", "R2": "done"}


async def test_a_block_that_fails_while_its_worker_does_hides_neither(autojump_clock: Clock) -> None:
    """STP-4: two errors are told together."""
    store = Breaking()
    stage = Stage(store)
    with pytest.RaisesGroup(ValueError, StoreError, flatten_subgroups=True):
        async with stage.serve():
            await busy(stage)
            store.broken = EndRun
            raise ValueError("mine")


async def test_a_store_that_hangs_holds_a_cancelling_stop_up_no_longer_than_its_grace(autojump_clock: Clock) -> None:
    """STP-3: what cannot be written in that time is left to recovery."""
    store = Breaking()
    stage = Stage(store)
    with trio.move_on_after(2):
        async with stage.serve(stop_grace=4):
            await busy(stage)
            store.broken, store.hangs = EndRun, True
            await trio.sleep_forever()
    assert 6 <= trio.current_time() <= 8
    store.broken = None
    async with stage.serve():
        await stage.all_settled()
    assert await stage.states() == {"R1": "failed", "R2": "done"}


async def test_a_drain_that_hangs_becomes_stricter_with_time_all_the_same(autojump_clock: Clock) -> None:
    """STP-4: drain_for and park_for hold although the worker's own task waits for a commit."""
    store = Breaking()
    stage = Stage(store)
    async with stage.serve(stop_grace=4, drain_for=100, park_for=100):
        await busy(stage)
        store.broken, store.hangs = EndRun, True
    assert 205 <= trio.current_time() <= 207


class Hanging(Stage):
    """A Runtime that hangs while it opens, or while it closes."""

    where: str = ""

    @asynccontextmanager
    async def open(self, context: object) -> AsyncIterator[None]:
        if self.where == "open":
            await trio.sleep_forever()
        try:
            yield
        finally:
            if self.where == "close":
                await trio.sleep_forever()


async def test_a_runtime_that_hangs_while_it_opens_can_be_cancelled(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """STP-4: at once, for nothing was begun; and nothing failed that a log would have to say."""
    stage = Hanging()
    stage.where = "open"
    with trio.move_on_after(2) as scope:
        async with stage.serve():
            pass  # pragma: no cover
    assert scope.cancelled_caught and trio.current_time() == 2
    assert "in time" not in caplog.text


async def test_a_runtime_that_hangs_while_it_opens_outlasts_no_cancelling_stop(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """STP-3: as when somebody presses Ctrl-C for the third time; whoever waits for the start goes on."""
    stage = Hanging()
    stage.where = "open"
    worker = SignalWorker(stage.store, stage, stage.handlers(), WorkerOptions(stop_grace=3))
    async with stage.opened() as store, store.own(), trio.open_nursery() as nursery:

        async def start() -> None:
            await nursery.start(worker.run)

        nursery.start_soon(start)
        await trio.sleep(5)
        for mode in ("drain", "park", "cancel"):
            worker.stop(mode)
    assert (worker.status, trio.current_time()) == ("stopped", 8)
    assert "what was to be opened did not open in time" in caplog.text


@pytest.mark.parametrize("how", ["leave", "raise", "cancel", "fail"])
async def test_a_runtime_that_hangs_while_it_closes_holds_nobody_up_for_ever(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    """STP-3: cleanup is bounded, however the worker came to its end."""
    store = Breaking()
    stage = Hanging(store)
    stage.where = "close"
    expected = {"leave": None, "raise": ValueError, "cancel": None, "fail": StoreError}[how]
    with trio.move_on_after(2 if how == "cancel" else 1e9):
        try:
            async with stage.serve(stop_grace=3):
                await stage.emit("free", run("R1", 1))
                store.broken = StartRun if how == "fail" else None
                await trio.sleep(1 if how != "cancel" else 100)
                if how == "raise":
                    raise ValueError("mine")
        except (ValueError, StoreError) as error:
            assert type(error) is expected
        else:
            assert expected is None
    assert trio.current_time() <= 6
    assert "what was to be closed did not close in time" in caplog.text


async def test_a_runtime_that_cannot_open_is_the_error_that_arrives(autojump_clock: Clock) -> None:
    """STP-4: unwrapped; and the queue is free again."""

    class Broken(Stage):
        @asynccontextmanager
        async def open(self, context: object) -> AsyncIterator[None]:
            raise OSError("no such model")
            yield

    stage = Broken()
    for _ in range(2):
        with pytest.raises(OSError, match="no such model"):
            async with stage.serve():
                pass  # pragma: no cover


async def test_a_runtime_that_ignores_cancellation_is_waited_for(autojump_clock: Clock) -> None:
    """STP-3, RUN-6: Trio never leaves a task behind; its run is left to recovery."""
    stage = Stage()
    with trio.move_on_after(1):
        async with stage.serve(stop_grace=3):
            await stage.emit("free", run("R1", 30, "stubborn"))
            await trio.sleep_forever()
    assert trio.current_time() == 30
    assert await stage.states() == {"R1": "running"}


async def test_what_wait_settled_cannot_learn_after_a_failure_is_said(autojump_clock: Clock) -> None:
    """STP-4: a task outside of the block waits for no answer that will never come."""
    store = Breaking()
    stage = Stage(store)
    said: list[str] = []

    async def wait(signal_id: str) -> None:
        assert stage.worker is not None
        try:
            await stage.worker.wait_settled(signal_id)
        except WrongState as error:
            said.append(str(error))

    async with trio.open_nursery() as nursery:
        with pytest.raises(StoreError):
            async with stage.serve():
                await busy(stage)
                nursery.start_soon(wait, next(iter(await stage.signals())))
                store.broken = EndRun
                await trio.sleep_forever()
    assert len(said) == 1 and "the worker stopped while signal" in said[0]


async def test_a_runtime_may_return_in_the_middle_of_a_failure(autojump_clock: Clock) -> None:
    """REC-2: an outcome that could not be written is not believed: the run is failed at the next start."""
    store = Breaking()
    calls: list[str] = []

    class Quick:
        async def run(self, prompt: RunPrompt) -> RunOutcome:
            calls.append(prompt.text)
            store.broken = EndRun
            return RunOutcome.ok()

    handlers = {"a": lambda signal: [Prompt(text="once")]}
    with pytest.raises(StoreError):
        async with open_worker(store, Quick(), handlers) as worker:
            await worker.wait_settled(await worker.emit("a"))
    store.broken = None
    async with open_worker(store, Quick(), handlers) as worker:
        store.broken = None
        await trio.sleep(1)
    async with store.open():
        assert (await store.counts())["runs"]["failed"] == 1
    assert calls == ["once"]

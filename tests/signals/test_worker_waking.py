"""SIG-6, SIG-4: who is woken by what: the worker by signals, and those who wait for a signal by its end."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from concorde_trio.errors import UnknownId, WrongState
from concorde_trio.events import WakeMissed
from concorde_trio.records import SignalState
from concorde_trio.signals.emit import new_signal
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock


class TestWaitSettled:
    """Waiting for a signal to be done or failed."""

    async def test_many_waiters_are_all_told_at_that_instant(self, autojump_clock: Clock) -> None:
        """SIG-4: of the same record."""
        stage, told = Stage(), []
        async with stage.serve() as worker, trio.open_nursery() as nursery:
            signal_id = await stage.emit("held", run("R1", 3), post=1)

            async def wait() -> None:
                told.append((trio.current_time(), await worker.wait_settled(signal_id)))

            for _ in range(50):
                nursery.start_soon(wait)
        assert len(told) == 50 and {record.settled_at for _, record in told} == {4}
        assert not worker._waiters

    async def test_a_signal_that_settled_before_is_given_at_once(self, autojump_clock: Clock) -> None:
        """SIG-4: there is nothing to miss."""
        stage = Stage()
        async with stage.serve() as worker:
            signal_id = await stage.emit("free", run("R1"))
            await trio.sleep(10)
            assert (await worker.wait_settled(signal_id)).settled_at == 1
            assert trio.current_time() == 10

    async def test_an_unknown_id_is_an_error_and_no_wait(self, autojump_clock: Clock) -> None:
        """SIG-4: nobody waits for what does not exist."""
        async with Stage().serve() as worker:
            with pytest.raises(UnknownId, match="no signal 'nope'"):
                await worker.wait_settled("nope")
            assert not worker._waiters

    async def test_a_cancelled_waiter_leaves_the_others_waiting(self, autojump_clock: Clock) -> None:
        """SIG-4: and is forgotten."""
        stage = Stage()
        async with stage.serve() as worker, trio.open_nursery() as nursery:
            signal_id = await stage.emit("free", run("R1", 9))
            nursery.start_soon(worker.wait_settled, signal_id)
            with trio.move_on_after(1) as scope:
                await worker.wait_settled(signal_id)
            assert scope.cancelled_caught
            assert len(worker._waiters[signal_id]) == 1

    async def test_one_that_waits_while_the_worker_drains_gets_its_record(
        self, autojump_clock: Clock, some_seed: int
    ) -> None:
        """STP-1: the last signal settles in the worker's last step; the store is read before it closes."""
        stage, told = Stage(), []
        async with trio.open_nursery() as nursery:

            async def wait(signal_id: str) -> None:
                told.append(await worker.wait_settled(signal_id))

            async with stage.serve() as worker:
                signal_id = await stage.emit("free", run("R1", 3))
                nursery.start_soon(wait, signal_id)
                nursery.start_soon(wait, signal_id)
                await trio.sleep(1)
        assert [record.state for record in told] == [SignalState.DONE] * 2

    async def test_one_that_waits_for_what_was_parked_is_told_that_the_worker_stopped(
        self, autojump_clock: Clock, some_seed: int
    ) -> None:
        """STP-2: instead of waiting for ever."""
        stage = Stage()
        async with trio.open_nursery() as nursery:

            async def wait(signal_id: str) -> None:
                with pytest.raises(WrongState, match="the worker stopped while signal .* was processing"):
                    await worker.wait_settled(signal_id)

            async with stage.serve() as worker:
                await stage.emit("free", run("R1", 3, session="s"))
                signal_id = await stage.emit("free", run("R2", 3, session="s"))
                nursery.start_soon(wait, signal_id)
                await trio.sleep(1)
                worker.stop("park")


class TestSweep:
    """SIG-6: what no notification told of."""

    async def test_a_lost_notification_is_made_good_by_the_sweep_and_told_once(
        self, autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """SIG-6 (Q-29): the wake path is cut; the sweep finds the signal, one warning is logged, the next is at once."""
        stage = Stage()
        async with stage.serve(sweep=5.0) as worker:
            await trio.sleep(1)
            wakes, stage.store._wakes = stage.store._wakes, []
            first = await stage.emit("free", run("R1", 1))
            second = await stage.emit("free", run("R2", 1))
            await worker.wait_settled(second)
            stage.store._wakes = wakes
            await trio.sleep(100)
            third = await stage.emit("free", run("R3", 1))
            await worker.wait_settled(third)
        assert stage.when("start", "R1") == stage.when("start", "R2") == [5]
        assert stage.when("start", "R3") == [106]
        assert first and len(stage.told(WakeMissed)) == 1
        assert [each.message for each in caplog.records if "sweep" in each.message] == [
            "a sweep found 2 signals that no notification had told of"
        ]

    async def test_a_signal_emitted_just_before_the_sweep_was_not_missed(self, autojump_clock: Clock) -> None:
        """SIG-6: no warning for what a notification was about to tell of; one for what is old beside it."""
        stage = Stage()
        async with stage.serve(sweep=5.0):
            wakes, stage.store._wakes = stage.store._wakes, []
            await trio.sleep(4.5)
            await stage.emit("free", run("R1", 1))
            await trio.sleep(1)
            assert stage.noted("start") == ["R1"] and not stage.told(WakeMissed)
            await stage.emit("free", run("R2", 1))
            await trio.sleep(4)
            await stage.emit("free", run("R3", 1))
            await trio.sleep(1)
            stage.store._wakes = wakes
        assert stage.when("start", "R2") == stage.when("start", "R3") == [10]
        assert len(stage.told(WakeMissed)) == 1

    async def test_a_sweep_while_a_long_queue_is_read_reports_nothing_missed(
        self, autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """SIG-6: what the worker was reading, or knew to be left to read, no notification had to tell of."""
        stage = Stage()
        async with stage.opened() as store:
            payloads = [{"runs": [run(f"R{number}", 0)]} for number in range(300)]
            await store.emit([new_signal("quick", each, emitted_at=trio.current_time()) for each in payloads])
        pending = stage.store.pending

        async def slow(limit: int) -> object:
            await trio.sleep(7)
            return await pending(limit)

        monkeypatch.setattr(stage.store, "pending", slow)
        async with stage.serve(sweep=5.0):
            await stage.all_settled()
        assert len(stage.noted("start")) == 300 and not stage.told(WakeMissed)

    async def test_a_spurious_wakeup_does_nothing(self, autojump_clock: Clock) -> None:
        """SIG-6: not even an event."""
        stage = Stage()
        async with stage.serve():
            for _ in range(100):
                stage.store._wake()
                await trio.testing.wait_all_tasks_blocked()
            assert stage.events == []

    async def test_no_signal_is_missed_however_many_come_while_it_is_busy(
        self, autojump_clock: Clock, some_seed: int
    ) -> None:
        """SIG-6: a wakeup while the worker is busy is never lost (there is no sweep here)."""
        stage = Stage()
        async with stage.serve(settle=trio.lowlevel.checkpoint, claim_ahead=None):

            async def produce(number: int) -> None:
                for each in range(12):
                    await stage.emit("quick", run(f"R{number}-{each}", 0.1, session=f"s{each % 7}"))

            async with trio.open_nursery() as nursery:
                for number in range(5):
                    nursery.start_soon(produce, number)
            await stage.all_settled()
        assert len(set(stage.noted("start"))) == 60 == len(stage.noted("start"))

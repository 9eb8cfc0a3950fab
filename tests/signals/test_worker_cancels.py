"""RUN-6 at the worker's door: what an operator can cancel, at each moment of a signal's and a run's life."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio.errors import UnknownId, WrongState
from concorde_trio.events import RunEnded, RunStopping
from concorde_trio.records import Prompt, RequestKind, RunState, Signal, SignalState
from concorde_trio.signals.handlers import SignalHandler
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock
BY_OPERATOR = "cancelled by an operator"


async def ask_twice(call: Any, target: str) -> None:
    """Two operators press the same button."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(call, target)
        nursery.start_soon(call, target)


@pytest.mark.parametrize("kind", ["held", "quick"])
async def test_a_pending_signal_is_failed_and_never_handled(autojump_clock: Clock, some_seed: int, kind: str) -> None:
    """RUN-6: once, however often it is asked; the signals behind it go on."""
    stage = Stage()
    async with stage.serve(claim_ahead=0, settle=trio.lowlevel.checkpoint) as worker:
        await stage.emit("free", run("R1", 5, session="s"), run("R2", 5, session="s"))
        target = await stage.emit(kind, run("R3", 1))
        await stage.emit(kind, run("R4", 1))
        await trio.sleep(1)
        await ask_twice(worker.cancel_signal, target)
        record = await worker.wait_settled(target)
        assert (record.state, record.settled_at) == (SignalState.FAILED, 1)
        assert record.error == f"{BY_OPERATOR} before it was handled"
        await stage.all_settled()
        assert await worker.store.requests() == []
    assert await stage.states() == {"R1": "done", "R2": "done", "R4": "done"}


@pytest.mark.parametrize("repeatable", [False, True])
async def test_a_handle_in_flight_is_cut_off(autojump_clock: Clock, repeatable: bool) -> None:
    """RUN-6, CLM-5: its signal fails, its post runs, and the next handle begins."""
    stage = Stage()
    async with stage.serve() as worker:
        target = await stage.emit("again" if repeatable else "held", run("R1"), handle=50)
        await stage.emit("again", run("R2"))
        await trio.sleep(1)
        await ask_twice(worker.cancel_signal, target)
        record = await worker.wait_settled(target)
        await stage.all_settled()
    assert (record.error, record.settled_at) == (BY_OPERATOR, 1)
    assert stage.outcomes[target].failed
    assert await stage.states() == {"R2": "done"} and stage.when("start", "R2") == [1]


async def test_each_of_a_batch_being_handled_can_be_cancelled(autojump_clock: Clock) -> None:
    """RUN-6: the one in its handle at once, though another of the batch is cancelled in the same instant."""
    stage = Stage()
    async with stage.serve() as worker:
        ids = [await stage.emit("again", run(f"R{number}"), handle=50) for number in range(4)]
        await trio.sleep(1)
        async with trio.open_nursery() as nursery:
            for target in ids[:3]:
                nursery.start_soon(worker.cancel_signal, target)
        await stage.all_settled()
        records = await stage.signals()
    unhandled = f"{BY_OPERATOR} before it was handled"
    assert [records[each].error for each in ids] == [BY_OPERATOR, unhandled, unhandled, None]
    assert stage.noted("post") == [ids[0], ids[3]]  # as for any signal that is cancelled while it is pending
    assert stage.noted("handle") == [ids[0], ids[3]]
    assert stage.when("handle", ids[3]) == [1]


async def test_a_cancel_that_meets_a_signal_settling_in_that_instant_changes_nothing(
    autojump_clock: Clock, some_seed: int
) -> None:
    """RUN-6, REC-5: a signal without runs is claimed, handled and settled in one commit, while the request is read."""
    stage = Stage()

    async def handle(signal: Signal) -> list[Prompt]:
        await trio.sleep(1)
        return []

    handlers = {"a": SignalHandler(handle=handle, repeatable=True)}
    async with stage.serve(handlers=handlers, settle=trio.lowlevel.checkpoint) as worker:
        target = await worker.emit("a")
        await trio.sleep(1)
        await stage.store.request(RequestKind.CANCEL_SIGNAL, target)
        await stage.store.request(RequestKind.CANCEL_SIGNAL, target)
        await stage.all_settled()
        await trio.sleep(1)
        assert await worker.store.requests() == []
        assert worker.status == "running"


async def test_all_runs_of_a_signal_are_cancelled_and_post_is_told(autojump_clock: Clock) -> None:
    """RUN-6: waiting ones at once, running ones when they are over; ended ones stay what they are."""
    stage = Stage()
    async with stage.serve() as worker:
        target = await stage.emit(
            "held",
            run("R1", 1),
            run("R2", 50, session="s"),
            run("R3", 50, session="s"),
            run("R4", 9, "stubborn"),
            post=1,
        )
        await stage.emit("free", run("R5", 1, session="s"))
        await trio.sleep(2)
        await ask_twice(worker.cancel_signal, target)
        record = await worker.wait_settled(target)
        await stage.all_settled()
    assert await stage.states() == {
        "R1": "done", "R2": "cancelled", "R3": "cancelled", "R4": "cancelled", "R5": "done"
    }  # fmt: skip
    assert (record.settled_at, stage.when("start", "R5")) == (10, [10])
    assert [each.state for each in stage.outcomes[target].runs] == ["done", "cancelled", "cancelled", "cancelled"]
    assert record.error == f"3 of 4 runs failed; the first, {target}-2: {BY_OPERATOR}"


async def test_a_post_in_flight_is_cut_off_and_its_locks_are_free(autojump_clock: Clock) -> None:
    """RUN-6, PST-4."""
    stage = Stage()
    async with stage.serve() as worker:
        target = await stage.emit("held", run("R1", 1, session="s"), post=50)
        await stage.emit("free", run("R2", 1, session="s"))
        await trio.sleep(3)
        await ask_twice(worker.cancel_signal, target)
        record = await worker.wait_settled(target)
        await stage.all_settled()
    assert (record.error, record.settled_at) == (f"post failed: {BY_OPERATOR}", 3)
    assert stage.when("start", "R2") == [3]


async def test_a_running_run_is_shown_as_stopping_and_keeps_its_locks_until_it_is_over(autojump_clock: Clock) -> None:
    """RUN-6: a Runtime that ignores its cancellation."""
    stage = Stage()
    async with stage.serve() as worker:
        target = f"{await stage.emit('free', run('R1', 20, 'stubborn', session='s', tag='t' * 16))}-1"
        await stage.emit("free", run("R2", 1, session="s"))
        await trio.sleep(2)
        assert worker.stopping(target) is None
        await worker.cancel_run(target)
        await trio.sleep(3)
        assert worker.stopping(target) == 2  # since when
        assert [each.reason for each in stage.told(RunStopping)] == [BY_OPERATOR]  # type: ignore[attr-defined]
        assert worker.attribute(["t" * 16]) is not None
        assert await stage.states() == {"R1": "running", "R2": "pending"}
        await worker.cancel_run(target)
        await stage.all_settled()
        assert worker.stopping(target) is None
    assert (await stage.runs())["R1"].state is RunState.CANCELLED
    assert stage.when("start", "R2") == [20]
    assert len(stage.told(RunStopping)) == 1


async def test_a_waiting_run_is_cancelled_without_ever_starting(autojump_clock: Clock) -> None:
    """RUN-6: its siblings go on, and the message of its signal says which it was."""
    stage = Stage()
    async with stage.serve() as worker:
        await stage.emit("free", run("R1", 5, session="s"))
        signal_id = await stage.emit("held", run("R2", 5, session="s"), run("R3", 5, session="s"))
        await trio.sleep(1)
        await ask_twice(worker.cancel_run, f"{signal_id}-1")
        record = await worker.wait_settled(signal_id)
    runs = await stage.runs()
    assert (runs["R2"].state, runs["R2"].started_at, runs["R2"].ended_at) == (RunState.CANCELLED, None, 1)
    assert (record.error, stage.when("start", "R3")) == (BY_OPERATOR, [5])
    ended = next(each for each in stage.told(RunEnded) if each.run_id == f"{signal_id}-1")  # type: ignore[attr-defined]
    assert ended.started is False  # type: ignore[attr-defined]


async def test_a_run_that_waits_for_a_place_only_can_be_cancelled(autojump_clock: Clock) -> None:
    """RUN-6, LCK-3: its locks are free at once, and it takes no place."""
    stage = Stage()
    async with stage.serve(max_running=1) as worker:
        await stage.emit("free", run("R1", 5))
        target = await stage.emit("free", run("R2", 5, session="s"))
        await stage.emit("free", run("R3", 1, session="s"))
        await trio.sleep(1)
        why = worker.why(f"{target}-1")
        assert why is not None and (why.run.state, why.edges) == ("ready", ())
        await worker.cancel_run(f"{target}-1")
        await stage.all_settled()
    assert stage.noted("start") == ["R1", "R3"] and stage.when("start", "R3") == [5]


async def test_what_cannot_be_cancelled_is_said_at_once(autojump_clock: Clock) -> None:
    """RUN-6: ended and unknown targets."""
    stage = Stage()
    async with stage.serve() as worker:
        signal_id = await stage.emit("free", run("R1", 1))
        await worker.wait_settled(signal_id)
        for call, target in [(worker.cancel_signal, signal_id), (worker.cancel_run, f"{signal_id}-1")]:
            with pytest.raises(WrongState, match=r"is done already; there is nothing left to cancel"):
                await call(target)
            with pytest.raises(UnknownId):
                await call("nope")


@pytest.mark.parametrize("kind", list(RequestKind))
async def test_a_request_for_nothing_is_finished_quietly(autojump_clock: Clock, kind: RequestKind) -> None:
    """RUN-6: rows of another process, for what ended meanwhile or never was."""
    stage = Stage()
    async with stage.serve() as worker:
        signal_id = await stage.emit("free", run("R1", 1))
        await worker.wait_settled(signal_id)
        for target in ("nope", signal_id, f"{signal_id}-1", "", "'; drop table runs"):
            await worker.store.request(kind, target)
        await trio.sleep(1)
        assert await worker.store.requests() == []
        assert await stage.states() == {"R1": "done"} and worker.status == "running"


async def test_a_request_left_while_no_worker_ran_comes_before_any_start(autojump_clock: Clock) -> None:
    """RUN-6, REC-5: a run that was cancelled while it was parked is never started."""
    stage = Stage()
    async with stage.serve() as worker:
        first = await stage.emit("held", run("R1", 5, session="s"), run("R2", 5, session="s"))
        await trio.sleep(1)
        worker.stop("park")
    async with stage.opened() as store:
        await store.request(RequestKind.CANCEL_RUN, f"{first}-2")
        await store.request(RequestKind.CANCEL_RUN, f"{first}-2")
    async with stage.serve():
        pending = await stage.emit("held", run("R3", 5))
        await stage.store.request(RequestKind.CANCEL_SIGNAL, pending)
        await stage.all_settled()
    assert stage.noted("start") == ["R1"]
    assert stage.noted("post") == [first]


async def test_a_request_during_a_drain_is_never_lost(autojump_clock: Clock, some_seed: int) -> None:
    """SIG-6, RUN-6: although nothing but requests is read then, and one comes while another is carried out."""
    stage = Stage()
    async with stage.serve(settle=trio.lowlevel.checkpoint) as worker:
        ids = [f"{await stage.emit('free', run(f'R{number}', 1000))}-1" for number in range(12)]
        await trio.sleep(1)
        worker.stop("drain")
        await trio.lowlevel.checkpoint()

        async def ask(number: int) -> None:
            for _ in range(number):
                await trio.lowlevel.checkpoint()
            await worker.cancel_run(ids[number])

        async with trio.open_nursery() as nursery:
            for number in range(12):
                nursery.start_soon(ask, number)
    assert trio.current_time() == 1
    assert set((await stage.states()).values()) == {"cancelled"}


async def test_a_request_that_comes_while_requests_are_read_is_read_too(autojump_clock: Clock) -> None:
    """SIG-6, RUN-6: under a stop nothing else would look for it, when what was read wakes nobody again."""
    stage = Stage()
    async with stage.serve() as worker:
        target = f"{await stage.emit('free', run('R1', 1000))}-1"
        await trio.sleep(1)
        worker.stop("drain")
        await trio.sleep(1)
        real = stage.store.requests

        async def requests() -> Any:
            found = await real()
            stage.store.requests = real
            await worker.cancel_run(target)
            return found

        stage.store.requests = requests
        await stage.store.request(RequestKind.CANCEL_RUN, "nobody")
    assert trio.current_time() == 2
    assert await stage.states() == {"R1": "cancelled"}


async def test_a_run_that_ends_in_the_instant_of_its_cancel_keeps_its_outcome(
    autojump_clock: Clock, some_seed: int
) -> None:
    """RUN-6: an outcome returned in the same instant counts."""
    stage = Stage()
    async with stage.serve() as worker:
        signal_id = await stage.emit("free", run("R1", 3))
        await trio.sleep(3)
        try:
            await worker.cancel_run(f"{signal_id}-1")
        except WrongState:
            pass
        assert (await worker.wait_settled(signal_id)).state is SignalState.DONE

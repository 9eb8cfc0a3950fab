"""STP at the worker's door: drain, park, cancel, and how one becomes another."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio.errors import UsageError
from concorde_trio.events import SignalInterrupted, WorkerStopped, WorkerStopping
from concorde_trio.records import RunState, SignalPhase, SignalState
from concorde_trio.signals.views import rebuilt_locks
from tests.signals.stage import Stage, run, settled

Clock = trio.testing.MockClock


async def parked(stage: Stage) -> list[str]:
    """The names of the runs that are stored and were not started."""
    return [name for name, state in (await stage.states()).items() if state == "pending"]


async def fill(stage: Stage) -> list[str]:
    """Signals in every phase at time 1: posting, running with runs waiting behind it, in its handle, and unclaimed."""
    ids = [
        await stage.emit("held", run("posts", 0.5, session="s"), post=4),
        await stage.emit("held", run("runs", 4), run("waits", 4, session="s"), run("goes", 4, session="t"), post=1),
        await stage.emit("held", run("handled", 4), handle=4, post=1),
        await stage.emit("held", run("unclaimed", 4)),
    ]
    await trio.sleep(1)
    return ids


async def test_a_drain_brings_every_claimed_run_to_its_outcome(autojump_clock: Clock) -> None:
    """STP-1: waiting ones too, and posts; what is not claimed stays pending."""
    stage = Stage()
    async with stage.serve() as worker:
        ids = await fill(stage)
        worker.stop()
        assert worker.stop_mode == "drain"
        await worker.stopped.wait()
    records = await stage.signals()
    assert [records[each].state for each in ids] == [SignalState.DONE] * 3 + [SignalState.PENDING]
    assert await stage.states() == dict.fromkeys(["posts", "runs", "waits", "goes", "handled"], "done")
    assert sorted(stage.noted("posted")) == sorted(ids[:3])
    assert worker.locks() == []


async def test_a_park_lets_what_runs_end_and_starts_nothing(autojump_clock: Clock) -> None:
    """STP-2: posts happen; a handle in flight may return, and its runs are stored."""
    stage = Stage()
    async with stage.serve() as worker:
        ids = await fill(stage)
        worker.stop("park")
        await worker.stopped.wait()
        assert trio.current_time() == 4.5
    records = await stage.signals()
    assert [records[each].state for each in ids] == ["done", "processing", "processing", "pending"]
    assert await parked(stage) == ["waits", "handled"]
    async with stage.opened() as store:
        assert rebuilt_locks(await store.unfinished()).locks() == worker.locks() != []
    async with stage.serve():
        await stage.all_settled()
    assert sorted(stage.noted("start")) == ["goes", "handled", "posts", "runs", "unclaimed", "waits"]
    assert sorted(stage.noted("post")) == sorted(ids)
    assert not any(outcome.failed or outcome.interrupted for outcome in stage.outcomes.values())


async def test_a_cancel_ends_what_runs_and_parks_what_waits(autojump_clock: Clock) -> None:
    """STP-3: the handle in flight fails its signal, the post in flight may finish, the one not begun is REC-4's."""
    stage = Stage()
    async with stage.serve() as worker:
        ids = await fill(stage)
        worker.stop("cancel")
        await worker.stopped.wait()
        assert trio.current_time() == 4.5
    records = await stage.signals()
    assert [records[each].state for each in ids] == ["done", "processing", "processing", "pending"]
    assert records[ids[2]].error == "the worker was stopped"
    assert records[ids[2]].interrupted and records[ids[2]].phase is SignalPhase.RUNNING
    assert await stage.states() == {"posts": "done", "runs": "cancelled", "waits": "pending", "goes": "cancelled"}
    assert (await stage.runs())["runs"].error == "the worker was stopped"
    assert [each.signal_id for each in stage.told(SignalInterrupted)] == [ids[2]]  # type: ignore[attr-defined]
    async with stage.opened() as store:
        assert rebuilt_locks(await store.unfinished()).locks() == worker.locks() != []
    async with stage.serve():
        await stage.all_settled()
    assert sorted(stage.noted("start")) == ["goes", "posts", "runs", "unclaimed", "waits"]
    assert sorted(stage.noted("post")) == sorted(ids)
    assert stage.outcomes[ids[2]].interrupted and stage.outcomes[ids[2]].failed
    assert all(settled(record) for record in (await stage.signals()).values())


async def test_a_repeatable_handle_that_a_cancel_cut_is_run_again(autojump_clock: Clock) -> None:
    """STP-3, CLM-6: nothing of it was stored, so nothing has failed."""
    stage = Stage()
    async with stage.serve() as worker:
        ids = [await stage.emit("again", run(f"R{number}"), handle=5) for number in range(3)]
        await trio.sleep(5.5)
        worker.stop("cancel")
    assert [record.state for record in (await stage.signals()).values()] == ["processing", "pending", "pending"]
    async with stage.serve():
        await stage.all_settled()
    assert stage.noted("handle") == [ids[0], ids[1], ids[1], ids[2]]
    assert [record.state for record in (await stage.signals()).values()] == ["failed", "done", "done"]


async def test_each_later_stop_can_only_be_stricter(autojump_clock: Clock) -> None:
    """STP-4: from many tasks, in any order; all share the one stop."""
    stage, ended = Stage(), []
    async with stage.serve() as worker, trio.open_nursery() as nursery:
        await stage.emit("free", run("R1", 100, session="s"), run("R2", 100, session="s"))
        await trio.sleep(1)

        async def ask(mode: str, at: float) -> None:
            await trio.sleep(at)
            worker.stop(mode)
            await worker.stopped.wait()
            ended.append((trio.current_time(), worker.stop_mode))

        for mode, at in [("park", 2), ("drain", 1), ("drain", 3), ("cancel", 4), ("park", 5), ("park", 2)]:
            nursery.start_soon(ask, mode, at)
    assert ended == [(5, "cancel")] * 5 + [(6, "cancel")]
    assert [each.mode for each in stage.told(WorkerStopping)] == ["drain", "park", "cancel"]  # type: ignore[attr-defined]
    assert await parked(stage) == ["R2"]


@pytest.mark.parametrize("first", ["drain", "park"])
async def test_a_stop_becomes_stricter_with_time(autojump_clock: Clock, first: str) -> None:
    """STP-4: a service manager signals once."""
    stage = Stage()
    async with stage.serve(drain_for=10, park_for=20) as worker:
        await stage.emit("free", run("R1", 1000, session="s"), run("R2", 1, session="s"))
        await trio.sleep(1)
        worker.stop(first)
        await trio.sleep(15)
        assert worker.stop_mode == "park"
        await worker.stopped.wait()
        assert trio.current_time() == (31 if first == "drain" else 21)
        assert worker.stop_mode == "cancel"
    assert await stage.states() == {"R1": "cancelled", "R2": "pending"}


async def test_q28_a_drain_with_one_long_run(autojump_clock: Clock) -> None:
    """STP-1, STP-3, STP-4, RUN-6 (Q-28): no new starts; cancel by id works; after the grace the run is cancelled,
    written down, and its post is left to the next start."""
    stage = Stage()
    async with stage.serve(drain_for=5, park_for=0.001, stop_grace=1) as worker:
        long = await stage.emit("held", run("long", 1000))
        other = await stage.emit("held", run("other", 1000))
        await trio.sleep(1)
        worker.stop()
        await stage.emit("held", run("new", 1))
        await trio.sleep(1)
        await worker.cancel_run(f"{other}-1")
        await worker.wait_settled(other)
        assert trio.current_time() == 2
        await worker.stopped.wait()
        assert trio.current_time() == pytest.approx(6.001)
    assert await stage.states() == {"long": "cancelled", "other": "cancelled"}
    async with stage.serve():
        await stage.all_settled()
    assert stage.noted("post")[:2] == [other, long]
    assert (await stage.signals())[long].state is SignalState.FAILED


async def test_stop_grace_bounds_what_a_cancel_waits_for(autojump_clock: Clock) -> None:
    """STP-3: a run that ignores it is shown as stopping, and left to recovery; Trio waits until it is over."""
    stage = Stage()
    async with stage.serve(stop_grace=3) as worker:
        ids = [
            await stage.emit("held", run("R1", 1), post=50),
            await stage.emit("held", run("R2", 20, "stubborn", session="s")),
            await stage.emit("free", run("R3", 1, session="s")),
        ]
        await trio.sleep(2)
        worker.stop("cancel")
        await trio.sleep(2.5)
        assert worker.stopping(f"{ids[1]}-1") == 2 and worker.status == "stopping"
        await worker.stopped.wait()
        assert trio.current_time() == 20
    assert await stage.states() == {"R1": "done", "R2": "running", "R3": "pending"}
    assert (await stage.signals())[ids[0]].phase is SignalPhase.POSTING
    async with stage.serve():
        await stage.all_settled()
    runs, records = await stage.runs(), await stage.signals()
    assert (runs["R2"].state, runs["R2"].error) == (
        RunState.FAILED, "the worker stopped while it ran; it is not run again"
    )  # fmt: skip
    assert "post failed: it was cut off" in (records[ids[0]].error or "")
    assert stage.noted("start") == ["R1", "R2", "R3"] and stage.noted("post") == [ids[0], ids[1]]


async def test_the_status_says_what_is_going_on(autojump_clock: Clock) -> None:
    """STP-4: starting, running, stopping, stopped; and the last event is the worker's own."""
    stage = Stage()
    async with stage.serve() as worker:
        assert (worker.status, worker.stop_mode, worker.last_error) == ("running", None, None)
        await stage.emit("free", run("R1", 9))
        await trio.sleep(1)
        worker.stop()
        await trio.sleep(1)
        assert worker.status == "stopping"
    assert (worker.status, worker.stop_mode, worker.last_error) == ("stopped", "drain", None)
    assert isinstance(stage.events[-1], WorkerStopped)


@pytest.mark.parametrize("mode", ["", "stop", "DRAINING", None, 1])
async def test_a_stop_that_is_none_is_refused(autojump_clock: Clock, mode: Any) -> None:
    """STP-4."""
    async with Stage().serve() as worker:
        with pytest.raises(UsageError, match="a stop is 'drain', 'park' or 'cancel'"):
            worker.stop(mode)
        assert worker.stop_mode is None

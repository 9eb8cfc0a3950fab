"""REC at the worker's door, rule by rule: what a crash has cut, and what the next worker makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from concorde_trio.events import (
    RunEnded,
    RunStarted,
    SignalClaimed,
    SignalInterrupted,
    SignalSettled,
    WorkerRecovered,
)
from concorde_trio.records import PostOutcome, RunState, Signal, SignalState
from concorde_trio.signals.handlers import SignalHandler
from tests.signals.crashing_stores import crash, crashing, script
from tests.signals.stage import Stage, run, settled

Clock = trio.testing.MockClock
CUT = "the worker stopped while it ran; it is not run again"


@pytest.fixture(params=["memory", "sqlite"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    return Stage(crashing(request.param, tmp_path))


async def test_a_run_that_had_started_is_failed_and_never_run_again(autojump_clock: Clock, stage: Stage) -> None:
    """REC-2: it may have had effects; its siblings go on, its signal fails, post is told (REC-4)."""
    script(stage, ("held", run("R1", 5), run("R2", 5, session="s"), run("R3", 5, session="s")))
    await crash(stage)
    async with stage.recover():
        await stage.all_settled()
    runs, (record,) = await stage.runs(), (await stage.signals()).values()
    assert {name: (each.state, each.error) for name, each in runs.items()} == {
        "R1": ("failed", CUT), "R2": ("failed", CUT), "R3": ("done", None)
    }  # fmt: skip
    assert sorted(stage.noted("start")) == ["R1", "R2", "R3"] and len(stage.noted("handle")) == 1
    assert record.error == f"2 of 3 runs failed; the first, {record.id}-1: {CUT}"
    outcome = stage.outcomes[record.id]
    assert (outcome.failed, outcome.interrupted, [each.state for each in outcome.runs]) == (
        True, True, ["failed", "failed", "done"]
    )  # fmt: skip


async def test_what_had_not_started_takes_its_old_place(autojump_clock: Clock, stage: Stage) -> None:
    """REC-3: before what was emitted later, without calling handle again, with all that its prompt said."""
    script(
        stage,
        ("held", run("R1", 5, session="s")),
        ("free", run("R2", 2, session="s", resources=["w"], tag="t" * 16, context={"a": None}, time_limit=50)),
        ("free", run("R3", 2, resources=["w"])),
    )
    await crash(stage)
    before = await stage.runs()
    async with stage.recover(time_limit=1) as worker:
        await stage.emit("free", run("R4", 0.5, session="s"))
        await trio.sleep(0.5)
        attributed = worker.attribute(["t" * 16])
        assert attributed is not None and attributed.context == {"a": None}
        await stage.all_settled()
    after = await stage.runs()
    names = {each.id: name for name, each in after.items()}
    assert [names[each.run_id] for each in stage.told(RunStarted)] == ["R2", "R3", "R4"]  # type: ignore[attr-defined]
    assert stage.when("start", "R4") == stage.when("start", "R3") == [3]
    assert {name: after[name].position for name in before} == {name: before[name].position for name in before}
    assert [each.state for each in after.values()] == ["failed", "done", "done", "done"]
    assert len(stage.noted("handle")) == 4


async def test_locks_held_for_a_post_are_held_again_until_it_is_over(autojump_clock: Clock, stage: Stage) -> None:
    """REC-3, LCK-4: R1 has ended and its signal is not over, so R3 waits on, for R2 and then for post."""
    script(
        stage,
        ("held", run("R1", 1, resources=["w"]), run("R2", 9, session="s"), run("R2b", 3, session="s"), {"post": 4}),
        ("free", run("R3", 1, resources=["w"])),
    )
    await crash(stage, at=2)
    async with stage.recover() as worker:
        await trio.sleep(1)
        names = {each.id: name for name, each in (await stage.runs()).items()}
        (lock,) = [each for each in worker.locks() if each.name == "w"]
        assert [(names[each.run_id], each.state) for each in (*lock.holders, *lock.waiting)] == [
            ("R1", "held"), ("R3", "waiting")
        ]  # fmt: skip
        await stage.all_settled()
    assert stage.when("start", "R2b") == [2]
    assert stage.when("post", next(iter(stage.outcomes))) == [5]
    assert stage.when("start", "R3") == [9]


async def test_a_strict_handle_that_a_crash_cut_fails_its_signal(autojump_clock: Clock, stage: Stage) -> None:
    """CLM-6, REC-4: it is never called again; post runs, interrupted."""
    script(stage, ("held", run("R1", 1), {"handle": 5}), ("held", run("R2", 1), {"handle": 5}))
    await crash(stage)
    async with stage.recover():
        await stage.all_settled()
    first, second = (await stage.signals()).values()
    assert first.error == "handle was cut off when the worker stopped, and is not run again"
    assert second.state is SignalState.DONE and stage.noted("handle") == [first.id, second.id]
    assert stage.outcomes[first.id] == PostOutcome(failed=True, limited=False, interrupted=True)
    assert not stage.outcomes[second.id].interrupted


async def test_a_repeatable_handle_that_a_crash_cut_is_run_again(autojump_clock: Clock, stage: Stage) -> None:
    """CLM-6: nothing of it was stored, and nothing fails."""
    script(stage, ("again", run("R1", 1), {"handle": 5}))
    await crash(stage)
    async with stage.recover():
        await stage.all_settled()
    (record,) = (await stage.signals()).values()
    assert record.state is SignalState.DONE and not record.interrupted
    assert stage.noted("handle") == [record.id] * 2 and stage.noted("start") == ["R1"]


async def test_a_post_that_had_started_is_never_started_again(autojump_clock: Clock, stage: Stage) -> None:
    """REC-4, CLM-6: its signal fails, and what it held is free at once."""
    script(stage, ("held", run("R1", 1, "fail", session="s"), {"post": 50}), ("free", run("R2", 1, session="s")))
    await crash(stage, at=2)
    async with stage.recover():
        await stage.all_settled()
    first, second = (await stage.signals()).values()
    assert stage.noted("post") == [first.id] and first.interrupted
    assert first.error == "R1 failed; post failed: it was cut off when the worker stopped, and is not started again"
    assert second.state is SignalState.DONE and stage.when("start", "R2") == [2]


async def test_recovery_is_told_before_anything_is_claimed(autojump_clock: Clock, stage: Stage) -> None:
    """REC-5: start marks are settled and the table is rebuilt; then all proceeds like any other work."""
    script(
        stage,
        ("held", run("R1", 5), {"post": 1}),
        ("free", run("R2", 5, session="s"), run("R3", 5, session="s")),
        ("held", run("R4", 1), {"handle": 5}),
        ("free", run("R5", 1)),
    )
    await crash(stage)
    async with stage.recover():
        await stage.all_settled()
    told = [event.name for event in stage.events]
    assert told.index("WorkerRecovered") < told.index("SignalClaimed")
    (recovered,) = stage.told(WorkerRecovered)
    assert (recovered.runs_failed, recovered.runs_requeued, recovered.signals) == (2, 1, 3)  # type: ignore[attr-defined]
    assert [each.what for each in stage.told(SignalInterrupted)] == [  # type: ignore[attr-defined]
        "its handle was cut off",
        "a run that had started was cut off",
        "a run that had started was cut off",
    ]
    assert len(stage.told(SignalClaimed)) == 1  # R5's; the dead worker had claimed R4's


async def test_an_empty_queue_is_recovered_too(autojump_clock: Clock, stage: Stage) -> None:
    """REC-5: nothing is settled and nothing invented."""
    async with stage.recover():
        pass
    assert [event.name for event in stage.events] == ["WorkerRecovered", "WorkerStopping", "WorkerStopped"]


async def test_a_tag_of_a_cut_run_is_erased_and_can_be_used_again(autojump_clock: Clock, stage: Stage) -> None:
    """TAG-4, REC-3: it was stored for this; the run that waited with the same tag may have it now."""
    tag = "t" * 16
    script(stage, ("free", run("R1", 5, session="s", tag=tag, context=[tag]), run("R2", 5, session="s", tag=tag)))
    await crash(stage)
    async with stage.opened() as store:
        assert await store.tags() == [tag, tag]
    async with stage.recover() as worker:
        await trio.sleep(1)
        assert worker.attribute([tag]).id.endswith("-2")  # type: ignore[union-attr]
        await stage.all_settled()
    runs = await stage.runs()
    assert (runs["R1"].tag, runs["R1"].context, runs["R2"].state) == (None, ["[run tag]"], RunState.DONE)


async def test_max_running_holds_for_what_was_recovered(autojump_clock: Clock, stage: Stage) -> None:
    """LCK-3, REC-3: and claim_ahead counts it (CLM-2)."""
    script(stage, ("free", *(run(f"R{number}", 5) for number in range(6))), ("free", run("late", 1)))
    await crash(stage, max_running=1, claim_ahead=2)
    async with stage.recover(max_running=2, claim_ahead=2):
        await trio.sleep(1)
        assert await stage.states() == {"R0": "failed", "R1": "running", "R2": "running"} | dict.fromkeys(
            ("R3", "R4", "R5"), "pending"
        )
        await stage.all_settled()
    assert [stage.when("start", name) for name in ("R0", "R1", "R2", "R3", "R4", "R5", "late")] == [
        [0], [1], [1], [6], [6], [11], [11]
    ]  # fmt: skip


async def test_a_crash_is_forgotten_by_those_it_did_not_touch(autojump_clock: Clock, stage: Stage) -> None:
    """REC-2: done signals stay done, pending ones are handled once, ended runs keep their outcome."""
    script(
        stage,
        ("held", run("R1", 0.5, "limited")),
        ("held", run("R2", 0.5), run("R3", 5, session="s"), {"post": 1}),
    )
    await crash(stage)
    async with stage.recover():
        await stage.emit("held", run("R4", 1))
        await stage.all_settled()
    first, second, third = (await stage.signals()).values()
    assert (first.error, first.interrupted, second.interrupted, third.interrupted) == (
        "R1 is over its limit", False, True, False
    )  # fmt: skip
    assert [each.text for each in stage.outcomes[second.id].runs] == ["R2 did it", None]
    assert [each.run_id for each in stage.told(RunEnded) if not each.started] == []  # type: ignore[attr-defined]
    assert len(stage.told(RunStarted)) == 1 and len(stage.told(SignalSettled)) == 2


async def test_worker_after_worker_dies_and_nothing_is_lost_or_repeated(autojump_clock: Clock, stage: Stage) -> None:
    """REC-2, REC-3: one run a life; each is failed once, and the last worker finds the rest."""
    script(stage, ("held", *(run(f"R{number}", 1.5, session="s") for number in range(6)), {"post": 1}))
    await crash(stage)
    for life in range(2, 5):
        stage.script = []  # type: ignore[attr-defined]
        await crash(stage, at=life)
    async with stage.recover():
        await stage.all_settled()
    assert stage.noted("start") == [f"R{number}" for number in range(6)]
    assert list((await stage.states()).values()) == ["failed"] * 4 + ["done"] * 2
    (record,) = (await stage.signals()).values()
    assert len(stage.noted("post")) == 1 and stage.outcomes[record.id].interrupted and settled(record)


async def test_post_of_a_cut_signal_sees_what_a_crash_left_and_can_emit(autojump_clock: Clock, stage: Stage) -> None:
    """REC-4, PST-3: people hear of it by a signal that post emits."""

    async def post(signal: Signal, outcome: PostOutcome) -> None:
        if outcome.interrupted and stage.worker is not None:
            await stage.worker.emit("free", {"runs": [run("apology", 1)], "handle": 0, "post": 0})

    handlers = {**stage.handlers(), "held": SignalHandler(handle=stage.handle, post=post)}
    script(stage, ("held", run("R1", 5)))
    await crash(stage)
    async with stage.recover(handlers=handlers):
        await trio.sleep(1)
        await stage.all_settled()
    assert stage.noted("start") == ["R1", "apology"]

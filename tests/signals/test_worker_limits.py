"""RUN-6 at the worker's door: what bounds a run in time, and what happens in the very instant of the bound."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio.errors import UsageError
from concorde_trio.events import RunStopping
from concorde_trio.records import RunOutcome, RunPrompt, RunState, Usage
from concorde_trio.signals.options import WorkerOptions
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock
LIMIT = "it reached its time limit of 5 s and was stopped"


async def test_a_time_limit_fails_the_run_and_names_itself(autojump_clock: Clock) -> None:
    """RUN-6: of the prompt, or else of the worker; none unless set."""
    stage = Stage()
    async with stage.serve(time_limit=5):
        await stage.emit("free", run("R1", 9), run("R2", 9, time_limit=7), run("R3", 9, time_limit=100), run("R4", 4))
        await stage.all_settled()
    runs = await stage.runs()
    assert [(each.state, each.ended_at) for each in runs.values()] == [
        ("failed", 5), ("failed", 7), ("done", 9), ("done", 4)
    ]  # fmt: skip
    assert runs["R1"].error == LIMIT and "7 s" in (runs["R2"].error or "")
    assert stage.told(RunStopping)[0].reason == LIMIT  # type: ignore[attr-defined]


async def test_a_limit_counts_from_the_start_and_not_from_the_wait(autojump_clock: Clock) -> None:
    """RUN-6: budgets start with the work they bound (and a run parked for a week has not used any)."""
    stage = Stage()
    async with stage.serve():
        await stage.emit("free", run("R1", 50, session="s"), run("R2", 4, session="s", time_limit=5))
        await stage.all_settled()
    assert (await stage.states())["R2"] == "done"


async def test_an_outcome_in_the_instant_of_the_limit_counts(autojump_clock: Clock, some_seed: int) -> None:
    """RUN-6: for one run, and for many that end and are limited together."""
    stage = Stage()
    async with stage.serve():
        await stage.emit("free", *(run(f"R{number}", 5, time_limit=5) for number in range(10)))
        await stage.all_settled()
    assert set((await stage.states()).values()) == {"done"}


async def test_an_outcome_that_answers_the_stop_in_its_own_instant_counts(autojump_clock: Clock) -> None:
    """RUN-6: a Runtime that has its outcome when it is stopped may give it."""
    stage = Stage()

    async def catches(prompt: RunPrompt) -> RunOutcome:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            if "R2" in prompt.text:
                raise
            return RunOutcome.ok("ready")

    stage.run = catches  # type: ignore[method-assign]
    async with stage.serve():
        await stage.emit("free", run("R1", time_limit=5), run("R2", time_limit=5))
        await stage.all_settled()
    runs = await stage.runs()
    assert (runs["R1"].state, runs["R1"].text) == (RunState.DONE, "ready")
    assert (runs["R2"].state, runs["R2"].error) == (RunState.FAILED, LIMIT)


async def test_a_late_outcome_of_a_stopped_run_is_kept_beside_the_limit(autojump_clock: Clock) -> None:
    """RUN-6, RUN-5: text and usage are not lost; the limit decides."""
    stage = Stage()

    async def late(prompt: RunPrompt) -> RunOutcome:
        try:
            await trio.sleep(50)
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
        return RunOutcome.ok("after all", usage=Usage(input_tokens=1))

    stage.run = late  # type: ignore[method-assign]
    async with stage.serve():
        await stage.emit("free", run("R1", time_limit=5))
        await stage.all_settled()
    stored = (await stage.runs())["R1"]
    assert (stored.state, stored.error, stored.text, stored.usage, stored.ended_at) == (
        RunState.FAILED, LIMIT, "after all", Usage(input_tokens=1), 6
    )  # fmt: skip


async def test_what_a_stopped_runtime_raises_is_told_beside_the_limit(autojump_clock: Clock) -> None:
    """RUN-6, RUN-3: also in a group with the cancellation itself."""
    stage = Stage()

    async def messy(prompt: RunPrompt) -> RunOutcome:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise OSError("could not tidy up")

    stage.run = messy  # type: ignore[method-assign]
    async with stage.serve():
        await stage.emit("free", run("R1", time_limit=5))
        await stage.all_settled()
    assert (await stage.runs())["R1"].error == f"{LIMIT} (and while it was stopped: OSError: could not tidy up)"


async def test_a_run_that_ignores_its_limit_holds_its_locks_until_it_is_over(autojump_clock: Clock) -> None:
    """RUN-6: it failed at its limit, and the next starts when it has really ended."""
    stage = Stage()
    async with stage.serve() as worker:
        first = await stage.emit("free", run("R1", 30, "stubborn", session="s", time_limit=5))
        await stage.emit("free", run("R2", 1, session="s"))
        await trio.sleep(10)
        assert worker.stopping(f"{first}-1") == 5
        await stage.all_settled()
    assert await stage.states() == {"R1": "failed", "R2": "done"}
    assert stage.when("start", "R2") == [30]


async def test_the_first_reason_counts(autojump_clock: Clock) -> None:
    """RUN-6: a limit that comes after an operator's cancel changes nothing."""
    stage = Stage()
    async with stage.serve() as worker:
        first = await stage.emit("free", run("R1", 30, "stubborn", time_limit=5))
        await trio.sleep(4)
        await worker.cancel_run(f"{first}-1")
        await stage.all_settled()
    assert (await stage.runs())["R1"].state is RunState.CANCELLED


async def test_timers_of_runs_that_have_ended_are_not_kept(autojump_clock: Clock) -> None:
    """LCK-6: what is kept grows with what runs, not with what ran."""
    stage = Stage()
    async with stage.serve(time_limit=1_000_000) as worker:
        for number in range(400):
            await stage.emit("quick", run(f"R{number}", 0.001, session="s"))
        await stage.all_settled()
        assert worker._driver is not None
        assert len(worker._driver._timers) < 80
        assert worker._driver.stoppers == worker._driver._tasks == {}


SECONDS = ["time_limit", "handle_time_limit", "post_time_limit", "stop_grace", "drain_for", "park_for", "sweep"]


@pytest.mark.parametrize("option", [*SECONDS, "prune_after", "prune_every"])
@pytest.mark.parametrize("value", [0, -1, "5", True, float("nan"), float("inf")])
def test_an_option_that_is_no_time_is_refused(option: str, value: Any) -> None:
    """RUN-6: where it is written, with its name."""
    with pytest.raises(UsageError, match=f"{option} must be seconds above 0"):
        WorkerOptions(**{option: value})


@pytest.mark.parametrize("option", ["stop_grace", "prune_every"])
def test_what_must_be_bounded_cannot_be_none(option: str) -> None:
    """STP-3, STP-5."""
    with pytest.raises(UsageError, match=f"{option} must be seconds above 0, not None"):
        WorkerOptions(**{option: None})


def test_a_schedule_may_be_a_day_late_at_most() -> None:
    """SCH-3: every instant in the grace is looked at, so a month of minutes would hold everybody up."""
    assert WorkerOptions(schedule_grace=86_400).schedule_grace == 86_400
    with pytest.raises(UsageError, match="schedule_grace must be at most 86,400 seconds, not 86401"):
        WorkerOptions(schedule_grace=86_401)

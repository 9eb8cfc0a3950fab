"""REC-4: a worker that starts again with other handlers than the one that died."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio.testing

from concorde_trio.events import HandlerGone
from tests.signals.crashing_stores import crash, crashing, script
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock
CUT = "the worker stopped while it ran; it is not run again"


@pytest.fixture(params=["memory", "sqlite"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    return Stage(crashing(request.param, tmp_path))


async def test_a_recovered_signal_whose_handler_is_gone(autojump_clock: Clock, stage: Stage) -> None:
    """REC-4: an event, and no post; its unstarted runs are run all the same, and what it held is free."""
    script(
        stage,
        ("held", run("R1", 1, resources=["w"]), run("R2", 9, session="s"), run("R3", 1, session="s"), {"post": 4}),
        ("free", run("R4", 1, resources=["w"])),
    )
    await crash(stage, at=2)
    handlers = {kind: handler for kind, handler in stage.handlers().items() if kind != "held"}
    async with stage.recover(handlers=handlers):
        await stage.all_settled()
    first, _ = (await stage.signals()).values()
    assert [(each.signal_id, each.kind) for each in stage.told(HandlerGone)] == [(first.id, "held")]  # type: ignore[attr-defined]
    assert stage.noted("post") == [] and first.error == CUT
    assert stage.when("start", "R3") == stage.when("start", "R4") == [2]


async def test_a_handler_that_has_got_a_post_phase_since_runs_it(autojump_clock: Clock, stage: Stage) -> None:
    """REC-4, LCK-4: what had been released stays free; what ends from now on is held for it."""
    script(
        stage,
        ("free", run("R1", 1, session="a"), run("R2", 9, session="s"), run("R3", 1, session="s"), {"post": 4}),
        ("quick", run("R4", 1, session="a"), run("R5", 1, session="s")),
    )
    await crash(stage, at=2)
    handlers = {**stage.handlers(), "free": stage.handlers()["held"]}
    async with stage.recover(handlers=handlers):
        await stage.all_settled()
    assert stage.when("start", "R4") == [1]
    assert stage.when("start", "R3") == [2] and stage.when("start", "R5") == [7]
    assert len(stage.noted("post")) == 1


async def test_a_handler_that_became_repeatable_does_not_repeat_what_was_strict(
    autojump_clock: Clock, stage: Stage
) -> None:
    """CLM-6: its handle was marked as started, so it may have had effects."""
    script(stage, ("held", run("R1", 1), {"handle": 5}))
    await crash(stage)
    handlers = {**stage.handlers(), "held": stage.handlers()["again"]}
    async with stage.recover(handlers=handlers):
        await stage.all_settled()
    assert len(stage.noted("handle")) == 1 and len(stage.noted("post")) == 1

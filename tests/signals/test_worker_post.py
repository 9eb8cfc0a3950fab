"""PST at the worker's door: the phase after the runs, once, and what it is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio.errors import UnknownId, WrongState
from concorde_trio.events import PostEnded, PostStarted, RunEnded
from concorde_trio.records import PostOutcome, Prompt, RunOutcome, RunState, Signal, SignalPhase, SignalState
from concorde_trio.signals.handlers import SignalHandler
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock


async def test_q30_post_is_called_once_after_the_last_of_many_ends(autojump_clock: Clock, some_seed: int) -> None:
    """PST-1 (Q-30): 50 runs that end in the same instant."""
    stage = Stage()
    async with stage.serve(settle=trio.lowlevel.checkpoint):
        signal_id = await stage.emit("held", *(run(f"R{number}", 3) for number in range(50)))
        await stage.all_settled()
    assert stage.noted("post") == [signal_id]
    told = stage.told(RunEnded, PostStarted)
    assert [type(event) for event in told] == [RunEnded] * 50 + [PostStarted]
    assert len(stage.outcomes[signal_id].runs) == 50


async def test_post_is_told_of_each_run_in_prompt_order(autojump_clock: Clock) -> None:
    """PST-1: id, session, state, error, text, usage; whatever order they ended in."""
    stage = Stage()
    async with stage.serve() as worker:
        signal_id = await stage.emit(
            "held", run("R1", 3, session="s"), run("R2", 1, "limited"), run("R3", 2, "raise"), run("R4", 9, session="t")
        )
        await trio.sleep(2.5)
        await worker.cancel_run(f"{signal_id}-4")
        await stage.all_settled()
    outcome = stage.outcomes[signal_id]
    assert (outcome.failed, outcome.limited, outcome.interrupted) == (True, True, False)
    assert [(each.id, each.session, each.state, each.error, each.text) for each in outcome.runs] == [
        (f"{signal_id}-1", "s", "done", None, "R1 did it"),
        (f"{signal_id}-2", f"run_{signal_id}-2", "limited", "R2 is over its limit", None),
        (f"{signal_id}-3", f"run_{signal_id}-3", "failed", "ValueError: R3 raised", None),
        (f"{signal_id}-4", "t", "cancelled", "cancelled by an operator", None),
    ]


@pytest.mark.parametrize(
    ("endings", "failed", "limited"),
    [(["ok", "ok"], False, False), (["ok", "limited"], True, True), (["fail", "ok"], True, False)],
)
async def test_limited_implies_failed(autojump_clock: Clock, endings: list[str], failed: bool, limited: bool) -> None:
    """PST-2: a handler that only looks at failed never takes a cut-off run for a success."""
    stage = Stage()
    async with stage.serve() as worker:
        signal_id = await stage.emit("held", *(run(f"R-{each}", 1, each) for each in endings))
        record = await worker.wait_settled(signal_id)
    assert (stage.outcomes[signal_id].failed, stage.outcomes[signal_id].limited) == (failed, limited)
    assert (record.state is SignalState.FAILED) == failed


async def test_post_sees_its_own_signal_as_processing(autojump_clock: Clock) -> None:
    """PST-3: and its runs as ended, with their text."""
    stage, seen = Stage(), []

    async def post(signal: Signal, outcome: PostOutcome) -> None:
        record = await stage.store.signal(signal.id)
        assert record is not None
        seen.append((record.state, record.phase, list((await stage.states()).values()), signal.payload))

    handlers = {"a": SignalHandler(handle=lambda signal: [Prompt(text='["R1", 1, "ok"]')], post=post)}
    async with stage.serve(handlers=handlers) as worker:
        await worker.wait_settled(await worker.emit("a", [1, None]))
    assert seen == [(SignalState.PROCESSING, SignalPhase.POSTING, ["done"], [1, None])]


@pytest.mark.parametrize("returned", [[Prompt(text="x")], Prompt(text="x"), (Prompt(text="x"),)])
async def test_a_post_that_returns_prompts_fails_its_signal(autojump_clock: Clock, returned: Any) -> None:
    """PST-3: it makes none."""
    handlers = {"a": SignalHandler(handle=lambda signal: None, post=lambda signal, outcome: returned)}
    async with Stage().serve(handlers=handlers) as worker:
        record = await worker.wait_settled(await worker.emit("a"))
    assert "post makes none, so emit a signal instead" in (record.error or "")


@pytest.mark.parametrize("sync", [True, False])
async def test_a_post_that_raises_fails_its_signal_and_releases(autojump_clock: Clock, sync: bool) -> None:
    """PST-3, LCK-4: what it held is free in that instant."""
    stage = Stage()

    def plain(signal: Signal, outcome: PostOutcome) -> None:
        raise ExceptionGroup("g", [ValueError("no mail")])

    async def later(signal: Signal, outcome: PostOutcome) -> None:
        await trio.sleep(2)
        plain(signal, outcome)

    handlers = {"held": SignalHandler(handle=stage.handle, post=plain if sync else later)}
    async with stage.serve(handlers=handlers) as worker:
        first = await stage.emit("held", run("R1", 1, session="s"))
        await stage.emit("held", run("R2", 1, session="s"))
        record = await worker.wait_settled(first)
        await stage.all_settled()
    assert record.error == "post failed: ValueError: no mail"
    assert stage.when("start", "R2") == [1 if sync else 3]


async def test_a_post_that_raises_what_is_no_exception_fails_its_signal_alone(autojump_clock: Clock) -> None:
    """PST-3, RUN-3."""
    stage = Stage()

    async def post(signal: Signal, outcome: PostOutcome) -> None:
        raise asyncio.CancelledError("odd")

    async with stage.serve(handlers={"a": SignalHandler(handle=lambda signal: None, post=post)}) as worker:
        record = await worker.wait_settled(await worker.emit("a"))
        assert worker.status == "running"
    assert record.error == "post failed: CancelledError: odd"


async def test_post_time_limit_bounds_what_holds_locks(autojump_clock: Clock) -> None:
    """PST-4: 300 s unless set, None for none."""
    for limit, ends in [({}, 301), ({"post_time_limit": 5}, 6), ({"post_time_limit": None}, 5001)]:
        stage, began = Stage(), trio.current_time()
        async with stage.serve(**limit) as worker:
            signal_id = await stage.emit("held", run("R1", 1, session="s"), post=5000)
            await stage.emit("free", run("R2", 1, session="s"))
            record = await worker.wait_settled(signal_id)
            await stage.all_settled()
        assert stage.when("start", "R2") == [began + ends]
        assert (record.error is None) == (ends == 5001)
        assert record.error is None or record.error.startswith("post failed: it took longer than post_time_limit, ")


async def test_posts_of_several_signals_run_beside_each_other(autojump_clock: Clock) -> None:
    """CLM-1, PST-1: and beside handles and runs."""
    stage = Stage()
    async with stage.serve():
        for number in range(5):
            await stage.emit("held", run(f"R{number}", 1), post=10)
        await stage.all_settled()
    assert trio.current_time() == 11
    assert len(stage.told(PostEnded)) == 5


async def test_held_runs_never_block_their_own_signal(autojump_clock: Clock) -> None:
    """LCK-4: R2 shares everything with R1, which has ended and holds; the next signal waits for post."""
    stage = Stage()
    async with stage.serve():
        await stage.emit(
            "held", run("R1", 2, session="s", resources=["w"]), run("R2", 2, session="s", resources=["w"]), post=3
        )
        await stage.emit("held", run("R3", 1, resources=["w"]))
        await stage.all_settled()
    assert [stage.when("start", each) for each in ("R1", "R2", "R3")] == [[0], [2], [7]]


class TestRetry:
    """PST-5."""

    async def test_it_emits_the_same_again_linked_to_the_old_one(self, autojump_clock: Clock) -> None:
        """PST-5: kind and payload; the old one stays as it is, and it can be retried more than once."""
        stage = Stage()
        async with stage.serve() as worker:
            old = await stage.emit("held", run("R1", 1, "fail"))
            before = await worker.wait_settled(old)
            again = [await worker.retry(old), await worker.retry(old)]
            await stage.all_settled()
            records = await stage.signals()
        assert records[old] == before
        assert [(records[each].kind, records[each].payload) for each in again] == [("held", before.payload)] * 2
        assert [records[each].retry_of for each in again] == [old, old]

    async def test_what_is_not_settled_cannot_be_retried(self, autojump_clock: Clock) -> None:
        """PST-5: it would run twice at once; and what does not exist neither."""
        stage = Stage()
        async with stage.serve() as worker:
            signal_id = await stage.emit("held", run("R1"))
            with pytest.raises(WrongState, match="is pending; only a signal that is done or failed can be retried"):
                await worker.retry(signal_id)
            with pytest.raises(UnknownId):
                await worker.retry("nope")
            await stage.all_settled()

    async def test_a_key_is_not_taken_along(self, autojump_clock: Clock) -> None:
        """PST-5, SIG-7: the retry would be swallowed by the first one's key."""
        stage = Stage()
        async with stage.serve() as worker:
            old = await worker.emit("free", {"runs": [], "handle": 0, "post": 0}, key="k")
            await worker.wait_settled(old)
            assert await worker.retry(old) != old
            await stage.all_settled()


async def test_a_runtime_outcome_of_cancelled_counts_as_cancelled(autojump_clock: Clock) -> None:
    """RUN-2: it fails its signal."""
    stage = Stage()

    async def cancelled(prompt: object) -> RunOutcome:
        return RunOutcome(state=RunState.CANCELLED)

    stage.run = cancelled  # type: ignore[method-assign]
    async with stage.serve() as worker:
        record = await worker.wait_settled(await stage.emit("held", run("R1")))
    assert record.error == "the run is cancelled, and its runtime gave no reason"
    assert next(iter(stage.outcomes.values())).failed

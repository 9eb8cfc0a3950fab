"""CLM-2 at the worker's door: the next signal is claimed while at most ``claim_ahead`` runs wait."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from concorde_trio.errors import UsageError
from concorde_trio.events import RunQueued, RunStarted, SignalClaimed
from concorde_trio.records import SignalState
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock
KINDS = ["held", "free", "again", "quick"]


def most_waiting_at_a_claim(stage: Stage) -> int:
    """How many runs waited, at most, when a signal was claimed: read off the events."""
    waiting, most = 0, 0
    for event in stage.events:
        if isinstance(event, SignalClaimed):
            most = max(most, waiting)
        waiting += isinstance(event, RunQueued) - isinstance(event, RunStarted)
    return most


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("claim_ahead", [0, 1, 2, 5])
async def test_no_signal_is_claimed_while_more_runs_wait(autojump_clock: Clock, kind: str, claim_ahead: int) -> None:
    """CLM-2: exactly, with handlers whose signals are claimed in batches too."""
    stage = Stage()
    async with stage.serve(claim_ahead=claim_ahead):
        for number in range(12):
            await stage.emit(kind, run(f"R{number}", 1, session="one"))
        await trio.sleep(0.5)
        # One runs; the others were claimed until more than claim_ahead of them waited.
        assert len(await stage.states()) == 1 + claim_ahead + 1
        await stage.all_settled()
    assert most_waiting_at_a_claim(stage) == claim_ahead
    assert stage.noted("start") == [f"R{number}" for number in range(12)]


@pytest.mark.parametrize("kind", KINDS)
async def test_one_signal_may_go_beyond_it_with_all_its_runs(autojump_clock: Clock, kind: str) -> None:
    """CLM-2: it is asked before a claim; what one signal makes is queued whole."""
    stage = Stage()
    async with stage.serve(claim_ahead=2):
        await stage.emit(kind, *(run(f"R{number}", 1, session="one") for number in range(9)))
        await stage.emit(kind, run("last", 1))
        await trio.sleep(5.5)
        assert "last" not in await stage.states()
        await trio.sleep(2)
        assert stage.when("start", "last") == [6]


@pytest.mark.parametrize("kind", KINDS)
async def test_runs_that_may_start_at_once_hold_no_claim_up(autojump_clock: Clock, kind: str) -> None:
    """CLM-2: with 0 every queued run must have started first, and these have."""
    stage = Stage()
    async with stage.serve(claim_ahead=0):
        for number in range(30):
            await stage.emit(kind, run(f"R{number}", 100))
        await trio.sleep(1)
        assert len(stage.noted("start")) == 30
        assert {at for at, what, _ in stage.log if what == "start"} == {0}
        await stage.all_settled()


@pytest.mark.parametrize("kind", KINDS)
async def test_no_bound_claims_everything(autojump_clock: Clock, kind: str) -> None:
    """CLM-2: None."""
    stage = Stage()
    async with stage.serve(claim_ahead=None) as worker:
        for number in range(400):
            await stage.emit(kind, run(f"R{number}", 1, session="one"))
        await trio.sleep(0.5)
        assert (await worker.store.counts())["runs"]["pending"] == 399
        worker.stop("park")
    assert len(stage.told(SignalClaimed)) == 400


async def test_runs_that_wait_for_a_place_count_as_waiting(autojump_clock: Clock) -> None:
    """CLM-2, LCK-3: max_running holds claims up too."""
    stage = Stage()
    async with stage.serve(claim_ahead=1, max_running=2):
        for number in range(8):
            await stage.emit("quick", run(f"R{number}", 1))
        await trio.sleep(0.5)
        assert await stage.states() == {"R0": "running", "R1": "running", "R2": "pending", "R3": "pending"}
        await stage.all_settled()
    assert most_waiting_at_a_claim(stage) == 1


async def test_batches_and_strict_signals_keep_their_order(autojump_clock: Clock, some_seed: int) -> None:
    """CLM-1, CLM-6: whichever kinds follow each other, seq order decides; an unknown kind fails in between."""
    stage = Stage()
    kinds = ["quick", "quick", "held", "quick", "nobody", "again", "free", "quick", "again", "held"] * 3
    async with stage.serve(settle=trio.lowlevel.checkpoint):
        for number, kind in enumerate(kinds):
            await stage.emit(kind, run(f"R{number}", 0.1, session="one"))
        await stage.all_settled()
        records = list((await stage.signals()).values())
    assert stage.noted("start") == [f"R{number}" for number, kind in enumerate(kinds) if kind != "nobody"]
    assert [each.signal_id for each in stage.told(SignalClaimed)] == [record.id for record in records]  # type: ignore[attr-defined]
    assert [record.state is SignalState.FAILED for record in records] == [kind == "nobody" for kind in kinds]


async def test_a_signal_that_becomes_visible_late_takes_its_place_among_the_unclaimed(autojump_clock: Clock) -> None:
    """SIG-3: where writers can commit out of seq order; here a store that hides one for a while."""
    stage, hidden = Stage(), set()
    real = stage.store.pending

    async def pending(limit: int) -> list:
        return [record for record in await real(limit + len(hidden)) if record.id not in hidden][:limit]

    stage.store.pending = pending  # type: ignore[method-assign]
    async with stage.serve(claim_ahead=0):
        await stage.emit("quick", run("R0", 5, session="one"), run("R1", 5, session="one"))
        hidden.add(await stage.emit("quick", run("late", 1, session="one")))
        for number in range(2, 5):
            await stage.emit("quick", run(f"R{number}", 1, session="one"))
        await trio.sleep(1)
        hidden.clear()
        stage.store._wake()
        await trio.sleep(1)
        await stage.all_settled()
    assert stage.noted("start") == ["R0", "R1", "late", "R2", "R3", "R4"]


@pytest.mark.parametrize("value", [-1, 1.5, "2", True])
async def test_a_bound_that_is_none_is_refused_where_it_is_written(autojump_clock: Clock, value: object) -> None:
    """CLM-2: and so is an option that does not exist."""
    with pytest.raises(UsageError, match="claim_ahead must be a whole number of at least 0, or None for no bound"):
        async with Stage().serve(claim_ahead=value):
            pass  # pragma: no cover
    with pytest.raises(UsageError, match="no such option: claim_a_head; there are: capacity, claim_ahead, "):
        async with Stage().serve(claim_a_head=3):
            pass  # pragma: no cover

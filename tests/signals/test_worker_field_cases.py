"""What went wrong for people who ran keyed and ordered jobs, under the numbers of those cases (Q)."""

from __future__ import annotations

import random
from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio._sansio.changes import EndRun, SettleSignal, StartRun
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock
KINDS = ["held", "free", "again", "quick"]


async def test_q02_runs_emitted_in_one_transaction_hold_the_order_of_their_seq(autojump_clock: Clock) -> None:
    """LCK-2, LCK-5, SIG-3 (Q-02): 100 runs of one instant, each with 3 of 5 resources; no time decides anything."""
    draw, stage = random.Random(2), Stage()
    async with stage.serve(wall_clock=lambda: 1_000.0) as worker:
        async with worker.store.transaction() as tx:
            for number in range(100):
                resources = draw.sample("vwxyz", 3)
                payload = {"runs": [run(f"R{number}", 0.01, resources=resources)], "handle": 0, "post": 0}
                await worker.emit("quick", payload, tx=tx)
        await stage.all_settled()
        runs = await stage.runs()
    assert trio.current_time() < 5
    for resource in "vwxyz":
        wanted = [name for name, each in runs.items() if resource in each.resources]
        assert [name for name in stage.noted("start") if name in wanted] == wanted
        assert len(wanted) > 40


async def test_q05_a_retry_is_a_new_emission_at_the_tail(autojump_clock: Clock) -> None:
    """PST-5 (Q-05): A, B, C, then A again; linked to the first."""
    stage = Stage()
    async with stage.serve() as worker:
        first = await stage.emit("free", run("A", 1, "fail", session="s"))
        await stage.emit("free", run("B", 5, session="s"))
        await stage.emit("free", run("C", 1, session="s"))
        await worker.wait_settled(first)
        again = await worker.retry(first)
        record = await worker.wait_settled(again)
    assert stage.noted("start") == ["A", "B", "C", "A"]
    assert (record.retry_of, record.seq) == (first, 4)


async def test_q06_prompts_of_one_session_run_in_the_handlers_order(autojump_clock: Clock) -> None:
    """LCK-2 (Q-06): 20 of them, one after the other."""
    stage = Stage()
    async with stage.serve():
        await stage.emit("held", *(run(f"R{number}", 1, session="one") for number in range(20)))
        await stage.all_settled()
    assert stage.noted("start") == stage.noted("end") == [f"R{number}" for number in range(20)]


async def test_q07_no_run_swaps_while_the_clocks_stand_still(autojump_clock: Clock) -> None:
    """LCK-5, SIG-3 (Q-07): 200 emits to one session; wall clock and Trio's clock frozen, and then going backwards."""
    stage, ticks = Stage(), iter(range(10**6, 0, -1))
    async with stage.serve(wall_clock=lambda: float(next(ticks)), settle=trio.lowlevel.checkpoint):
        for number in range(200):
            await stage.emit("quick", run(f"R{number}", 0, session="one"))
        await stage.all_settled()
    assert trio.current_time() == 0
    assert stage.noted("start") == [f"R{number}" for number in range(200)]


async def test_q09_an_end_starts_the_next_run_itself(autojump_clock: Clock) -> None:
    """LCK-2, RUN-1 (Q-09): event driven: no time passes between an end and the next start, and one commit has both."""
    stage, commits = Stage(), []
    real = stage.store.apply

    async def apply(changes: Any) -> None:
        commits.append({type(change) for change in changes})
        await real(changes)

    stage.store.apply = apply  # type: ignore[method-assign]
    async with stage.serve(sweep=None):
        await stage.emit("free", *(run(f"R{number}", 0.01, session="one") for number in range(10)))
        await stage.all_settled()
    for number in range(9):
        assert stage.when("end", f"R{number}") == stage.when("start", f"R{number + 1}")
    assert sum({EndRun, StartRun} <= commit for commit in commits) == 9


@pytest.mark.parametrize("ending", ["ok", "fail", "limited", "raise", "timeout", "cancel"])
@pytest.mark.parametrize("kind", ["free", "held"])
async def test_q15_every_ending_releases_alike(autojump_clock: Clock, kind: str, ending: str) -> None:
    """LCK-4, RUN-2 (Q-12, Q-15): whichever way a run ends, three resources and a session are free in that instant."""
    stage, limit = Stage(), 2 if ending == "timeout" else None
    takes = run("R1", 9 if ending in ("timeout", "cancel") else 2, ending, session="s", resources=list("wxy"))
    async with stage.serve() as worker:
        first = await stage.emit(kind, {**takes, "time_limit": limit}, post=1)
        for number, lock in enumerate("wxy"):
            await stage.emit("free", run(f"after-{number}", 1, resources=[lock]))
        await stage.emit("free", run("after-s", 1, session="s"))
        if ending == "cancel":
            await trio.sleep(2)
            await worker.cancel_run(f"{first}-1")
        await stage.all_settled()
    freed = 2 if kind == "free" else 3
    assert [stage.when("start", f"after-{each}") for each in (0, 1, 2, "s")] == [[freed]] * 4


async def test_q14_all_locks_of_a_run_are_free_in_one_commit(autojump_clock: Clock) -> None:
    """LCK-4 (Q-14): never three of four: with post, the release and the four starts are one commit."""
    stage, commits = Stage(), []
    real = stage.store.apply

    async def apply(changes: Any) -> None:
        commits.append([type(change) for change in changes if isinstance(change, StartRun | EndRun | SettleSignal)])
        await real(changes)

    async with stage.serve():
        await stage.emit("held", run("R1", 5, resources=list("wxyz")), post=1)
        await trio.sleep(1)
        for lock in "wxyz":
            await stage.emit("free", run(f"after-{lock}", 1, resources=[lock]))
        await trio.sleep(1)
        stage.store.apply = apply  # type: ignore[method-assign]
        await stage.all_settled()
    assert [SettleSignal, StartRun, StartRun, StartRun, StartRun] in commits
    assert {at for at, what, name in stage.log if what == "start" and name != "R1"} == {6}


async def test_q16_a_cancelled_waiter_disturbs_neither_holder_nor_those_behind(autojump_clock: Clock) -> None:
    """LCK-2, RUN-6 (Q-16)."""
    stage = Stage()
    async with stage.serve() as worker:
        await stage.emit("free", run("R1", 10, session="s"))
        target = await stage.emit("free", run("R2", 10, session="s"))
        await stage.emit("free", run("R3", 10, session="s"))
        await trio.sleep(1)
        await worker.cancel_run(f"{target}-1")
        await trio.sleep(1)
        assert await stage.states() == {"R1": "running", "R2": "cancelled", "R3": "pending"}
        await stage.all_settled()
    assert stage.when("end", "R1") == stage.when("start", "R3") == [10]
    assert "R2" not in stage.noted("start")


@pytest.mark.parametrize("first", ["end", "cancel"])
async def test_q17_an_end_and_a_cancel_in_one_instant_let_the_third_start(
    autojump_clock: Clock, some_seed: int, first: str
) -> None:
    """LCK-2, LCK-5 (Q-17): a cancelled waiter lets the next one go, in both orders."""
    stage = Stage()
    async with stage.serve(settle=trio.lowlevel.checkpoint) as worker:
        await stage.emit("free", run("R1", 0, "gate", session="s"))
        waiting = await stage.emit("free", run("R2", 9, session="s"))
        await stage.emit("free", run("R3", 0.5, session="s"))
        await trio.sleep(1)
        if first == "end":
            stage.gate("R1").set()
            await worker.cancel_run(f"{waiting}-1")
        else:
            await worker.cancel_run(f"{waiting}-1")
            stage.gate("R1").set()
        await stage.all_settled()
    assert stage.when("start", "R3") == [1]
    assert (await stage.states())["R3"] == "done"

"""LCK at the worker's door: which runs start when, and the field's cases of keyed and ordered jobs (Q)."""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest
import trio
import trio.testing

from tests.signals.lock_checker import LockChecker
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock
KINDS = ["held", "free", "again", "quick"]


@pytest.mark.parametrize("max_running", [None, 3])
async def test_random_work_keeps_the_rule_at_every_event(
    autojump_clock: Clock, some_seed: int, max_running: int | None
) -> None:
    """LCK-2, LCK-3, LCK-4 (Q-01): sessions, resources, posts, failures and cancels at random; no overlap, no overtaking,
    nothing that could start left waiting when time goes on."""
    draw, stage = random.Random(some_seed), Stage()
    async with stage.serve(max_running=max_running) as worker:

        async def cancel_some() -> None:
            for _ in range(5):
                await trio.sleep(draw.uniform(0, 6))
                live = [each.id for each in (await stage.runs()).values() if each.ended_at is None]
                if live:
                    await worker.cancel_run(draw.choice(live))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_some)
            for number in range(30):
                runs = [
                    run(
                        f"R{number}-{each}",
                        draw.choice([0, 0.5, 1, 2]),
                        draw.choice(["ok", "ok", "fail", "limited", "raise"]),
                        session=draw.choice([None, "a", "b", "c"]),
                        resources=draw.sample(["a", "b", "w", "x"], draw.randint(0, 3)),
                    )
                    for each in range(draw.randint(0, 4))
                ]
                await stage.emit(draw.choice(KINDS), *runs, post=draw.choice([0, 1]), handle=draw.choice([0, 0.2]))
                await trio.sleep(draw.choice([0, 0, 1]))
        await stage.all_settled()
        assert worker.locks() == [] and worker._core is not None and worker._core.running == 0
    checker = LockChecker(max_running=max_running).check(stage.events)
    assert checker.runs == []
    assert len(stage.noted("start")) == len(set(stage.noted("start"))) == len(checker.started)


async def steps_of_a_cold_start(crowd: int) -> int:
    """How many steps Python takes from the emit of a run on a cold session to its end, while a crowd waits on a hot one."""
    stage, steps = Stage(), 0

    def count(frame: Any, event: str, argument: object) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return count

    async with stage.serve(claim_ahead=None) as worker:
        await stage.emit("quick", *(run(f"hot-{number}", 1, session="hot") for number in range(crowd)))
        await trio.sleep(0.5)
        assert (await worker.store.counts())["runs"]["pending"] == crowd - 1
        traced = sys.gettrace()
        sys.settrace(count)
        try:
            await stage.emit("quick", run("cold", 0.1, session="cold"))
            await trio.sleep(0.2)
        finally:
            sys.settrace(traced)
        assert stage.when("end", "cold")[0] - stage.when("start", "cold")[0] == pytest.approx(0.1)
        assert stage.when("start", "cold")[0] == pytest.approx(trio.current_time() - 0.2)
        worker.stop("cancel")
    return steps


async def test_q23_a_cold_session_waits_for_none_of_a_crowd(autojump_clock: Clock) -> None:
    """LCK-2, LCK-6 (Q-23): it starts in its instant, and in as many steps behind 3,000 waiting runs as behind 30."""
    few, many = await steps_of_a_cold_start(30), await steps_of_a_cold_start(3_000)
    assert few > 1_000
    assert many < few * 1.05


async def test_q24_only_what_shares_a_lock_waits_and_in_emission_order(autojump_clock: Clock) -> None:
    """LCK-2, LCK-7 (Q-24): R3 starts at once; R5 waits for R4 on b, although nothing runs there."""
    stage = Stage()
    async with stage.serve() as worker:
        for name, resources in [("R1", "a"), ("R2", "a"), ("R3", "b"), ("R4", "ab"), ("R5", "b")]:
            await stage.emit("free", run(name, 10, resources=list(resources)))
        await trio.sleep(1)
        ids = {name: each.id for name, each in (await stage.runs()).items()}
        assert stage.noted("start") == ["R1", "R3"]
        why = worker.why(ids["R5"])
        assert why is not None
        assert [(edge.name, edge.blocker.run_id, edge.position) for edge in why.edges] == [("b", ids["R4"], 2)]
        assert why.root.run_id == ids["R1"]
        await stage.all_settled()
    assert [stage.when("start", each) for each in ("R2", "R4", "R5")] == [[10], [20], [30]]


async def test_q32_why_names_every_edge_and_the_root(autojump_clock: Clock) -> None:
    """LCK-7 (Q-32): run, signal, resource, since, state, position; also when a post in flight is what holds it."""
    stage = Stage()
    async with stage.serve() as worker:
        await stage.emit("held", run("R2", 5, resources=["a"]), post=100)
        await stage.emit("free", run("R4", 50, resources=["b"]))
        await trio.sleep(7)
        await stage.emit("free", run("R5", 1, session="s", resources=["a", "b"]))
        await stage.emit("free", run("R6", 1, session="s"))
        await trio.sleep(1)
        runs = await stage.runs()
        why = worker.why(runs["R5"].id)
        assert why is not None
        edges = [
            (edge.space, edge.name, edge.blocker.run_id, edge.blocker.signal_id, edge.position) for edge in why.edges
        ]
        assert edges == [
            ("resource", "a", runs["R2"].id, runs["R2"].signal_id, 1),
            ("resource", "b", runs["R4"].id, runs["R4"].signal_id, 1),
        ]
        blockers = [(each.blocker.state, each.blocker.since, each.blocker.posting) for each in why.edges]
        assert blockers == [("held", 5, True), ("running", 0, False)]
        assert (why.run.state, why.run.since, why.root) == ("waiting", 7, why.edges[0].blocker)
        assert (worker.why(runs["R6"].id).root) == why.root  # type: ignore[union-attr]
        assert worker.why("nobody-1") is None
        assert [(each.name, len(each.holders), len(each.waiting)) for each in worker.locks()][-2:] == [
            ("a", 1, 1),
            ("b", 1, 1),
        ]
        worker.stop("cancel")


async def test_sessions_and_resources_are_separate_name_spaces(autojump_clock: Clock) -> None:
    """LCK-1: and a resource named twice is one lock."""
    stage = Stage()
    async with stage.serve():
        await stage.emit("free", run("R1", 5, session="x", resources=["y", "y"]))
        await stage.emit("free", run("R2", 5, session="y", resources=["x"]))
        await trio.sleep(1)
        assert stage.noted("start") == ["R1", "R2"]
        await stage.all_settled()
    assert (await stage.runs())["R1"].resources == ("y",)


async def test_a_fresh_session_can_be_continued_by_its_name(autojump_clock: Clock) -> None:
    """LCK-1: and then it is a lock like any other."""
    stage = Stage()
    async with stage.serve():
        first = await stage.emit("free", run("R1", 5), run("R2", 5))
        await stage.emit("free", run("R3", 1, session=f"run_{first}-1"))
        await stage.all_settled()
    assert [stage.when("start", each) for each in ("R1", "R2", "R3")] == [[0], [0], [5]]


async def test_a_held_run_takes_no_place(autojump_clock: Clock) -> None:
    """LCK-3: max_running bounds what runs, in emission order."""
    stage = Stage()
    async with stage.serve(max_running=1):
        await stage.emit("held", run("R1", 5), post=100)
        await stage.emit("free", run("R2", 5), run("R3", 5))
        await trio.sleep(11)
        assert [stage.when("start", each) for each in ("R1", "R2", "R3")] == [[0], [5], [10]]
        assert stage.noted("posted") == []

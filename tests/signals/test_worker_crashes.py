"""REC at the worker's door: whatever commit a worker dies at, the next one settles everything and repeats nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from concorde_trio.records import RunState, SignalRecord
from concorde_trio.signals.views import rebuilt_locks
from tests.signals.crashing_stores import Crash, crashing
from tests.signals.lock_checker import LockChecker
from tests.signals.stage import Stage, ended, play, run, settled

KINDS = {"held": "strict", "free": "strict", "again": "repeatable", "quick": "repeatable"}


async def piece(stage: Stage) -> None:
    """Every kind of handler; shared sessions and resources; a failure, a refused tag, a bad handler; posts; an unknown kind."""
    async with stage.store.transaction() as tx:
        await stage.emit("held", run("A1", 2, session="s"), run("A2", 1, resources=["w"], tag="t" * 16), post=2, tx=tx)
        await stage.emit("again", run("B1", 2, session="s"), run("B2", 9, tag="t" * 16), handle=0.5, post=1, tx=tx)
        await stage.emit("free", run("C1", 1, "fail", resources=["w"]), run("C2", 1, session="s"), handle=1, tx=tx)
        await stage.emit("nobody", tx=tx)
        await stage.emit("held", fail_handle="cannot", post=1, tx=tx)
        await stage.emit("quick", run("E1", 1, session="s"), tx=tx)
        await stage.emit("quick", run("F1", 1, resources=["w", "x"]), run("F2", 1, resources=["x"]), tx=tx)
        await stage.emit("held", post=1, tx=tx)


async def crash(stage: Stage, crash_at: int, *, after: bool) -> bool:
    """Play the piece with a worker that dies at a commit. False when it never came to that commit."""
    stage.store.crash_at, stage.store.after, stage.store.commits = crash_at, after, 0
    try:
        async with stage.serve(claim_ahead=3):
            await piece(stage)
            await stage.all_settled()
    except Crash:
        return True
    return False


def judge(
    stage: Stage, before: dict[str, SignalRecord], after: dict[str, SignalRecord], runs: dict[str, Any], crashes: int
) -> None:
    """The rules of recovery, by the stage's own log and the rows."""
    assert len(after) == 8 and all(settled(record) for record in after.values())
    assert all(ended(each) for each in runs.values())
    for happened in ("start", "post"):
        names = stage.noted(happened)
        assert len(names) == len(set(names)), f"{happened} twice: REC-2, CLM-6"
    for signal_id in set(stage.noted("handle")):
        times = len(stage.when("handle", signal_id))
        assert times == 1 or (times <= 1 + crashes and KINDS[after[signal_id].kind] == "repeatable"), "CLM-6"
    for lock in ("s", "w", "x"):
        wanted = [name for name, each in runs.items() if lock in (each.session, *each.resources)]
        started = [name for name in stage.noted("start") if name in wanted]
        assert started == [name for name in wanted if name in started], "LCK-2, REC-3: old places"
    for name, each in runs.items():
        if name not in stage.noted("start"):
            assert name == "B2" or each.started_at is not None, f"{name} was lost: REC-3"
        if each.error is not None and "worker stopped while it ran" in each.error:
            assert each.started_at is not None
    for signal_id, outcome in stage.outcomes.items():
        assert not outcome.interrupted or after[signal_id].interrupted
    assert {name: before[name].seq for name in before} == {name: after[name].seq for name in before}


def crash_and_recover(store: str, folder: Path, crash_at: int, *, after: bool, again: int = 0) -> bool:
    """One crash (and one in the recovery, at its commit number ``again``); then a worker that lives."""
    stage = Stage(crashing(store, folder, f"{crash_at}-{after}-{again}"))
    came_to_it: list[bool] = []

    async def main() -> None:
        came_to_it.append(await crash(stage, crash_at, after=after))
        async with stage.opened() as opened:
            before, positions = (
                await stage.signals(),
                {name: each.position for name, each in (await stage.runs()).items()},
            )
            cut = {n for n, each in (await stage.runs()).items() if each.state is RunState.RUNNING}
            handling = [entry.signal for entry in await opened.unfinished() if entry.signal.phase == "handling"]
        stage.store.crash_at, stage.store.commits = again, 0
        if again:
            try:
                async with stage.recover():
                    await stage.all_settled()
            except* Crash:
                pass
            stage.store.crash_at = 0
        stage.events.clear()
        async with stage.recover() as worker:
            await stage.all_settled()
            assert worker.locks() == []
        runs = await stage.runs()
        judge(stage, before, await stage.signals(), runs, crashes=2 if again else 1)
        assert {name: runs[name].position for name in positions} == positions, "REC-3"
        assert {runs[name].state for name in cut} <= {RunState.FAILED}, "REC-2"
        assert len(handling) <= 1, "CLM-6: at most the one whose handle it cut off"
        async with stage.opened() as opened:
            assert rebuilt_locks(await opened.unfinished()).locks() == [] and await opened.tags() == []

    play(main)
    return came_to_it[0]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_at_any_commit_is_recovered_from(tmp_path: Path, after: bool) -> None:
    """REC-2 to REC-5, CLM-6: in memory, at every commit of the piece."""
    crash_at = 1
    while crash_and_recover("memory", tmp_path, crash_at, after=after):
        crash_at += 1
    assert crash_at == 18, "the piece has another number of commits than it had; is that meant?"


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_at_any_commit_is_recovered_from_in_a_file(tmp_path: Path, after: bool) -> None:
    """REC-2 to REC-5, CLM-6: in SQLite."""
    crash_at = 1
    while crash_and_recover("sqlite", tmp_path, crash_at, after=after):
        crash_at += 1
    assert crash_at == 18


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("again", [1, *(pytest.param(number, marks=pytest.mark.slow) for number in range(2, 6))])
def test_a_crash_in_the_recovery_from_a_crash_is_recovered_from(tmp_path: Path, after: bool, again: int) -> None:
    """REC-2 to REC-5, CLM-6: at every commit, and then again at one of the first of the next worker."""
    crash_at = 1
    while crash_and_recover("memory", tmp_path, crash_at, after=after, again=again):
        crash_at += 1


def test_the_piece_itself_keeps_the_lock_rules(tmp_path: Path) -> None:
    """LCK-2, LCK-4: so that what the crashes are measured by is right."""
    stage = Stage(crashing("memory", tmp_path))

    async def main() -> None:
        assert not await crash(stage, 0, after=False)
        LockChecker().check(stage.events)
        assert trio.current_time() > 5

    play(main)

"""The rows of a timeline: the same of a played scenario and of a real queue, and who waited for whom."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
import trio.testing

from concorde_trio.records import Run, RunState, SignalRecord, SignalState
from concorde_trio.signals.store import RunFilter, SignalFilter
from concorde_trio.signals.worker import open_worker
from concorde_trio.simulate import TimelineRow, parse_scenario, rows_from_records, rows_from_result, simulate
from concorde_trio.simulate.actors import Script, ScriptedRuntime
from concorde_trio.simulate.ticks import Ticks
from concorde_trio.simulate.timeline.rows import WaitedFor, waited_for
from concorde_trio.simulate.trace import Trace
from concorde_trio.stores import MemoryStore
from tests.reference.model import Reference

SCENARIO: dict[str, Any] = {
    "signals": [
        {
            "id": "s1",
            "kind": "task",
            "at": 0,
            "post": 2,
            "prompts": [
                {"id": "r1", "session": "ann", "resources": ["w"], "duration": 1},
                {"id": "r2", "session": "bob", "duration": 3, "outcome": "limited"},
                {"id": "r3", "session": "ann", "duration": 1},
            ],
        },
        {"id": "s2", "kind": "task", "at": 0, "prompts": [{"id": "r4", "session": "ann", "duration": 4}]},
        {
            "id": "s3",
            "kind": "task",
            "at": 1,
            "prompts": [{"id": "r5", "session": None, "resources": ["w"], "duration": 1, "outcome": "fail"}],
        },
    ]
}


def by_run(rows: list[TimelineRow]) -> dict[str, TimelineRow]:
    return {row.run: row for row in rows}


def test_a_played_scenario_gives_one_row_a_run_in_emission_order() -> None:
    """LCK-4: with a post phase the locks are held to its end."""
    rows = rows_from_result(SCENARIO, simulate(SCENARIO))
    assert [row.run for row in rows] == ["r1", "r2", "r3", "r4", "r5"]
    assert rows[0] == TimelineRow(
        run="r1",
        signal="s1",
        session="ann",
        resources=("w",),
        state="done",
        queued=0.0,
        started=0.0,
        ended=1.0,
        released=5.0,
        post_started=3.0,
        post_ended=5.0,
    )
    last = by_run(rows)["r5"]
    assert (last.session, last.fresh, last.released, last.post_started) == ("run_r5", True, 6.0, None)


async def test_a_real_queue_gives_the_same_rows(autojump_clock: trio.testing.MockClock) -> None:
    """LCK-4: post phases are told by events, or found from what is stored."""
    scenario = parse_scenario(SCENARIO)
    script = Script.of(scenario, Ticks(1), Trace(scenario))
    store = MemoryStore()
    options: dict[str, Any] = {"wall_clock": trio.current_time, "settle": trio.testing.wait_all_tasks_blocked}
    async with open_worker(store, ScriptedRuntime(script), script.handlers(), **options) as worker:
        worker.bus.call(script.trace.note)
        start = trio.current_time()
        ids = []
        for number, signal in enumerate(scenario.signals):
            await trio.sleep_until(start + signal.at)
            ids.append(await worker.emit(script.kinds[number], number))
            script.trace.emitted(signal.id, ids[-1])
        for signal_id in ids:
            await worker.wait_settled(signal_id)
        signals = await store.signals(SignalFilter())
        runs = await store.runs(RunFilter())
    names = {run.id: f"r{run.position}" for run in runs} | {real: f"s{n + 1}" for n, real in enumerate(ids)}
    plain = [
        attrs.evolve(
            row,
            run=names[row.run],
            signal=names[row.signal],
            session=f"run_{names[row.run]}" if row.fresh else row.session,
            **{field: shifted(getattr(row, field), start) for field in TIMES},
        )
        for row in rows_from_records(signals, runs)
    ]
    assert plain == rows_from_result(SCENARIO, Reference(SCENARIO).play())


TIMES = ("queued", "started", "ended", "released", "post_started", "post_ended")


def shifted(at: float | None, start: float) -> float | None:
    return None if at is None else at - start


def record(signal_id: str, **more: Any) -> SignalRecord:
    given = {"seq": 1, "kind": "k", "payload": None, "state": SignalState.DONE, "emitted_at": 0.0, "settled_at": 9.0}
    return SignalRecord(id=signal_id, **(given | more))


def stored(run_id: str, position: int, **more: Any) -> Run:
    given = {"signal_id": "s", "signal_seq": 1, "index": 0, "session": "ann", "prompt": "", "queued_at": 0.0}
    return Run(id=run_id, position=position, **(given | more))


def test_post_phases_that_events_told_of_are_taken_as_told() -> None:
    """PST-1: a record does not say when post began."""
    runs = [stored("a", 1, state=RunState.DONE, started_at=1.0, ended_at=2.0)]
    (row,) = rows_from_records([record("s")], runs, posts={"s": (3.0, 9.0)})
    assert (row.post_started, row.post_ended, row.released) == (3.0, 9.0, 9.0)
    (row,) = rows_from_records([record("s")], runs)
    assert (row.post_started, row.released) == (None, 2.0)


def test_what_is_not_over_is_open() -> None:
    """Rows of a queue that still works."""
    signals = [record("s", state=SignalState.PROCESSING, settled_at=None, holds=True)]
    runs = [
        stored("b", 2, session="bob", state=RunState.RUNNING, started_at=1.0),
        stored("a", 1, state=RunState.DONE, started_at=1.0, ended_at=2.0),
        stored("c", 3, session="run_c"),
    ]
    a, b, c = rows_from_records(signals, runs)
    assert (a.run, a.released, a.post_started) == ("a", None, None)
    assert (b.state, b.ended, c.state, c.started, c.fresh) == ("running", None, "pending", None, True)
    assert rows_from_records([], runs)[0].released == 2.0


def test_a_run_waited_for_the_nearest_run_before_it_on_each_lock() -> None:
    """LCK-7: the session first, then the resources; an ended, held run blocks no run of its own signal (LCK-4)."""
    rows = rows_from_result(SCENARIO, simulate(SCENARIO))
    assert waited_for(rows) == {
        "r3": (WaitedFor("r1", "session ann"),),
        "r4": (WaitedFor("r3", "session ann"),),
        "r5": (WaitedFor("r1", "resource w"),),
    }


@pytest.mark.parametrize("ended", [None, 4.0])
def test_a_run_that_never_started_waited_to_its_end(ended: float | None) -> None:
    """TAG-2, STP-2."""
    first = TimelineRow(run="a", signal="s", session="x", state="done", queued=0, started=0, ended=4, released=4)
    second = TimelineRow(run="b", signal="t", session="x", state="failed", queued=0, ended=ended)
    third = TimelineRow(run="c", signal="u", session="y", state="done", queued=0, started=2, ended=4, released=4)
    assert waited_for([first, second, third]) == {"b": (WaitedFor("a", "session x"),)}

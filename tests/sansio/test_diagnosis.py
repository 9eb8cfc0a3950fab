"""The decisions of ``doctor``: from what stands in the rows to what is wrong with them."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from concorde_trio._sansio.diagnosis import Evidence, Finding, diagnose
from concorde_trio.records import Run, RunState, SignalPhase, SignalRecord, SignalState, Unfinished

NOW = 10_000.0


def signal(number: int, phase: SignalPhase = SignalPhase.RUNNING, *, holds: bool = False) -> SignalRecord:
    """A signal that is processing."""
    return SignalRecord(
        id=f"s{number}",
        seq=number,
        kind="k",
        payload=None,
        state=SignalState.PROCESSING,
        emitted_at=1.0,
        phase=phase,
        claimed_at=2.0,
        holds=holds,
    )


def run(position: int, of: int, state: RunState, session: str = "ann", *resources: str, **fields: Any) -> Run:
    """A run at this position, of signal ``of``."""
    started = state is not RunState.PENDING
    ended = state not in (RunState.PENDING, RunState.RUNNING)
    made: dict[str, Any] = {
        "id": f"r{position}",
        "signal_id": f"s{of}",
        "signal_seq": of,
        "position": position,
        "index": 0,
        "session": session,
        "resources": resources,
        "prompt": "do it",
        "state": state,
        "queued_at": 3.0,
        "started_at": 4.0 if started else None,
        "ended_at": NOW - 1 if ended else None,
    }
    return Run(**made | fields)


def diagnosed(*unfinished: Unfinished, served: bool = True, **fields: Any) -> list[tuple[str, str, tuple[str, ...]]]:
    """Kind, rule and ids of each finding."""
    found = diagnose(Evidence(served=served, now=NOW, unfinished=unfinished, **fields))
    assert all(each.advice and each.what for each in found)
    return [(each.kind, each.rule, each.ids) for each in found]


def entry(record: SignalRecord, *runs: Run) -> Unfinished:
    return Unfinished(signal=record, runs=runs)


RUNNING, PENDING, DONE = RunState.RUNNING, RunState.PENDING, RunState.DONE


def test_nothing_is_wrong_with_a_queue_at_work() -> None:
    """Q-21: runs of a worker, waiting ones, held ones, one being handled and one in its post."""
    assert (
        diagnosed(
            entry(signal(1, holds=True), run(1, 1, DONE, "ann", "w"), run(2, 1, RUNNING, "ann", "w")),
            entry(signal(2), run(3, 2, PENDING, "bob", "w"), run(4, 2, PENDING, "ann")),
            entry(signal(3), run(5, 3, RUNNING, "cleo", "bob")),
            entry(signal(4, SignalPhase.HANDLING)),
            entry(signal(5, SignalPhase.POSTING, holds=True), run(6, 5, DONE, "dan")),
        )
        == []
    )


def test_what_is_parked_waits_for_the_next_worker_rightly() -> None:
    """STP-2: a stopped queue may have runs that have not started."""
    assert diagnosed(entry(signal(1), run(1, 1, DONE), run(2, 1, PENDING)), served=False) == []


def test_what_a_crash_cut_off_is_told_of_until_a_worker_settles_it() -> None:
    """Q-21, REC-2, REC-4, CLM-6: a running run without a live owner, a handle and a post that nobody is at."""
    assert diagnosed(
        entry(signal(1), run(1, 1, RUNNING)),
        entry(signal(2, SignalPhase.HANDLING)),
        entry(signal(3, SignalPhase.POSTING)),
        served=False,
    ) == [("cut", "REC-2", ("r1",)), ("cut", "CLM-6", ("s2",)), ("cut", "REC-4", ("s3",))]


@pytest.mark.parametrize(("owner", "found"), [({"r1": True}, []), ({"r1": False}, ["r1"]), ({}, ["r1"])])
def test_a_run_whose_member_is_dead_has_no_owner(owner: dict[str, bool], found: list[str]) -> None:
    """Q-21: among many processes it is the one that executes it which must live, whoever leads."""
    told = diagnosed(entry(signal(1), run(1, 1, RUNNING)), owners=owner)
    assert [ids for _, _, ids in told] == ([tuple(found)] if found else [])


@pytest.mark.parametrize(
    ("before", "is_fault"),
    [
        (run(1, 1, RUNNING, "bob", "w"), True),
        (run(1, 1, PENDING, "ann"), True),
        (run(1, 1, DONE, "ann"), True),  # held for its signal's post
        (run(1, 2, DONE, "ann"), False),  # of the same signal
        (run(1, 1, RUNNING, "w", "ann"), False),  # a session and a resource of one name
        (run(3, 1, PENDING, "ann"), False),  # later
    ],
)
def test_a_run_behind_an_earlier_one_on_its_lock_is_found(before: Run, is_fault: bool) -> None:
    """LCK-2, LCK-4, Q-01: both are named, and the lock."""
    mine = run(2, 2, RUNNING, "ann", "w")
    entries = [entry(signal(2, holds=True), *(one for one in (before, mine) if one.signal_id == "s2"))]
    if before.signal_id == "s1":
        entries.append(entry(signal(1, holds=True), before, run(9, 1, PENDING, "zoe")))
    found = diagnosed(*entries)
    assert [(kind, rule) for kind, rule, _ in found] == ([("broken", "LCK-2")] if is_fault else [])
    if is_fault:
        assert found[0][2][0].startswith("r2 (with r1 on ")


def test_a_tag_that_is_live_on_two_runs_is_found() -> None:
    """TAG-2: both are named; a waiting run may have the tag of a running one."""
    tag = {"tag": "t" * 16}
    assert (
        diagnosed(entry(signal(1), run(1, 1, RUNNING, "a", **tag)), entry(signal(2), run(2, 2, PENDING, "b", **tag)))
        == []
    )
    assert diagnosed(
        entry(signal(1), run(1, 1, RUNNING, "a", **tag)), entry(signal(2), run(2, 2, RUNNING, "b", **tag))
    ) == [("broken", "TAG-2", ("r1", "r2"))]


def test_a_signal_that_its_worker_forgot_is_found() -> None:
    """PST-1: all ended a minute ago. What has just ended is about to be written, and a stopped queue waits rightly."""
    old = run(1, 1, DONE, ended_at=NOW - 61)
    assert diagnosed(entry(signal(1), old)) == [("broken", "PST-1", ("s1",))]
    assert diagnosed(entry(signal(1), run(1, 1, DONE))) == []
    assert diagnosed(entry(signal(1), old, run(2, 1, PENDING))) == []
    assert diagnosed(entry(signal(1), old), served=False) == []


def test_findings_name_twenty_and_count_all_and_the_broken_come_first() -> None:
    """Q-21: an operator reads the worst first."""
    runs = [run(number, 1, RUNNING, f"s{number}") for number in range(30)]
    row = Finding("broken", "SIG-4", "what", ("x",), 1, "do")
    found = diagnose(Evidence(served=False, now=NOW, unfinished=[entry(signal(1), *runs)], rows=[row]))
    assert [each.kind for each in found] == ["broken", "cut"]
    assert (len(found[1].ids), found[1].count) == (20, 30)
    assert attrs.asdict(found[0])["advice"] == "do"

"""The lock table, rule by rule."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from concorde_trio._sansio.lock_table import Lock, LockTable, LockView, Missing
from concorde_trio.errors import UnknownId, UsageError, WrongState

Table = LockTable[str, str]


def test_runs_of_one_session_start_one_after_the_other() -> None:
    """LCK-2: a run starts as soon as no earlier unreleased run shares one of its locks."""
    table = Table()
    assert table.enqueue("r1", "s1", session="ann") == ("r1",)
    assert table.enqueue("r2", "s2", session="ann") == ()
    assert table.enqueue("r3", "s3", session="ann") == ()
    assert table.end("r1") == ("r2",)
    assert table.end("r2") == ("r3",)
    assert table.end("r3") == ()
    assert len(table) == 0


def test_runs_that_share_nothing_start_at_once() -> None:
    """LCK-2: what shares nothing never waits."""
    table = Table()
    assert table.enqueue("r1", "s1", session="ann", resources=["w1"]) == ("r1",)
    assert table.enqueue("r2", "s2", session="bob", resources=["w2"]) == ("r2",)


def test_one_end_lets_all_start_whom_it_kept_waiting_in_enqueue_order() -> None:
    """LCK-2, LCK-5: the order of starts is that of the enqueues, not that of the locks."""
    table = Table()
    table.enqueue("r1", "s1", session="ann", resources=["x", "y", "z"])
    table.enqueue("r2", "s2", session="r2", resources=["z"])
    table.enqueue("r3", "s3", session="r3", resources=["y"])
    table.enqueue("r4", "s4", session="ann")
    table.enqueue("r5", "s5", session="r5", resources=["x"])
    assert table.end("r1") == ("r2", "r3", "r4", "r5")


def test_a_waiting_run_keeps_its_place_on_every_lock_against_later_runs() -> None:
    """LCK-2: conflicting runs never swap, so nobody passes a run that waits for something else."""
    table = Table()
    table.enqueue("r1", "s1", session="r1", resources=["x"])
    table.enqueue("r2", "s2", session="r2", resources=["x", "y"])
    assert table.enqueue("r3", "s3", session="r3", resources=["y"]) == ()
    assert table.end("r1") == ("r2",)
    assert table.end("r2") == ("r3",)


def test_a_session_and_a_resource_of_one_name_are_two_locks() -> None:
    """LCK-1: sessions and resources are separate name spaces."""
    table = Table()
    table.enqueue("r1", "s1", session="w")
    assert table.enqueue("r2", "s2", session="ann", resources=["w"]) == ("r2",)


def test_a_resource_named_twice_counts_once() -> None:
    """LCK-1: each distinct name in resources."""
    table = Table()
    assert table.enqueue("r1", "s1", session="ann", resources=["w", "w"]) == ("r1",)
    table.enqueue("r2", "s2", session="bob", resources=["w", "v", "w"])
    assert [missing.lock.name for missing in table.why("r2").missing] == ["w"]
    assert table.end("r1") == ("r2",)


def test_runs_of_one_signal_wait_for_each_other_while_they_run() -> None:
    """LCK-4: only an ended, held run steps aside for its own signal; a running one does not."""
    table = Table()
    table.enqueue("r1", "s1", session="ann")
    assert table.enqueue("r2", "s1", session="ann") == ()
    assert table.end("r1", hold=True) == ("r2",)


def test_a_held_run_blocks_other_signals_until_the_release_and_never_its_own() -> None:
    """LCK-4: the locks stay held until post is over."""
    table = Table()
    table.enqueue("r1", "s1", session="ann", resources=["w"])
    table.enqueue("r2", "s1", session="bob", resources=["w"])
    table.enqueue("r3", "s2", session="cat", resources=["w"])
    assert table.end("r1", hold=True) == ("r2",)
    assert table.is_held("r1")
    assert table.enqueue("r4", "s3", session="ann") == ()
    assert table.end("r2", hold=True) == ()
    assert table.release("s1") == ("r3", "r4")
    assert "r1" not in table
    assert table.why("r3").root == "r3"


def test_a_later_run_of_the_signal_starts_beside_its_held_runs() -> None:
    """LCK-4: an ended, held run never blocks a run of its own signal, one that is enqueued later included."""
    table = Table()
    table.enqueue("r1", "s1", session="ann")
    table.end("r1", hold=True)
    assert table.enqueue("r2", "s1", session="ann") == ("r2",)
    assert table.enqueue("r3", "s2", session="ann") == ()
    assert table.release("s1") == ()
    assert table.end("r2") == ("r3",)


def test_a_release_without_held_runs_changes_nothing() -> None:
    """LCK-4: a signal whose runs were all withdrawn is released like any other."""
    table = Table()
    table.enqueue("r1", "s1", session="ann")
    assert table.release("s1") == ()
    assert table.may_start("r1")


def test_an_end_without_hold_beside_held_siblings_releases_its_own_locks_only() -> None:
    """LCK-4: without a hold each run releases at its own end."""
    table = Table()
    table.enqueue("r1", "s1", session="a", resources=["w"])
    table.enqueue("r2", "s1", session="b", resources=["w"])
    table.enqueue("r3", "s2", session="b")
    table.enqueue("r4", "s2", session="c", resources=["w"])
    table.end("r1", hold=True)
    assert table.end("r2") == ("r3",)
    assert table.release("s1") == ("r4",)


def test_a_withdrawn_run_beside_held_siblings_lets_the_next_sibling_start() -> None:
    """LCK-4, TAG-2: held runs step aside for each run of their signal in its turn."""
    table = Table()
    table.enqueue("r1", "s1", session="ann")
    table.enqueue("r2", "s1", session="ann")
    table.enqueue("r3", "s1", session="ann")
    table.enqueue("r4", "s2", session="ann")
    table.end("r1", hold=True)
    assert table.withdraw("r2") == ("r3",)
    assert table.withdraw("r3") == ()
    assert table.release("s1") == ("r4",)
    assert table.release("s1") == ()


def test_a_waiting_run_that_is_withdrawn_lets_those_behind_it_move_up() -> None:
    """LCK-2, RUN-6: a cancelled waiter blocks nobody."""
    table = Table()
    table.enqueue("r1", "s1", session="ann")
    table.enqueue("r2", "s2", session="ann", resources=["w"])
    table.enqueue("r3", "s3", session="bob", resources=["w"])
    assert table.withdraw("r2") == ("r3",)
    assert table.enqueue("r4", "s4", session="ann") == ()
    assert table.end("r1") == ("r4",)


def test_a_permitted_run_that_is_withdrawn_lets_the_next_run_start() -> None:
    """TAG-2, LCK-2: a run that is refused at its start holds nothing."""
    table = Table()
    table.enqueue("r1", "s1", session="ann")
    table.enqueue("r2", "s2", session="ann")
    assert table.withdraw("r1") == ("r2",)
    assert table.waiting == 0


def test_why_gives_every_missed_lock_and_the_root_of_the_chain() -> None:
    """LCK-7, Q-32: for each missed lock the nearest run before it and its own position."""
    table = Table()
    table.enqueue("r1", "s1", session="r1", resources=["x"])
    table.enqueue("r2", "s2", session="r2", resources=["a", "x"])
    table.enqueue("r3", "s3", session="r3", resources=["b"])
    table.enqueue("r4", "s4", session="r4", resources=["b"])
    table.enqueue("r5", "s5", session="r5", resources=["b", "free", "a"])
    why = table.why("r5")
    assert why.missing == (
        Missing(lock=Lock("resource", "b"), blocker="r4", position=2),
        Missing(lock=Lock("resource", "a"), blocker="r2", position=1),
    )
    assert why.root == "r3"
    assert table.why("r2").root == "r1"


def test_why_names_a_held_run_while_post_is_in_flight() -> None:
    """LCK-7, Q-32: a run blocked by a post waits for the signal's last held run."""
    table = Table()
    table.enqueue("r1", "s1", session="ann")
    table.enqueue("r2", "s1", session="ann")
    table.enqueue("r3", "s2", session="ann")
    table.end("r1", hold=True)
    table.end("r2", hold=True)
    why = table.why("r3")
    assert why.missing == (Missing(lock=Lock("session", "ann"), blocker="r2", position=2),)
    assert why.root == "r2"


def test_why_of_a_run_that_may_start_misses_nothing() -> None:
    """LCK-7."""
    table = Table()
    table.enqueue("r1", "s1", session="ann")
    assert table.why("r1").missing == ()
    assert table.why("r1").root == "r1"


def test_the_locks_show_holders_and_waiting_runs() -> None:
    """LCK-7: what GET /locks shows; a lock nobody wants any more is gone."""
    table = Table()
    table.enqueue("r1", "s1", session="ann", resources=["w"])
    table.enqueue("r2", "s1", session="ann")
    table.enqueue("r3", "s2", session="bob", resources=["w", "v"])
    table.end("r1", hold=True)
    assert list(table.locks()) == [
        LockView(lock=Lock("session", "ann"), holders=("r1", "r2"), waiting=()),
        LockView(lock=Lock("session", "bob"), holders=(), waiting=("r3",)),
        LockView(lock=Lock("resource", "w"), holders=("r1",), waiting=("r3",)),
        LockView(lock=Lock("resource", "v"), holders=(), waiting=("r3",)),
    ]
    assert list(table) == ["r1", "r2", "r3"]
    table.end("r2")
    table.release("s1")
    table.end("r3")
    assert list(table.locks()) == []


def test_waiting_counts_the_runs_that_may_not_start_yet() -> None:
    """CLM-2: what claim_ahead is compared with."""
    table = Table()
    for number in range(5):
        table.enqueue(f"r{number}", "s1", session="ann")
    assert table.waiting == 4
    table.withdraw("r3")
    assert table.waiting == 3
    table.end("r0", hold=True)
    assert table.waiting == 2
    assert not table.may_start("r0")
    assert table.may_start("r1")
    assert not table.may_start("r2")


def test_misuse_is_refused_and_changes_nothing() -> None:
    """LCK-5: a run is enqueued once, ends once and only when it could start."""
    table = Table()
    table.enqueue("r1", "s1", session="ann")
    table.enqueue("r2", "s2", session="ann")
    with pytest.raises(WrongState, match="'r1' is in the lock table already"):
        table.enqueue("r1", "s1", session="bob")
    with pytest.raises(WrongState, match="'r2' cannot end: it may not start yet"):
        table.end("r2")
    with pytest.raises(UnknownId, match="'r9' is not in the lock table"):
        table.end("r9")
    with pytest.raises(UnknownId):
        table.withdraw("r9")
    with pytest.raises(UnknownId):
        table.why("r9")
    with pytest.raises(UsageError, match=r"write \['w'\]"):
        table.enqueue("r3", "s3", session="cat", resources="w")
    with pytest.raises(UsageError, match="session must be a name"):
        table.enqueue("r3", "s3", session=None)  # type: ignore[arg-type]
    table.end("r1", hold=True)
    with pytest.raises(WrongState, match="'r1' cannot end: it has ended and is held"):
        table.end("r1")
    with pytest.raises(WrongState, match="release its signal"):
        table.withdraw("r1")
    assert list(table) == ["r1", "r2"]
    assert table.release("s1") == ("r2",)


def test_a_run_that_left_can_be_enqueued_again() -> None:
    """REC-3: the table keeps nothing of a run that was released."""
    table = Table()
    table.enqueue("r1", "s1", session="ann")
    table.end("r1")
    assert table.enqueue("r1", "s1", session="ann") == ("r1",)


class Run:
    """An id that tells when the last of those who know it has forgotten it."""


def _held(table: LockTable[Run, str], run: Run) -> None:
    table.end(run, hold=True)
    table.release("s")


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(
    "leave",
    [
        pytest.param(lambda table, run: table.end(run), id="end"),
        pytest.param(lambda table, run: table.withdraw(run), id="withdraw"),
        pytest.param(_held, id="release"),
    ],
)
def test_what_left_is_gone_at_once_and_not_when_a_garbage_collector_comes_by(
    leave: Callable[[LockTable[Run, str], Run], object], alone: bool
) -> None:
    """LCK-6: a queue of many runs is no work for the collector, which would stop everything for it."""
    table: LockTable[Run, str] = LockTable()
    run, last = Run(), Run()
    table.enqueue(run, "s", session="ann", resources=["w1", "w2"])
    table.enqueue(last, "s", session="bob" if alone else "ann", resources=["w3" if alone else "w2"])
    left = weakref.ref(run)
    collecting = gc.isenabled()
    gc.disable()
    try:
        leave(table, run)
        assert list(table) == [last]
        del run
        assert left() is None
    finally:
        if collecting:
            gc.enable()

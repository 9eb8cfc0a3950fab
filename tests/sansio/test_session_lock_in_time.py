"""The session lock in time: progress, ceilings, the sweep, who may still end a hold, and what it tells."""

from __future__ import annotations

import math
import time
import tracemalloc
from typing import Any

import pytest

from concorde_trio import SessionLock
from concorde_trio._sansio.holds import ExpiredLease, ExpiredTool
from tests.sansio.session_clock import Clock, acquired


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lock(clock: Clock) -> SessionLock:
    return SessionLock(clock)


# --- progress -----------------------------------------------------------------------------------------------


def test_touch_llm_keeps_a_live_stream_from_being_reaped(lock: SessionLock, clock: Clock) -> None:
    """LSE-3, F-05: something every 20 seconds for 20 minutes, swept every 5; then silence."""
    epoch = acquired(lock)
    for second in range(5, 1201, 5):
        clock.now = 1000.0 + second
        assert lock.sweep_expired() == ()
        if second % 20 == 0:
            assert lock.touch_llm(epoch)
    clock.now += 300
    (expired,) = lock.sweep_expired()
    assert isinstance(expired, ExpiredLease)
    assert (expired.epoch, expired.waited, expired.reason) == (epoch, 300, "progress")


def test_a_summary_that_moves_is_kept(lock: SessionLock, clock: Clock) -> None:
    """LSE-3, F-32: a summary stream that moves for 240 seconds; touching the one lease does not move the other."""
    llm, summary = acquired(lock, 100), lock.set_summarizing(180)
    for _ in range(4):
        clock.now += 60
        assert lock.touch_summarizing(summary)
    assert [one.kind for one in lock.sweep_expired()] == ["llm"]
    assert lock.epoch_is_current(summary) and not lock.epoch_is_current(llm)


def test_a_lease_that_nobody_touches_is_reaped_whatever_else_happens(lock: SessionLock, clock: Clock) -> None:
    """LSE-3, F-03, F-04: looking at a lease, joining it, sweeping it and asking for another are no progress."""
    epoch = acquired(lock, 300)
    for _ in range(60):
        clock.now += 5
        lock.hold_summary()
        lock.epoch_is_current(epoch)
        if lock.sweep_expired():
            break
        lock.try_acquire_llm(300)
        lock.acquire_or_current_llm(300)
    assert clock.now == 1300
    assert not lock.is_locked()


def test_progress_without_end_ends_at_the_ceiling(lock: SessionLock, clock: Clock) -> None:
    """LSE-9, LSE-7, F-04: progress every 60 seconds for ever; then it waited since it was acquired."""
    epoch = acquired(lock)
    while not (expired := lock.sweep_expired()):
        lock.touch_llm(epoch)
        clock.now += 60
    (one,) = expired
    assert isinstance(one, ExpiredLease)
    assert (clock.now, one.reason, one.waited) == (1000 + 3600, "ceiling", 3600)


def test_a_ceiling_can_be_set_or_left_out(lock: SessionLock, clock: Clock) -> None:
    """LSE-9: settable, None for none; the same of a summary."""
    epoch, summary = acquired(lock, 10, ceiling=None), lock.set_summarizing(10, ceiling=25)
    for _ in range(1000):
        clock.now += 5
        lock.touch_llm(epoch)
        lock.touch_summarizing(summary)
        lock.sweep_expired()
    assert lock.epoch_is_current(epoch)
    assert not lock.epoch_is_current(summary)


def test_what_expires_by_both_bounds_at_once_made_no_progress(lock: SessionLock, clock: Clock) -> None:
    """LSE-7: a ceiling ends only what progress kept alive that long."""
    acquired(lock, 10, ceiling=10)
    clock.now += 12
    (one,) = lock.sweep_expired()
    assert (one.reason, one.waited) == ("progress", 12)


# --- the sweep ----------------------------------------------------------------------------------------------


def test_the_sweep_takes_all_three_kinds_and_the_leases_come_first(lock: SessionLock, clock: Clock) -> None:
    """LSE-7, all three kinds, lease-first: the LLM lease, the summarizing lease, tools by deadline and then registration."""
    tools = {
        call: lock.register_tool(call, "look", timeout) for call, timeout in zip("abcd", (3, 1, 3, 2), strict=True)
    }
    summary, llm = lock.set_summarizing(2), acquired(lock, 3)
    stays = lock.register_tool("e", "look", 11)
    clock.now += 10
    expired = lock.sweep_expired()
    assert [(one.kind, one.waited, one.reason) for one in expired] == [
        ("llm", 10, "progress"),
        ("summarizing", 10, "progress"),
        *[("tool", 10, "timeout")] * 4,
    ]
    assert [one.epoch for one in expired if isinstance(one, ExpiredLease)] == [llm, summary]
    assert [one.tool for one in expired if isinstance(one, ExpiredTool)] == [tools[call] for call in "bdac"]
    assert [one.call_id for one in expired if isinstance(one, ExpiredTool)] == list("bdac")
    assert list(lock.active_tools.values()) == [stays]
    assert lock.sweep_expired() == ()


def test_a_sweep_takes_what_expired_and_leaves_what_did_not(lock: SessionLock, clock: Clock) -> None:
    """LSE-7: one of each kind, alone."""
    acquired(lock, 1)
    lock.set_summarizing(2)
    lock.register_tool("c1", "look", 3)
    for kind in ("llm", "summarizing", "tool"):
        clock.now += 1
        assert [one.kind for one in lock.sweep_expired()] == [kind]
    assert not lock.is_locked()


def test_a_sweep_decides_everything_by_one_reading_of_the_clock(lock: SessionLock, clock: Clock) -> None:
    """LSE-7, LSE-10: holds that expire together are taken together, and all waited until the same instant."""
    acquired(lock, 1)
    lock.set_summarizing(1)
    lock.register_tool("c1", "look", 1)
    clock.now += 5
    before = clock.readings
    assert {one.waited for one in lock.sweep_expired()} == {5}
    assert clock.readings == before + 1


class Compared(float):
    """Seconds that count how often they are compared."""

    count = 0

    def __add__(self, other: float) -> Compared:
        return Compared(float(self) + float(other))

    __radd__ = __add__

    def _counted(self, result: Any) -> Any:
        Compared.count += 1
        return result

    def __lt__(self, other: float) -> bool:
        return bool(self._counted(float(self) < float(other)))

    def __le__(self, other: float) -> bool:
        return bool(self._counted(float(self) <= float(other)))

    def __eq__(self, other: object) -> bool:
        return bool(self._counted(float(self) == other))

    __hash__ = float.__hash__


def test_a_sweep_costs_what_expired_and_not_what_is_registered() -> None:
    """LSE-7: comparisons of deadlines with 4,096 tools, counted."""
    clock = Clock()
    lock = SessionLock(clock)
    for number in range(4096):
        lock.register_tool(f"c{number}", "look", Compared(10 + (number * 2654435761) % 4096))
    Compared.count = 0
    assert lock.sweep_expired() == ()
    lock.next_deadline()
    assert 0 < Compared.count < 10
    clock.now += 10 + 15
    assert len(lock.sweep_expired()) == 16
    assert Compared.count < 16 * 6 * 12


@pytest.mark.parametrize("stays", [True, False])
@pytest.mark.parametrize("how", ["completed", "released"])
def test_tools_that_ended_early_leave_nothing_behind(lock: SessionLock, stays: bool, how: str) -> None:
    """LSE-6: a long life does not grow, be there a tool that stays out or not."""

    def one(number: int) -> None:
        lock.register_tool(f"c{number}", "look", 1000 + number)
        if how == "completed":
            assert lock.complete_tool(f"c{number}")
        else:
            assert lock.release_all_tools()

    if stays:
        lock.register_tool("stays", "look", 1)
    for number in range(100):
        one(number)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(2000):
        one(number)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 50_000


# --- who may end a hold -------------------------------------------------------------------------------------


def test_a_hold_that_moved_since_it_was_seen_expired_is_left_alone(lock: SessionLock, clock: Clock) -> None:
    """LSE-11, F-06: progress lands between the look and the sweep; and likewise the end."""
    epoch = acquired(lock, 300)
    tool = lock.register_tool("c1", "look", 300)
    clock.now += 300
    assert lock.next_deadline() <= clock.now
    lock.touch_llm(epoch)
    lock.complete_tool("c1", tool.registration)
    assert lock.sweep_expired() == ()
    assert lock.epoch_is_current(epoch)
    clock.now += 300
    lock.release_llm(epoch)
    assert lock.sweep_expired() == ()


def test_what_is_seen_expired_and_registered_again_is_left_alone(lock: SessionLock, clock: Clock) -> None:
    """LSE-11, F-06: the same call_id, another hold; the old deadline does not end it, be others out or not."""
    for others in (0, 1):
        for number in range(others):
            lock.register_tool(f"other {number}", "look", 100)
        lock.register_tool("c1", "look", 10)
        clock.now += 5
        lock.complete_tool("c1")
        again = lock.register_tool("c1", "look", 10)
        clock.now += 5
        assert lock.sweep_expired() == ()
        assert lock.next_deadline() == clock.now + 5
        clock.now += 5
        assert lock.sweep_expired() == (ExpiredTool(again, 10.0),)


def test_a_late_cleanup_does_not_end_the_hold_that_followed(lock: SessionLock, clock: Clock) -> None:
    """LSE-11, F-10, F-08: the first request was reaped; its finally block runs while the second one is out."""
    first = acquired(lock, 300)
    clock.now += 300
    lock.sweep_expired()
    second = acquired(lock, 300)
    before = lock.llm
    clock.now += 5
    assert lock.touch_llm(first) is False
    assert lock.release_llm(first) is False
    assert lock.llm == before
    assert lock.epoch_is_current(second)
    assert lock.release_llm(second) is True
    assert lock.release_llm(second) is False


def test_an_epoch_of_one_lease_does_not_end_the_other(lock: SessionLock, clock: Clock) -> None:
    """LSE-11: each method names holds of its own kind."""
    llm, summary = acquired(lock), lock.set_summarizing()
    clock.now += 5
    before = (lock.llm, lock.summarizing)
    for changed in (
        lock.touch_llm(summary),
        lock.release_llm(summary),
        lock.touch_summarizing(llm),
        lock.clear_summarizing(llm),
    ):
        assert changed is False
    assert (lock.llm, lock.summarizing) == before


def test_a_call_id_that_comes_again_is_another_hold(lock: SessionLock, clock: Clock) -> None:
    """LSE-11, F-14: call-1 of turn 1 cannot end call-1 of turn 5."""
    first = lock.register_tool("call-1", "look", 10)
    clock.now += 10
    lock.sweep_expired()
    fifth = lock.register_tool("call-1", "look", 10)
    assert lock.complete_tool("call-1", first.registration) is None
    assert lock.active_tools["call-1"] is fifth
    assert lock.complete_tool("call-1", fifth.registration) is fifth


# --- telling ------------------------------------------------------------------------------------------------


def test_the_summary_says_what_holds_for_how_long_and_how_long_it_has_left(lock: SessionLock, clock: Clock) -> None:
    """LSE-8: each hold in one line, a lease with its last progress."""
    assert lock.hold_summary() == "nothing holds the session"
    epoch = acquired(lock, 300)
    clock.now += 12
    lock.touch_llm(epoch)
    lock.set_summarizing(180)
    lock.register_tool("c1", "shell", 2.5)
    clock.now += 3
    assert lock.hold_summary() == (
        "llm (epoch 1) for 15.0 s, last progress 3.0 s ago, 297.0 s left; "
        "summarizing (epoch 2) for 3.0 s, 177.0 s left; tool shell (call c1) for 3.0 s, expired 0.5 s ago"
    )


def test_the_summary_is_one_line_whatever_a_model_calls_things(lock: SessionLock) -> None:
    """LSE-8: names come from models."""
    lock.register_tool("c\n1\x1b[31m\u2028", "loo\rk\ud800", 10)
    lock.register_tool("c" * 10_000, "look" * 10_000, 10)
    summary = lock.hold_summary()
    assert summary.isprintable()
    assert len(summary) < 500


def test_the_next_deadline_is_that_of_the_hold_that_expires_first(lock: SessionLock, clock: Clock) -> None:
    """LSE-8: of any kind; infinity if nothing is held."""
    assert lock.next_deadline() == math.inf
    epoch = acquired(lock, 40)
    assert lock.next_deadline() == 1040
    lock.register_tool("c1", "look", 30)
    lock.register_tool("c2", "look", 10)
    summary = lock.set_summarizing(20)
    assert lock.next_deadline() == 1010
    lock.complete_tool("c2")
    assert lock.next_deadline() == 1020
    lock.clear_summarizing(summary)
    assert lock.next_deadline() == 1030
    lock.release_all_tools()
    assert lock.next_deadline() == 1040
    lock.release_llm(epoch)
    assert lock.next_deadline() == math.inf


# --- time ---------------------------------------------------------------------------------------------------


def test_a_jump_of_the_wall_clock_changes_nothing(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """LSE-10, F-07: 40 minutes on, an hour back; no clock but the one given is read at all."""

    def read(*_: object) -> float:
        raise AssertionError("a clock was read that was not passed in")

    lock = SessionLock(clock)
    acquired(lock, 300)
    with monkeypatch.context() as patched:
        for name in ("time", "monotonic", "perf_counter"):
            patched.setattr(time, name, read)
        lock.set_summarizing()
        lock.register_tool("c1", "look", 30)
        clock.now += 1
        assert lock.sweep_expired() == ()
        assert lock.next_deadline() == 1030
        lock.hold_summary()


def test_a_budget_starts_when_the_hold_is_taken(lock: SessionLock, clock: Clock) -> None:
    """LSE-2, F-11: an input waited 400 seconds; its request has all of its 300."""
    clock.now += 400
    epoch = acquired(lock, 300)
    clock.now += 42
    assert lock.sweep_expired() == ()
    assert lock.release_llm(epoch)

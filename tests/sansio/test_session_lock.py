"""The session lock, rule by rule: what holds, leases, epochs, tools."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest

from concorde_trio import SessionLock
from concorde_trio._sansio.holds import ExpiredTool
from concorde_trio.errors import UsageError, WrongState
from tests.sansio.session_clock import Clock, acquired


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lock(clock: Clock) -> SessionLock:
    return SessionLock(clock)


# --- what holds ---------------------------------------------------------------------------------------------


def test_a_session_is_locked_while_any_of_the_three_kinds_is_held(lock: SessionLock) -> None:
    """LSE-1, boundary detection: is_locked is true while any is held, and at_tool_boundary is its inverse."""
    assert not lock.is_locked() and lock.at_tool_boundary()
    llm = acquired(lock)
    summary = lock.set_summarizing()
    lock.register_tool("c1", "look", 10)
    lock.register_tool("c2", "look", 10)
    for end in (
        lambda: lock.release_llm(llm),
        lambda: lock.clear_summarizing(summary),
        lambda: lock.complete_tool("c1"),
        lambda: lock.complete_tool("c2"),
    ):
        assert lock.is_locked() and not lock.at_tool_boundary()
        assert end()
    assert not lock.is_locked() and lock.at_tool_boundary()


def test_each_kind_alone_locks_the_session(clock: Clock) -> None:
    """LSE-1, the combined locked-state predicate: no kind is forgotten."""
    take: Any
    for take in (
        lambda lock: lock.try_acquire_llm(),
        lambda lock: lock.acquire_or_current_llm(),
        lambda lock: lock.set_summarizing(),
        lambda lock: lock.register_tool("c1", "look", 10),
    ):
        lock = SessionLock(clock)
        take(lock)
        assert lock.is_locked() and not lock.at_tool_boundary()


def test_the_tools_that_are_held_are_seen_and_cannot_be_written_to(lock: SessionLock) -> None:
    """LSE-1: active_tools, keyed by call_id, in order of registration."""
    tools = lock.active_tools
    first, second = lock.register_tool("c9", "look", 10), lock.register_tool("c1", "shell", 20)
    assert dict(tools) == {"c9": first, "c1": second} and list(tools) == ["c9", "c1"]
    with pytest.raises(TypeError):
        tools["c2"] = first  # type: ignore[index]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        first.timeout = 99  # type: ignore[misc]


# --- leases -------------------------------------------------------------------------------------------------


def test_only_one_model_request_is_out(lock: SessionLock) -> None:
    """LSE-4, LSE-5, LLM mutual exclusion: None while a request is out, and a refused attempt takes no epoch."""
    assert lock.try_acquire_llm(300) == 1
    assert lock.try_acquire_llm(300) is None
    assert lock.try_acquire_llm() is None
    assert lock.release_llm(1)
    assert lock.try_acquire_llm(300) == 2


def test_a_compaction_joins_the_lease_that_is_held_or_takes_one(lock: SessionLock, clock: Clock) -> None:
    """LSE-4: joining moves no deadline, and the answer says who has to release."""
    assert lock.acquire_or_current_llm(50) == (1, True)
    before = lock.llm
    clock.now += 20
    epoch, taken = lock.acquire_or_current_llm(500, ceiling=None)
    assert (epoch, taken) == (1, False)
    assert lock.llm == before
    lock.release_llm(1)
    assert lock.acquire_or_current_llm(50).taken


def test_a_second_summary_waits_for_the_first_to_be_cleared(lock: SessionLock) -> None:
    """LSE-4, LSE-11: it would end a hold that it does not name."""
    epoch = lock.set_summarizing(180)
    with pytest.raises(WrongState, match=f"epoch {epoch}"):
        lock.set_summarizing(180)
    assert lock.epoch_is_current(epoch)
    assert lock.last_epoch == epoch
    assert lock.clear_summarizing(epoch)
    assert lock.set_summarizing(180) == epoch + 1


def test_a_forced_release_ends_whatever_request_is_out(lock: SessionLock) -> None:
    """LSE-4: for interrupt and close, which name no epoch; it says what it ended, and leaves the rest alone."""
    assert lock.force_release_llm() is None
    epoch, summary = acquired(lock), lock.set_summarizing()
    ended = lock.force_release_llm()
    assert ended is not None and ended.epoch == epoch
    assert not lock.epoch_is_current(epoch)
    assert lock.epoch_is_current(summary)


def test_budgets_are_300_and_180_seconds_with_ceilings_of_3600_and_900(lock: SessionLock, clock: Clock) -> None:
    """LSE-2, LSE-9."""
    acquired(lock)
    lock.set_summarizing()
    llm, summary = lock.llm, lock.summarizing
    assert llm is not None and summary is not None
    assert (llm.acquired_at, llm.started_at, llm.timeout, llm.ceiling) == (clock.now, clock.now, 300, 3600)
    assert (summary.timeout, summary.ceiling) == (180, 900)
    assert (llm.deadline, summary.deadline) == (clock.now + 300, clock.now + 180)


def test_a_deadline_is_the_earlier_of_progress_and_ceiling(lock: SessionLock, clock: Clock) -> None:
    """LSE-2: started_at + timeout, or acquired_at + ceiling."""
    start = clock.now
    epoch = acquired(lock, 10, ceiling=15)
    assert lock.next_deadline() == start + 10
    clock.now += 4
    lock.touch_llm(epoch)
    assert lock.next_deadline() == start + 14
    clock.now += 4
    lock.touch_llm(epoch)
    assert lock.next_deadline() == start + 15
    lock.release_llm(epoch)
    acquired(lock, 10, ceiling=3)
    assert lock.next_deadline() == clock.now + 3


def test_a_hold_is_expired_at_its_deadline_and_not_before(lock: SessionLock, clock: Clock) -> None:
    """LSE-2: expired when now is at or after the deadline."""
    acquired(lock, 300)
    clock.now = math.nextafter(1300, 0)
    assert lock.sweep_expired() == ()
    clock.now = 1300
    assert [one.kind for one in lock.sweep_expired()] == ["llm"]


def test_an_expired_hold_stays_held_until_a_sweep_takes_it(lock: SessionLock, clock: Clock) -> None:
    """LSE-2: time alone changes nothing."""
    epoch = acquired(lock, 10)
    lock.register_tool("c1", "look", 10)
    clock.now += 1000
    assert lock.is_locked()
    assert lock.epoch_is_current(epoch)
    assert lock.try_acquire_llm() is None
    with pytest.raises(WrongState):
        lock.register_tool("c1", "look", 10)
    assert lock.next_deadline() == 1010
    assert len(lock.sweep_expired()) == 2
    assert not lock.is_locked()


# --- epochs -------------------------------------------------------------------------------------------------


def test_one_counter_names_the_holds_of_both_leases(lock: SessionLock) -> None:
    """LSE-5: the first is 1, only a granted hold takes one, and a tool takes none."""
    assert lock.last_epoch == 0
    assert lock.try_acquire_llm() == 1
    assert lock.set_summarizing() == 2
    lock.try_acquire_llm()
    lock.acquire_or_current_llm()
    lock.register_tool("c1", "look", 10)
    lock.release_llm(1)
    assert lock.acquire_or_current_llm() == (3, True)
    assert lock.last_epoch == 3


def test_epochs_go_on_after_a_restart(lock: SessionLock, clock: Clock) -> None:
    """LSE-5: a reply to the process that died is stale in the next one."""
    old = [acquired(lock), lock.set_summarizing()]
    tool = lock.register_tool("c1", "look", 10)
    again = SessionLock(clock, last_epoch=lock.last_epoch, last_registration=lock.last_registration)
    assert not again.is_locked()
    new = acquired(again)
    assert new == 3
    assert not any(again.epoch_is_current(epoch) or again.release_llm(epoch) for epoch in old)
    again.register_tool("c1", "look", 10)
    assert again.complete_tool("c1", tool.registration) is None


def test_an_epoch_ceases_to_be_current_once_its_lease_is_gone(lock: SessionLock, clock: Clock) -> None:
    """LSE-5: released, cleared, forced, or reaped; and none was current before."""
    assert not lock.epoch_is_current(0) and not lock.epoch_is_current(1)
    first = acquired(lock)
    lock.release_llm(first)
    second = lock.set_summarizing()
    assert lock.epoch_is_current(second) and not lock.epoch_is_current(first)
    lock.clear_summarizing(second)
    third = acquired(lock)
    lock.force_release_llm()
    fourth = acquired(lock)
    clock.now += 300
    assert lock.epoch_is_current(fourth)
    lock.sweep_expired()
    assert not any(lock.epoch_is_current(epoch) for epoch in (first, second, third, fourth))


@pytest.mark.parametrize("echoed", [None, "1", 1.0, True, [1], {}, -1, 2])
def test_what_a_host_echoes_instead_of_an_epoch_is_never_current(lock: SessionLock, echoed: Any) -> None:
    """LSE-5, LSE-11: whatever came back, it names nothing and changes nothing."""
    acquired(lock)
    assert lock.epoch_is_current(echoed) is False
    assert lock.touch_llm(echoed) is False
    assert lock.release_llm(echoed) is False
    assert lock.touch_summarizing(echoed) is False
    assert lock.clear_summarizing(echoed) is False
    lock.register_tool("c1", "look", 10)
    if echoed is not None:
        assert lock.complete_tool("c1", echoed) is None
    assert lock.epoch_is_current(1)


# --- tools --------------------------------------------------------------------------------------------------


def test_results_are_matched_by_call_id_in_any_order(lock: SessionLock) -> None:
    """LSE-6, F-15: three calls of one tool finish in another order, each with its own registration."""
    registered = {call: lock.register_tool(call, "weather", 10) for call in "abc"}
    for call in "cab":
        assert lock.complete_tool(call) == registered[call]
    assert lock.complete_tool("a") is None
    assert lock.complete_tool("weather") is None


def test_a_live_call_id_cannot_be_registered_again(lock: SessionLock) -> None:
    """LSE-6: an error, and the live one stays as it is."""
    first = lock.register_tool("c1", "look", 10)
    with pytest.raises(WrongState, match="'c1' is registered already, for 'look'"):
        lock.register_tool("c1", "shell", 99)
    assert lock.active_tools["c1"] is first
    assert lock.last_registration == first.registration
    lock.complete_tool("c1")
    assert lock.register_tool("c1", "shell", 99).tool_name == "shell"


def test_the_exec_kind_of_a_call_is_attached_once(lock: SessionLock) -> None:
    """LSE-6: decided at dispatch, there at the end, and not to be changed in between."""
    first = lock.register_tool("c1", "shell", 10)
    assert first.exec_kind is None
    assert lock.set_exec_kind("c1", "execute") == attrs.evolve(first, exec_kind="execute")
    assert lock.set_exec_kind("c1", "execute", first.registration) is not None
    with pytest.raises(WrongState, match="dispatched as 'execute'"):
        lock.set_exec_kind("c1", "read")
    assert lock.set_exec_kind("c2", "read") is None
    done = lock.complete_tool("c1", first.registration)
    assert done is not None and done.exec_kind == "execute"
    second = lock.register_tool("c1", "shell", 10)
    assert lock.set_exec_kind("c1", "read", first.registration) is None
    assert lock.active_tools["c1"] is second


def test_all_tools_are_released_in_order_of_registration(lock: SessionLock, clock: Clock) -> None:
    """LSE-6: whatever their deadlines, and without the one that ended before; the leases stay."""
    epoch = acquired(lock)
    tools = [lock.register_tool(call, "look", timeout) for call, timeout in (("c", 30), ("a", 10), ("b", 20))]
    lock.complete_tool("a")
    again = lock.register_tool("a", "look", 5)
    lock.set_exec_kind("c", "read")
    assert [tool.registration for tool in lock.release_all_tools()] == [
        tools[0].registration,
        tools[2].registration,
        again.registration,
    ]
    assert lock.release_all_tools() == ()
    assert lock.epoch_is_current(epoch)
    clock.now += 100
    assert lock.sweep_expired() == ()


def test_a_timed_out_tool_is_removed_and_its_late_result_finds_nothing(lock: SessionLock, clock: Clock) -> None:
    """LSE-7, F-13, tool timeout removal: at its own deadline, which is absolute; the real result comes a second later."""
    slow, fast = lock.register_tool("c1", "shell", 120), lock.register_tool("c2", "shell", 10)
    clock.now += 10
    assert lock.sweep_expired() == (ExpiredTool(fast, 10.0),)
    clock.now += 1
    assert lock.complete_tool("c2", fast.registration) is None
    assert list(lock.active_tools.values()) == [slow]


def test_a_tool_gets_all_its_time_when_it_is_registered_anew(lock: SessionLock, clock: Clock) -> None:
    """LSE-6, F-12: 360 seconds of waiting for a person are bounded by the question's time, not by the tool's."""
    question = lock.register_tool("c1", "shell", 600)
    clock.now += 360
    assert lock.sweep_expired() == ()
    lock.complete_tool("c1", question.registration)
    lock.register_tool("c1", "shell", 30)
    assert lock.next_deadline() == clock.now + 30


# --- wrong arguments ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", [0, -1, 0.0, math.inf, math.nan, None, "300", True, [300]])
def test_a_hold_without_a_bound_is_refused(lock: SessionLock, timeout: Any) -> None:
    """LSE-2: every hold is bounded; a refused one takes no number and changes nothing."""
    for take in (
        lock.try_acquire_llm,
        lock.acquire_or_current_llm,
        lock.set_summarizing,
        lambda timeout: lock.register_tool("c1", "look", timeout),
    ):
        with pytest.raises(UsageError, match="a timeout must be seconds above 0"):
            take(timeout)
    assert (lock.last_epoch, lock.last_registration, lock.is_locked()) == (0, 0, False)
    if timeout is not None:
        with pytest.raises(UsageError, match="a ceiling must be seconds above 0, or None"):
            lock.try_acquire_llm(300, ceiling=timeout)


def test_a_wrong_argument_fails_where_it_is_written(lock: SessionLock, clock: Clock) -> None:
    """LSE-5, LSE-6, LSE-10: misuse is loud, and says what was expected."""
    with pytest.raises(UsageError, match="gives monotonic seconds, such as trio.current_time"):
        SessionLock(clock())  # type: ignore[arg-type]
    for number in (-1, None, True, 1.0, "1"):
        with pytest.raises(UsageError, match="last_epoch must be the last number"):
            SessionLock(clock, last_epoch=number)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="last_registration must be the last number"):
            SessionLock(clock, last_registration=number)  # type: ignore[arg-type]
    names: Any
    for names in ((1, "look"), ("c1", None)):
        with pytest.raises(UsageError, match="must be strings"):
            lock.register_tool(names[0], names[1], 10)
    lock.register_tool("c1", "look", 10)
    for kind in ("", None, 3):
        with pytest.raises(UsageError, match="an exec kind must be a word"):
            lock.set_exec_kind("c1", kind)  # type: ignore[arg-type]


def test_a_clock_that_fails_leaves_everything_as_it_was() -> None:
    """LSE-5: the clock is read before anything changes."""
    broken = False

    def clock() -> float:
        if broken:
            raise OSError("no time")
        return 1.0

    lock = SessionLock(clock)
    epoch = lock.set_summarizing()
    broken = True
    for call in (
        lock.try_acquire_llm,
        lock.acquire_or_current_llm,
        lambda: lock.touch_summarizing(epoch),
        lambda: lock.register_tool("c1", "look", 10),
        lock.sweep_expired,
    ):
        with pytest.raises(OSError):
            call()
    assert (lock.last_epoch, lock.last_registration) == (epoch, 0)
    assert lock.llm is None and not lock.active_tools
    assert lock.epoch_is_current(epoch)


# --- work that its own deadline ended -----------------------------------------------------------------------


@pytest.mark.parametrize("what", ["llm", "summarizing"])
def test_work_that_was_ended_at_its_deadline_ends_its_lease_whatever_moved_it(
    lock: SessionLock, clock: Clock, what: str
) -> None:
    """SES-3, LSE-11: progress that was still queued came too late; a stale epoch ends nothing, and is told so."""
    llm, summary = acquired(lock, 100), lock.set_summarizing(100)
    epoch, other = (llm, summary) if what == "llm" else (summary, llm)
    clock.now += 100
    assert (lock.touch_llm if what == "llm" else lock.touch_summarizing)(epoch)
    expired = lock.expire(epoch)
    assert expired is not None
    assert (expired.kind, expired.epoch, expired.waited, expired.reason) == (what, epoch, 0, "progress")
    assert lock.expire(epoch) is None and lock.expire(77) is None
    assert not lock.epoch_is_current(epoch) and lock.epoch_is_current(other)


def test_a_call_that_was_ended_at_its_deadline_ends_its_own_registration_alone(lock: SessionLock, clock: Clock) -> None:
    """SES-3, LSE-11: not a later one of the same id."""
    first = lock.register_tool("c", "look", 10)
    lock.complete_tool("c")
    second = lock.register_tool("c", "look", 10)
    clock.now += 9
    assert lock.expire_tool("c", first.registration) is None
    expired = lock.expire_tool("c", second.registration)
    assert expired is not None and (expired.tool, expired.waited) == (second, 9)
    assert lock.expire_tool("c", second.registration) is None
    assert not lock.is_locked() and lock.sweep_expired() == ()

"""The session lock against a slow, obvious model, in any order of operations (LSE-1 to LSE-11)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from concorde_trio._sansio.holds import Expired, ExpiredTool
from concorde_trio._sansio.session_lock import SessionLock
from concorde_trio.errors import WrongState
from tests.sansio.session_lock_model import LLM, SUMMARIZING, TOOL, SessionLockModel

# Few values, so that deadlines fall together; quarters, so that sums are exact.
SECONDS = st.sampled_from([0.25, 0.5, 1.0, 2.0, 5.0])
CEILINGS = st.sampled_from([None, 0.5, 2.0, 3.0])
CALLS = st.sampled_from("abc")
BACK = st.integers(0, 3)
"""How many numbers ago the named hold was granted: 0 the latest, which may be held or not; the others may be stale."""


class SessionLockMachine(RuleBasedStateMachine):
    """The same calls to both; the answers and everything that can be seen must be equal."""

    def __init__(self) -> None:
        super().__init__()
        self.model = SessionLockModel()
        self.lock = SessionLock(lambda: self.model.now)
        self.granted: set[tuple[str, int]] = set()
        self.ended: set[tuple[str, int]] = set()

    @initialize(epoch=st.integers(0, 5), registration=st.integers(0, 5))
    def after_a_restart(self, epoch: int, registration: int) -> None:
        self.restart(epoch, registration)

    def restart(self, epoch: int, registration: int) -> None:
        model = self.model
        now = model.now
        self.model = SessionLockModel(epoch, registration)
        self.model.now = now
        self.lock = SessionLock(lambda: self.model.now, last_epoch=epoch, last_registration=registration)

    @rule()
    def the_process_dies_and_a_new_one_goes_on(self) -> None:
        self.ended |= {(hold["kind"], hold["name"]) for hold in self.model.holds}
        self.restart(self.lock.last_epoch, self.lock.last_registration)

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: float) -> None:
        self.model.now += seconds

    @rule()
    def time_reaches_the_next_deadline(self) -> None:
        if (deadline := self.lock.next_deadline()) < math.inf:
            self.model.now = max(self.model.now, deadline)

    @rule(timeout=SECONDS, ceiling=CEILINGS)
    def try_acquire_llm(self, timeout: float, ceiling: float | None) -> None:
        epoch = self.lock.try_acquire_llm(timeout, ceiling=ceiling)
        assert epoch == self.model.lease(LLM, timeout, ceiling)
        self.grant("lease", epoch)

    @rule(timeout=SECONDS, ceiling=CEILINGS)
    def acquire_or_current_llm(self, timeout: float, ceiling: float | None) -> None:
        held = self.model.of(LLM)
        got = self.lock.acquire_or_current_llm(timeout, ceiling=ceiling)
        assert got == ((held[0]["name"], False) if held else (self.model.lease(LLM, timeout, ceiling), True))
        if got.taken:
            self.grant("lease", got.epoch)

    @rule(timeout=SECONDS, ceiling=CEILINGS)
    def set_summarizing(self, timeout: float, ceiling: float | None) -> None:
        expected = self.model.lease(SUMMARIZING, timeout, ceiling)
        if expected is None:
            with pytest.raises(WrongState):
                self.lock.set_summarizing(timeout, ceiling=ceiling)
        else:
            assert self.lock.set_summarizing(timeout, ceiling=ceiling) == expected
            self.grant("lease", expected)

    @rule(back=BACK)
    def touch_both(self, back: int) -> None:
        epoch = self.model.epoch - back
        assert self.lock.touch_llm(epoch) is self.model.touch(LLM, epoch)
        assert self.lock.touch_summarizing(epoch) is self.model.touch(SUMMARIZING, epoch)

    @rule(back=BACK)
    def release_llm(self, back: int) -> None:
        epoch = self.model.epoch - back
        self.note((LLM, epoch), self.lock.release_llm(epoch), self.model.end(LLM, epoch))

    @rule(back=BACK)
    def clear_summarizing(self, back: int) -> None:
        epoch = self.model.epoch - back
        self.note((SUMMARIZING, epoch), self.lock.clear_summarizing(epoch), self.model.end(SUMMARIZING, epoch))

    def grant(self, kind: str, number: int | None) -> None:
        if number is not None:
            assert (kind, number) not in self.granted, "one name for two holds"
            self.granted.add((kind, number))

    def note(self, hold: tuple[str, int], ended: bool, expected: bool) -> None:
        assert ended is expected
        if ended:
            assert hold not in self.ended, "a hold ended twice"
            self.ended.add(hold)

    @rule()
    def force_release_llm(self) -> None:
        held = self.model.of(LLM)
        lease = self.lock.force_release_llm()
        assert (lease.epoch if lease else None) == (held[0]["name"] if held else None)
        if lease:
            self.note((LLM, lease.epoch), True, self.model.end(LLM, lease.epoch))

    @rule(call_id=CALLS, timeout=SECONDS)
    def register_tool(self, call_id: str, timeout: float) -> None:
        if self.model.tool(call_id, None) is not None:
            with pytest.raises(WrongState):
                self.lock.register_tool(call_id, "look", timeout)
        else:
            registered = self.lock.register_tool(call_id, "look", timeout)
            assert registered.registration == self.model.register(call_id, timeout)
            self.grant(TOOL, registered.registration)

    @rule(call_id=CALLS, back=st.none() | BACK)
    def complete_tool(self, call_id: str, back: int | None) -> None:
        registration = None if back is None else self.model.registration - back
        expected = self.model.tool(call_id, registration)
        tool = self.lock.complete_tool(call_id, registration)
        assert (tool.registration if tool else None) == (expected["name"] if expected else None)
        if tool and expected:
            assert tool.exec_kind == expected["exec_kind"]
            self.model.holds.remove(expected)
            self.note((TOOL, tool.registration), True, True)

    @rule(call_id=CALLS, back=st.none() | BACK, kind=st.sampled_from(["read", "write"]))
    def set_exec_kind(self, call_id: str, back: int | None, kind: str) -> None:
        registration = None if back is None else self.model.registration - back
        expected = self.model.tool(call_id, registration)
        if expected and expected["exec_kind"] not in (None, kind):
            with pytest.raises(WrongState):
                self.lock.set_exec_kind(call_id, kind, registration)
            return
        tool = self.lock.set_exec_kind(call_id, kind, registration)
        assert (tool.registration if tool else None) == (expected["name"] if expected else None)
        if expected:
            expected["exec_kind"] = kind

    @rule()
    def release_all_tools(self) -> None:
        tools = self.lock.release_all_tools()
        assert [tool.registration for tool in tools] == [hold["name"] for hold in self.model.of(TOOL)]
        for tool in tools:
            self.note((TOOL, tool.registration), True, True)
        self.model.holds = [hold for hold in self.model.holds if hold["kind"] != TOOL]

    @rule()
    def sweep_expired(self) -> None:
        expired = self.lock.sweep_expired()
        assert [(one.kind, number(one), one.waited, one.reason) for one in expired] == self.model.sweep()
        for one in expired:
            self.note((one.kind, number(one)), True, True)
        assert self.lock.sweep_expired() == ()

    @rule(back=BACK)
    def expire(self, back: int) -> None:
        """SES-3: a lease's work was ended by its deadline, whatever moved the lease since."""
        epoch = self.model.epoch - back
        held = [hold for hold in self.model.holds if hold["kind"] != TOOL and hold["name"] == epoch]
        self.took(self.lock.expire(epoch), held)

    @rule(call_id=CALLS, back=BACK)
    def expire_tool(self, call_id: str, back: int) -> None:
        registration = self.model.registration - back
        held = self.model.tool(call_id, registration)
        self.took(self.lock.expire_tool(call_id, registration), [held] if held else [])

    def took(self, one: Expired | None, held: list[dict[str, Any]]) -> None:
        told = None if one is None else (one.kind, number(one), one.waited, one.reason)
        assert told == (self.model.expire(held[0]) if held else None)
        if one is not None:
            self.note((one.kind, number(one)), True, True)

    @invariant()
    def all_that_can_be_seen_is_equal(self) -> None:
        lock, model = self.lock, self.model
        assert lock.is_locked() is bool(model.holds)
        assert lock.at_tool_boundary() is not lock.is_locked()
        assert lock.next_deadline() == model.next_deadline()
        assert (lock.last_epoch, lock.last_registration) == (model.epoch, model.registration)
        leases = {hold["name"] for hold in model.holds if hold["kind"] != TOOL}
        for epoch in range(model.epoch + 2):
            assert lock.epoch_is_current(epoch) is (epoch in leases)
        for kind, lease in ((LLM, lock.llm), (SUMMARIZING, lock.summarizing)):
            held = model.of(kind)
            assert ([(lease.epoch, lease.acquired_at, lease.started_at, lease.deadline)] if lease else []) == [
                (hold["name"], hold["acquired"], hold["started"], model.deadline(hold)) for hold in held
            ]
        assert [
            (call_id, tool.call_id, tool.registration, tool.exec_kind, tool.deadline)
            for call_id, tool in lock.active_tools.items()
        ] == [
            (hold["call_id"], hold["call_id"], hold["name"], hold["exec_kind"], model.deadline(hold))
            for hold in model.of(TOOL)
        ]
        summary = lock.hold_summary()
        assert "\n" not in summary
        assert summary.count(" s left") + summary.count("expired ") == len(model.holds)

    def teardown(self) -> None:
        """LSE-2, LSE-9: whatever happened, nothing is held any more when the longest bound has passed."""
        for _ in range(1 + len(self.model.holds)):
            self.model.now = max(self.model.now, min(self.lock.next_deadline(), 1e9))
            self.sweep_expired()
        assert not self.lock.is_locked()
        assert self.lock.next_deadline() == math.inf


def number(one: Expired) -> int:
    return one.tool.registration if isinstance(one, ExpiredTool) else one.epoch


TestSessionLock = SessionLockMachine.TestCase

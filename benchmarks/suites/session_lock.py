"""The session lock's speed.

Acquire-and-release pairs of a model request, a touch, a tool registered and completed beside others, and a sweep that
finds nothing. Beside each stands the least that the same bookkeeping could cost: attributes and a dict that keep the
number and the deadline of a hold, which check nothing, tell no stale caller, and can say nothing of what they hold.
Both read the same clock, and processor time is counted. They are measured in turns, in one run; a figure is the median of its rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.bench import Bench
from benchmarks.figures import Beside, Figure, Goal
from concorde_trio._sansio.session_lock import SessionLock

CALLS = 5_000
"""Calls, or pairs of calls, in one round."""
TOOLS = 100
"""Tools that stay registered meanwhile."""


class Bare:
    """The reference: an attribute for the lease, a dict for the tools, deadlines in both."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.epoch = 0
        self.llm: tuple[int, float] | None = None
        self.tools: dict[str, float] = {}

    def try_acquire_llm(self, timeout: float) -> int | None:
        if self.llm is not None:
            return None
        self.epoch += 1
        self.llm = (self.epoch, self.clock() + timeout)
        return self.epoch

    def release_llm(self, epoch: int) -> bool:
        self.llm = None
        return True

    def touch_llm(self, epoch: int) -> bool:
        self.llm = (epoch, self.clock() + 300.0)
        return True

    def register_tool(self, call_id: str, tool_name: str, timeout: float) -> None:
        self.tools[call_id] = self.clock() + timeout

    def complete_tool(self, call_id: str) -> float | None:
        return self.tools.pop(call_id, None)

    def sweep_expired(self) -> tuple[str, ...]:
        now = self.clock()
        return tuple([call_id for call_id, deadline in self.tools.items() if now >= deadline])


Lock = SessionLock | Bare


def pairs_a_second(lock: Lock) -> float:
    """A request goes out and comes back, nothing else is held."""
    begun = time.thread_time()
    for _ in range(CALLS):
        epoch = lock.try_acquire_llm(300.0)
        assert epoch is not None
        lock.release_llm(epoch)
    return CALLS / (time.thread_time() - begun)


def touches_a_second(lock: Lock) -> float:
    """What every chunk of a stream costs the lock."""
    epoch = lock.try_acquire_llm(300.0)
    assert epoch is not None
    begun = time.thread_time()
    for _ in range(CALLS):
        lock.touch_llm(epoch)
    seconds = time.thread_time() - begun
    lock.release_llm(epoch)
    return CALLS / seconds


def tool_pairs_a_second(lock: Lock) -> float:
    """A call starts and ends, while others are out."""
    begun = time.thread_time()
    for _ in range(CALLS):
        lock.register_tool("call", "look", 120.0)
        lock.complete_tool("call")
    return CALLS / (time.thread_time() - begun)


def sweeps_a_second(lock: Lock) -> float:
    """Nothing has expired."""
    begun = time.thread_time()
    for _ in range(CALLS):
        lock.sweep_expired()
    return CALLS / (time.thread_time() - begun)


def busy(lock: Lock) -> Lock:
    """With tools that stay out for an hour."""
    for number in range(TOOLS):
        lock.register_tool(f"call {number}", "look", 3600.0)
    return lock


MEASURED: dict[str, tuple[Callable[[Lock], float], bool]] = {
    "acquire and release": (pairs_a_second, False),
    "touch": (touches_a_second, False),
    f"register and complete a tool, {TOOLS} tools out": (tool_pairs_a_second, True),
    f"a sweep that finds nothing, {TOOLS} tools out": (sweeps_a_second, True),
}
"""What is measured, and whether with tools that are out."""


def suite(bench: Bench) -> Iterator[Figure]:
    """The session lock's figures; its goal is 200,000 pairs a second."""
    locks: dict[bool, tuple[Lock, Lock]] = {
        False: (SessionLock(time.monotonic), Bare(time.monotonic)),
        True: (busy(SessionLock(time.monotonic)), busy(Bare(time.monotonic))),
    }
    contenders = {
        f"{which} {name}": partial(measure, lock)
        for name, (measure, with_tools) in MEASURED.items()
        for which, lock in zip(("ours", "bare"), locks[with_tools], strict=True)
    }
    found = bench.in_turns("leases and tools", contenders, bench.times(31, 7))
    for name in MEASURED:
        ours = found[f"ours {name}"]
        goal = Goal(says="200,000 pairs a second", sample=ours, bound=200_000, absolute=True)
        yield Figure(
            name=name,
            unit="/s",
            sample=ours,
            beside=(Beside(what="attributes and a dict", sample=found[f"bare {name}"], kind="limit"),),
            goal=goal if name == "acquire and release" else None,
        )

"""When each part of a scenario happens: one thing at a time, in an order that no scheduler decides.

The law of this module: whoever waits here is woken alone, and the next is woken once everything that the first one led to
has happened. At one instant the session's own timers come first (what ends then is late, LSE-2), then inputs in file order,
then the model, the summary model and the tools, each in the order of the file.
"""

from __future__ import annotations

import heapq
from collections.abc import Awaitable, Callable

import attrs
import trio

from concorde_trio.simulate.ticks import Ticks

INPUT, MODEL, SUMMARY, TOOL = range(4)
"""Who comes first at one instant."""


@attrs.define(order=True)
class _Cue:
    at: float
    who: int
    place: int
    number: int
    act: Callable[[], Awaitable[object]] | None = attrs.field(default=None, order=False)
    come: trio.Event = attrs.field(factory=trio.Event, order=False)
    over: bool = attrs.field(default=False, order=False)


class Cues:
    """All that the scenario has yet to do. Times that come in are seconds, times that go out are ticks."""

    def __init__(self, ticks: Ticks) -> None:
        self._ticks = ticks
        self._heap: list[_Cue] = []
        self._count = 0

    def at(self, seconds: float, place: int, act: Callable[[], Awaitable[object]]) -> None:
        """Have ``act`` called and awaited then, as an input: ``place`` is its place in the file."""
        self._add(self._ticks.of(seconds), INPUT, place, act)

    async def after(self, seconds: float, who: int, place: int) -> None:
        """Wait so long; ``who`` and ``place`` say who comes first at one instant. Cancelled, it takes no time at all."""
        cue = self._add(trio.current_time() + self._ticks.of(seconds), who, place)
        try:
            await cue.come.wait()
        finally:
            cue.over = True

    def next(self) -> float:
        """When the next one is due; infinity if there is none."""
        while self._heap and self._heap[0].over:
            heapq.heappop(self._heap)
        return self._heap[0].at if self._heap else float("inf")

    async def give(self) -> None:
        """Give the next one its cue."""
        cue = heapq.heappop(self._heap)
        cue.come.set()
        if cue.act is not None:
            await cue.act()

    def _add(self, at: float, who: int, place: int, act: Callable[[], Awaitable[object]] | None = None) -> _Cue:
        self._count += 1
        cue = _Cue(at, who, place, self._count, act)
        heapq.heappush(self._heap, cue)
        return cue

"""Counts what happens in a worker, from its events and from what it measures, for whoever makes metrics of it.

The law: what is kept is bounded whatever happens: no session, run or tool's argument ever becomes a name that is counted under, kinds
of signals are counted by name up to ``MOST_KINDS``, and what waits is forgotten when it starts or ends. It runs in the worker's own
task for every event, so a count is a few dictionary operations.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from concorde_trio import events

MOST_KINDS = 100
"""Kinds that are counted by their own name; later ones are counted together as OTHER."""
OTHER = "other"

WAITS = (0.005, 0.02, 0.1, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200, 43_200)
"""Upper bounds in seconds, for how long runs wait and last."""
MOMENTS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
"""The same for commits and for the event loop."""


class Bus(Protocol):
    """Where events are told: a worker's EventBus."""

    def call(self, function: Callable[[events.Event], None]) -> None:
        """Call this with every event."""
        ...

    def measure(self, function: Callable[[str, float], None]) -> None:
        """Call this with what took how long."""
        ...


class Histogram:
    """How many values were at most each of ``bounds``, and more than the last; and what they were together."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, float]]:
        """Each bound as Prometheus writes it, with how many values were no greater."""
        found, count = [], 0
        for bound, here in zip((*self.bounds, float("inf")), self.counts, strict=True):
            count += here
            found.append(("+Inf" if bound == float("inf") else repr(float(bound)), float(count)))
        return found


class Tally:
    """Counts; see ``watch`` for how it is told."""

    def __init__(self) -> None:
        self.claimed: Counter[str] = Counter()
        self.settled: Counter[tuple[str, str]] = Counter()
        self.ended: Counter[str] = Counter()
        self.expired: Counter[tuple[str, str]] = Counter()
        self.requests: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.turns: Counter[str] = Counter()
        self.inputs: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.abandoned = 0
        self.blocked: Counter[str] = Counter()
        self.blocked_seconds: dict[str, float] = {"handler": 0.0, "loop": 0.0}
        self.waited = Histogram(WAITS)
        self.lasted = Histogram(WAITS)
        self.took = {"commit": Histogram(MOMENTS), "lag": Histogram(MOMENTS)}
        self._kinds: set[str] = set()
        self._queued: dict[str, float] = {}
        self._started: dict[str, float] = {}
        self._takes: dict[type[events.Event], Callable[[Any], None]] = {
            events.SignalClaimed: self._signal_claimed,
            events.SignalSettled: self._signal_settled,
            events.RunQueued: self._run_queued,
            events.RunStarted: self._run_started,
            events.RunEnded: self._run_ended,
            events.HoldExpired: self._hold_expired,
            events.ModelRequested: self._model_requested,
            events.ModelFailed: self._model_failed,
            events.CallEnded: self._call_ended,
            events.TurnEnded: self._turn_ended,
            events.InputAccepted: self._input_accepted,
            events.InputRejected: self._input_rejected,
            events.ReplyDropped: self._reply_dropped,
            events.WorkAbandoned: self._work_abandoned,
            events.LoopBlocked: self._loop_blocked,
            events.HandleBlocked: self._loop_blocked,
        }

    def __call__(self, event: events.Event) -> None:
        """Count an event."""
        take = self._takes.get(type(event))
        if take is not None:
            take(event)

    def measured(self, what: str, seconds: float) -> None:
        """Count what took how long."""
        histogram = self.took.get(what)
        if histogram is not None:
            histogram.add(seconds)

    def _kind(self, kind: str) -> str:
        if kind not in self._kinds:
            if len(self._kinds) >= MOST_KINDS:
                return OTHER
            self._kinds.add(kind)
        return kind

    def _signal_claimed(self, event: events.SignalClaimed) -> None:
        self.claimed[self._kind(event.kind)] += 1

    def _signal_settled(self, event: events.SignalSettled) -> None:
        self.settled[self._kind(event.kind), event.state.value] += 1

    def _run_queued(self, event: events.RunQueued) -> None:
        self._queued[event.run_id] = event.at

    def _run_started(self, event: events.RunStarted) -> None:
        self._started[event.run_id] = event.at
        queued = self._queued.pop(event.run_id, None)
        if queued is not None:  # None: it was queued by an earlier worker
            self.waited.add(max(0.0, event.at - queued))

    def _run_ended(self, event: events.RunEnded) -> None:
        self.ended[event.state.value] += 1
        self._queued.pop(event.run_id, None)
        started = self._started.pop(event.run_id, None)
        if started is not None:
            self.lasted.add(max(0.0, event.at - started))

    def _hold_expired(self, event: events.HoldExpired) -> None:
        self.expired[event.what, event.reason] += 1

    def _model_requested(self, event: events.ModelRequested) -> None:
        self.requests[event.purpose] += 1

    def _model_failed(self, event: events.ModelFailed) -> None:
        self.failures[event.purpose] += 1

    def _call_ended(self, event: events.CallEnded) -> None:
        self.calls[str(event.outcome.value)] += 1

    def _turn_ended(self, event: events.TurnEnded) -> None:
        self.turns[event.outcome] += 1

    def _input_accepted(self, event: events.InputAccepted) -> None:
        self.inputs["accepted"] += 1

    def _input_rejected(self, event: events.InputRejected) -> None:
        self.inputs["rejected"] += 1

    def _reply_dropped(self, event: events.ReplyDropped) -> None:
        self.dropped[event.what] += 1

    def _work_abandoned(self, event: events.WorkAbandoned) -> None:
        self.abandoned += 1

    def _loop_blocked(self, event: events.LoopBlocked | events.HandleBlocked) -> None:
        # A plain handler that blocks for long is seen twice: by its own clock, and by the watchdog.
        by = "handler" if isinstance(event, events.HandleBlocked) else "loop"
        self.blocked[by] += 1
        self.blocked_seconds[by] += event.seconds


def watch(bus: Bus) -> Tally:
    """A tally of what happens in a worker from now on, by its ``bus``."""
    tally = Tally()
    bus.call(tally)
    bus.measure(tally.measured)
    return tally

"""Metrics of a worker for Prometheus: what was counted, and what the store and the sessions are like now (SRV-7).

The law: every name and label is one of a few that are known beforehand, but for kinds of signals, which are bounded; none is a
session, a run or a text of anybody's. A store that does not answer costs its own numbers and two seconds, and the rest is given.

The only owner of ``prometheus_client``, which the extra ``metrics`` brings.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol

import trio
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from concorde_trio.conversations.keeper import keeps_sessions, sessions_of
from concorde_trio.errors import ConcordeError, WrongState
from concorde_trio.observability.tally import Histogram, Tally, watch
from concorde_trio.signals.event_bus import EventBus
from concorde_trio.signals.store import SignalStore

PATIENCE = 2.0
"""Seconds in which the store must say how many signals and runs it has."""


class Watched(Protocol):
    """What is watched; SignalWorker is one."""

    @property
    def bus(self) -> EventBus:
        """Its events."""
        ...

    @property
    def store(self) -> SignalStore:
        """Its queue."""
        ...

    @property
    def runtime(self) -> object:
        """What executes its runs."""
        ...

    @property
    def status(self) -> str:
        """starting, running, stopping or stopped."""
        ...


class Metrics(Collector):
    """The metrics of one worker, counted from now on: ``metrics = Metrics(worker)``, then ``await metrics.text()``.

    It can be registered with your own: ``prometheus_client.REGISTRY.register(metrics)``; call ``await metrics.refresh()`` before
    you write that out, or what the store knows stays as it was. ``tally``: what was counted already.
    """

    def __init__(self, worker: Watched, *, tally: Tally | None = None) -> None:
        self._worker = worker
        self._tally = watch(worker.bus) if tally is None else tally
        self._counts: Mapping[str, Mapping[str, int]] | None = None
        self._read_seconds = 0.0

    async def refresh(self) -> None:
        """Ask the store how many signals and runs it has; never raises for a store that fails or does not answer."""
        began = time.perf_counter()
        self._counts = None
        with trio.move_on_after(PATIENCE):
            try:
                self._counts = await self._worker.store.counts()
            except ConcordeError:
                pass
        self._read_seconds = time.perf_counter() - began

    async def text(self, accept: str = "") -> tuple[bytes, str]:
        """All of it now, in the format that an Accept header asks for, and its content type."""
        await self.refresh()
        encode, content_type = choose_encoder(accept)
        return encode(self), content_type

    def collect(self) -> Iterable[Metric]:
        """Every metric."""
        yield from self._of_signals()
        yield from self._of_runs()
        yield from self._of_sessions()
        yield from self._of_machine()

    def _of_signals(self) -> Iterable[Metric]:
        tally, counts = self._tally, self._counts
        if counts is not None:
            yield _gauges("signals", "Signals in the store by state.", "state", counts["signals"])
            yield _gauge("queue_depth", "Signals that nobody has claimed yet.", counts["signals"].get("pending", 0))
        yield _counters("signals_claimed", "Signals whose handle was called, by kind.", "kind", tally.claimed)
        settled = CounterMetricFamily(_name("signals_settled"), "Signals that ended.", labels=("kind", "state"))
        for labels, count in sorted(tally.settled.items()):
            settled.add_metric(labels, count)
        yield settled

    def _of_runs(self) -> Iterable[Metric]:
        tally, counts = self._tally, self._counts
        if counts is not None:
            yield _gauges("runs", "Runs in the store by state.", "state", counts["runs"])
            yield _gauge(
                "runs_waiting", "Runs that wait for their locks or their turn.", counts["runs"].get("pending", 0)
            )
        yield _counters("runs_ended", "Runs that ended, by their outcome.", "state", tally.ended)
        yield _histogram("run_wait_seconds", "From a run's place in the queue to its start.", tally.waited)
        yield _histogram("run_seconds", "From a run's start to its end.", tally.lasted)

    def _of_sessions(self) -> Iterable[Metric]:
        tally = self._tally
        loops: Counter[str] = Counter()
        queued = 0
        if keeps_sessions(self._worker.runtime):
            try:
                for loop in sessions_of(self._worker.runtime).loops.values():
                    loops[loop.machine.status] += 1
                    queued += len(loop.machine.books.queue)
            except WrongState:
                pass  # not open
        yield _gauges("sessions", "Sessions in memory by what they do.", "status", loops)
        yield _gauge("session_inputs_queued", "Inputs that wait in the queues of sessions in memory.", queued)
        expired = CounterMetricFamily(
            _name("holds_expired"), "Holds that were taken away because their time was up.", labels=("hold", "reason")
        )
        for labels, count in sorted(tally.expired.items()):
            expired.add_metric(labels, count)
        yield expired
        yield _counters("model_requests", "Requests to a model, by what for.", "purpose", tally.requests)
        yield _counters("model_failures", "Requests to a model that failed.", "purpose", tally.failures)
        yield _counters("tool_calls", "Calls of tools, by their outcome.", "outcome", tally.calls)
        yield _counters("turns", "Turns of sessions, by their outcome.", "outcome", tally.turns)
        yield _counters("inputs", "Inputs of people, accepted or rejected.", "answer", tally.inputs)
        yield _counters("late", "What came too late for its hold, and was dropped.", "what", tally.dropped)
        yield _counter("work_abandoned", "Work of calls that went on though nobody waited for it.", tally.abandoned)

    def _of_machine(self) -> Iterable[Metric]:
        tally = self._tally
        yield _gauge("worker_running", "1 while the worker takes signals.", float(self._worker.status == "running"))
        yield _gauge("store_up", "1 if the store said in time how many rows it has.", float(self._counts is not None))
        yield _gauge("store_read_seconds", "How long the store took to say so.", self._read_seconds)
        yield _histogram("store_commit_seconds", "How long commits of the worker took.", tally.took["commit"])
        yield _histogram("loop_lag_seconds", "How long the event loop took to come to a task.", tally.took["lag"])
        yield _counters("loop_blocked", "How often something held up the event loop.", "seen", tally.blocked)
        yield _counters("loop_blocked_seconds", "For how long, together.", "seen", tally.blocked_seconds)


def _name(name: str) -> str:
    return f"concorde_trio_{name}"


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(_name(name), about, value=value)


def _gauges(name: str, about: str, label: str, values: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(_name(name), about, labels=(label,))
    for value, count in sorted(values.items()):
        family.add_metric((value,), count)
    return family


def _counter(name: str, about: str, value: float) -> Metric:
    return CounterMetricFamily(_name(name), about, value=value)


def _counters(name: str, about: str, label: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(_name(name), about, labels=(label,))
    for value, count in sorted(values.items()):
        family.add_metric((value,), count)
    return family


def _histogram(name: str, about: str, histogram: Histogram) -> Metric:
    return HistogramMetricFamily(_name(name), about, buckets=histogram.cumulative(), sum_value=histogram.total)

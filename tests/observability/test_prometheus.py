"""Metrics of a real worker, read back by Prometheus's own parsers."""

from __future__ import annotations

import time
from typing import Any

import prometheus_client
import pytest
import trio
import trio.testing
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from concorde_trio import InProcessRuntime, MemoryStore, Prompt, ScriptedModel, open_worker, tool
from concorde_trio._sansio.model_events import CallStarted, ReplyEnd, StopReason, TextDelta
from concorde_trio.errors import StoreError
from concorde_trio.observability.prometheus import PATIENCE, Metrics

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: bytes) -> Samples:
    """Every sample by its name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    """One of them."""
    return samples[f"concorde_trio_{name}", frozenset(labels.items())]


class Jobs:
    """Makes two runs for two sessions, one of which waits for a third."""

    def handle(self, signal: Any) -> list[Prompt]:
        """Payload: the sessions."""
        return [Prompt(text="go", session=session) for session in signal.payload]


def answer(request: Any) -> Any:
    """A model that calls a tool once, and then says so."""
    if request.messages[-1].role == "user":
        return [(1, CallStarted(0, f"c{len(request.messages)}", "look", "{}")), (0, ReplyEnd(StopReason.CALLS))]
    return [(1, TextDelta("so")), (0, ReplyEnd())]


@tool
async def look() -> str:
    """Look."""
    await trio.sleep(1)
    return "seen"


async def test_what_a_worker_did_is_in_its_metrics(autojump_clock: trio.testing.MockClock) -> None:
    """SRV-7: signals, runs by state, waiting, wait time, queue, store, sessions, requests and calls."""
    runtime = InProcessRuntime(model=ScriptedModel(answer), tools=[look])
    clock = time.time() - trio.current_time()
    options: Any = {"wall_clock": lambda: clock + trio.current_time(), "claim_ahead": 1}
    async with open_worker(MemoryStore(), runtime, {"jobs": Jobs()}, **options) as worker:
        metrics = Metrics(worker)
        signals = [await worker.emit("jobs", ["ann", "ann", "bob"])]
        signals += [await worker.emit("jobs", ["ann"]) for _ in range(3)]
        await trio.sleep(1.5)
        busy = read((await metrics.text())[0])
        for signal_id in signals:
            await worker.wait_settled(signal_id)
        text, content_type = await metrics.text()
        done = read(text)
    assert content_type.startswith("text/plain")
    assert value(busy, "runs", state="running") == 2
    assert value(busy, "runs_waiting") == value(busy, "runs", state="pending") >= 1
    assert value(busy, "queue_depth") == value(busy, "signals", state="pending") >= 1
    assert value(busy, "sessions", status="tools") == 2
    assert value(busy, "worker_running") == value(busy, "store_up") == 1
    assert value(done, "signals_claimed_total", kind="jobs") == len(signals)
    assert value(done, "signals_settled_total", kind="jobs", state="done") == len(signals)
    ended = value(done, "runs_ended_total", state="done")
    assert ended == 6
    assert value(done, "run_seconds_count") == value(done, "run_wait_seconds_count") == ended
    assert value(done, "run_seconds_sum") == pytest.approx(3 * ended)
    assert value(done, "run_wait_seconds_bucket", le="0.005") == 2
    assert value(done, "run_wait_seconds_bucket", le="+Inf") == ended
    assert value(done, "run_wait_seconds_sum") >= 3
    assert value(done, "model_requests_total", purpose="turn") == 2 * ended
    assert value(done, "tool_calls_total", outcome="ok") == ended
    assert value(done, "store_commit_seconds_count") > 5
    assert "ann" not in text.decode()


async def test_both_formats_are_read_by_the_official_parsers(autojump_clock: trio.testing.MockClock) -> None:
    """SRV-7: the classic text, and OpenMetrics for who asks for it; and every family is documented."""
    async with open_worker(MemoryStore(), InProcessRuntime(model=ScriptedModel(answer)), {"jobs": Jobs()}) as worker:
        metrics = Metrics(worker)
        text, content_type = await metrics.text("application/openmetrics-text; version=1.0.0")
        assert content_type.startswith("application/openmetrics-text")
        families = list(openmetrics.text_string_to_metric_families(text.decode()))
        assert len(families) > 20
        assert all(family.documentation and family.name.startswith("concorde_trio_") for family in families)


async def test_metrics_can_stand_among_the_users_own(autojump_clock: trio.testing.MockClock) -> None:
    """SRV-7: in a registry of theirs, with what they count themselves."""
    registry = prometheus_client.CollectorRegistry()
    mine = prometheus_client.Counter("purchases", "Of ours.", registry=registry)
    mine.inc()
    async with open_worker(MemoryStore(), InProcessRuntime(model=ScriptedModel(answer)), {"jobs": Jobs()}) as worker:
        metrics = Metrics(worker)
        registry.register(metrics)
        await metrics.refresh()
        found = read(prometheus_client.generate_latest(registry))
        assert found["purchases_total", frozenset()] == 1
        assert value(found, "queue_depth") == 0


@pytest.mark.parametrize("failure", ["hangs", "fails"])
async def test_a_store_that_does_not_answer_costs_its_own_numbers_alone(
    failure: str, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SRV-7: what was counted is told in any case, in bounded time."""

    async def counts() -> Any:
        if failure == "fails":
            raise StoreError("the disk is gone")
        await trio.sleep_forever()

    async with open_worker(MemoryStore(), InProcessRuntime(model=ScriptedModel(answer)), {"jobs": Jobs()}) as worker:
        metrics = Metrics(worker)
        monkeypatch.setattr(worker.store, "counts", counts)
        began = trio.current_time()
        found = read((await metrics.text())[0])
        assert trio.current_time() - began == (PATIENCE if failure == "hangs" else 0)
        assert value(found, "store_up") == 0
        assert value(found, "worker_running") == 1
        assert ("concorde_trio_queue_depth", frozenset()) not in found

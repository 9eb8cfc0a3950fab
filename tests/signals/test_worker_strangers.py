"""What users' code does that nobody would expect: it must harm its own signal alone, and hold up nobody."""

from __future__ import annotations

import pytest
import trio

from concorde_trio.errors import WrongState
from concorde_trio.records import PostOutcome, Prompt, RunOutcome, RunPrompt, Signal
from concorde_trio.signals.worker import SignalWorker, open_worker
from concorde_trio.stores.memory import MemoryStore


async def kept_cancelled() -> trio.Cancelled:
    """A Cancelled of a scope that is long over, as a cache may keep one of a call that was cancelled."""
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.sleep(1)
        except trio.Cancelled as error:
            kept = error
            raise
    return kept


class Strange:
    """Raises a Cancelled that is nobody's, where its payload says."""

    def __init__(self, kept: trio.Cancelled) -> None:
        self.kept = kept

    async def handle(self, signal: Signal) -> list[Prompt]:
        if signal.payload == "handle":
            raise self.kept
        return [Prompt(session="ann", text=str(signal.payload))]

    async def post(self, signal: Signal, outcome: PostOutcome) -> None:
        if signal.payload == "post":
            raise self.kept

    async def run(self, prompt: RunPrompt) -> RunOutcome:
        if prompt.text == "run":
            raise self.kept
        return RunOutcome.ok()


@pytest.mark.parametrize("where", ["handle", "run", "post"])
async def test_a_cancelled_that_somebody_kept_fails_its_own_signal_alone(where: str, autojump_clock: object) -> None:
    """RUN-3, CLM-5, PST-3: where nothing is cancelled it is an error like any other, and nothing waits for ever."""
    strange = Strange(await kept_cancelled())
    async with open_worker(MemoryStore(), strange, {"task": strange}) as worker:
        bad, good = await worker.emit("task", where), await worker.emit("task", "good")
        failed = await worker.wait_settled(bad)
        assert failed.state == "failed"
        assert "Cancelled" in (failed.error or "")
        assert (await worker.wait_settled(good)).state == "done"
        assert worker.locks() == []


async def test_a_run_that_waits_for_a_signal_that_a_stop_leaves_pending_is_told(autojump_clock: object) -> None:
    """STP-1: a drain claims nothing more, so whoever waits for an unclaimed signal would hold it up for ever."""
    said: list[str] = []
    begun = trio.Event()
    workers: list[SignalWorker] = []

    class Waits:
        async def run(self, prompt: RunPrompt) -> RunOutcome:
            begun.set()
            await trio.sleep(1)
            try:
                await workers[0].wait_settled(await workers[0].emit("other"))
            except WrongState as error:
                said.append(str(error))
            return RunOutcome.ok()

    with trio.fail_after(60):
        async with open_worker(MemoryStore(), Waits(), {"task": lambda signal: [Prompt(text="wait")]}) as worker:
            workers.append(worker)
            await worker.emit("task")
            await begun.wait()
    assert len(said) == 1
    assert "is stopping" in said[0]


async def test_who_waits_already_is_told_when_the_stop_comes(autojump_clock: object) -> None:
    """STP-1: the same for a signal that was waited for before, and kept from being claimed."""
    store = MemoryStore()
    async with trio.open_nursery() as nursery, open_worker(store, Sleeps(), {"task": one_run}, claim_ahead=0) as worker:
        await worker.emit("task")
        await worker.emit("task")
        blocked = await worker.emit("task")
        waiting = trio.Event()

        async def wait() -> None:
            waiting.set()
            with pytest.raises(WrongState, match="is stopping"):
                await worker.wait_settled(blocked)

        nursery.start_soon(wait)
        await waiting.wait()
        await trio.sleep(1)
        worker.stop("drain")


class Sleeps:
    """Each run takes ten seconds."""

    async def run(self, prompt: RunPrompt) -> RunOutcome:
        await trio.sleep(10)
        return RunOutcome.ok()


def one_run(signal: Signal) -> list[Prompt]:
    return [Prompt(session="ann", text="work")]


async def test_an_answer_and_a_prompt_of_any_size_fail_nobody_else(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-5, CLM-5: a text beyond what a store holds would stop the worker for everybody; it is refused, or cut and said so."""
    monkeypatch.setattr("concorde_trio.records.TEXT_LIMIT", 1_000)
    monkeypatch.setattr("concorde_trio.signals.outcomes.TEXT_LIMIT", 1_000)

    class Talks:
        async def run(self, prompt: RunPrompt) -> RunOutcome:
            return RunOutcome.ok("a" * 2_000 + "z" * 2_000)

    def handle(signal: Signal) -> list[Prompt]:
        return [Prompt(text="x" * signal.payload)]

    async with open_worker(MemoryStore(), Talks(), {"task": handle}) as worker:
        large, small = await worker.emit("task", 1_001), await worker.emit("task", 1_000)
        assert "1,001 characters, at most 1,000" in ((await worker.wait_settled(large)).error or "")
        assert (await worker.wait_settled(small)).state == "done"
        run = await worker.store.run(f"{small}-1")
        assert run is not None
        assert run.text == "a" * 500 + "\n[3,000 characters left out]\n" + "z" * 500

"""RUN at the worker's door: what a run is, what its Runtime can do, and what the worker makes of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio.errors import UsageError
from concorde_trio.events import RunEnded, RunStarted, SignalSettled
from concorde_trio.records import Prompt, RunOutcome, RunPrompt
from concorde_trio.signals.runtime import RuntimeContext
from concorde_trio.signals.worker import open_worker
from concorde_trio.stores.memory import MemoryStore
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock


class Returns:
    """A Runtime that does the same for every run: calls a function of the prompt."""

    def __init__(self, call: Callable[[RunPrompt], Any]) -> None:
        self.call = call
        self.prompts: list[RunPrompt] = []

    async def run(self, prompt: RunPrompt) -> RunOutcome:
        self.prompts.append(prompt)
        await trio.lowlevel.checkpoint()
        outcome: RunOutcome = self.call(prompt)
        return outcome


async def test_a_run_is_stored_as_started_before_its_runtime_is_called(autojump_clock: Clock) -> None:
    """RUN-1: and as ended before what it releases is started."""
    stage, seen = Stage(), []
    real = stage.run

    async def look(prompt: RunPrompt) -> RunOutcome:
        seen.append(({name: state for name, state in (await stage.states()).items()}, len(stage.told(RunStarted))))
        return await real(prompt)

    stage.run = look  # type: ignore[method-assign]
    async with stage.serve():
        await stage.emit("free", run("R1", 1, session="s"), run("R2", 1, session="s"))
        await stage.all_settled()
    assert seen == [({"R1": "running", "R2": "pending"}, 1), ({"R1": "done", "R2": "running"}, 2)]


async def test_one_commit_carries_an_end_and_the_starts_it_allows(autojump_clock: Clock) -> None:
    """RUN-1: so that a crash finds no lock free without a run that took it."""
    stage, commits = Stage(), []
    real = stage.store.apply

    async def apply(changes: Any) -> None:
        commits.append([type(change).__name__ for change in changes])
        await real(changes)

    stage.store.apply = apply  # type: ignore[method-assign]
    async with stage.serve():
        await stage.emit(
            "free", run("R1", 1, resources=["w"]), run("R2", 1, resources=["w"]), run("R3", 1, session="x")
        )
        await stage.all_settled()
    assert commits == [
        ["ClaimSignal"],
        ["QueueRuns", "StartRun", "StartRun"],
        ["EndRun", "EndRun", "StartRun"],
        ["EndRun", "SettleSignal"],
    ]


async def test_the_runtime_sees_session_text_and_limit_and_nothing_else(autojump_clock: Clock) -> None:
    """RUN-4, LCK-1, TAG-4: a fresh session has the run's name."""
    runtime = Returns(lambda prompt: RunOutcome.ok())
    prompts = [
        Prompt(text="one", session="s/../x", usage_limit=9, resources=["w"], tag="t" * 16, context={"a": 1}),
        Prompt(text="two"),
    ]
    async with open_worker(MemoryStore(), runtime, {"a": lambda signal: prompts}) as worker:
        signal = await worker.wait_settled(await worker.emit("a"))
    assert sorted(runtime.prompts, key=lambda prompt: prompt.text) == [
        RunPrompt(session="s/../x", text="one", usage_limit=9),
        RunPrompt(session=f"run_{signal.id}-2", text="two"),
    ]


async def test_a_failed_run_stops_none_of_its_siblings(autojump_clock: Clock) -> None:
    """RUN-2, RUN-3: whatever became of it; and the message says how many, and the first in prompt order (RUN-7)."""
    stage = Stage()
    async with stage.serve() as worker:
        record = await worker.wait_settled(
            await stage.emit(
                "free", run("R1", 9), run("R2", 8, "limited"), run("R3", 1, "raise"), run("R4", 2, "fail"), run("R5", 9)
            )
        )
    assert list((await stage.states()).values()) == ["done", "limited", "failed", "failed", "done"]
    assert record.error == f"3 of 5 runs failed; the first, {record.id}-2: R2 is over its limit"
    assert record.settled_at == 9


async def test_one_failed_run_gives_its_own_error_to_the_signal(autojump_clock: Clock) -> None:
    """RUN-7."""
    stage = Stage()
    async with stage.serve() as worker:
        record = await worker.wait_settled(await stage.emit("free", run("R1"), run("R2", 1, "fail"), run("R3")))
    assert record.error == "R2 failed"


async def test_a_post_failure_is_added_to_what_failed_before(autojump_clock: Clock) -> None:
    """RUN-7, PST-3."""
    stage = Stage()
    async with stage.serve() as worker:
        both = await stage.emit("held", run("R1", 1, "fail"), fail_post="no mail")
        alone = await stage.emit("held", run("R2", 1), fail_post="no mail")
        records = [await worker.wait_settled(each) for each in (both, alone)]
    assert [each.error for each in records] == [
        "R1 failed; post failed: ValueError: no mail",
        "post failed: ValueError: no mail",
    ]


async def test_the_runtime_is_opened_once_before_the_first_run_and_closed_after_the_last(autojump_clock: Clock) -> None:
    """RUN-4: with what it needs to live."""
    contexts = []

    class Openable(Stage):
        @asynccontextmanager
        async def open(self, context: RuntimeContext) -> AsyncIterator[None]:
            contexts.append(context)
            self.note("open", "runtime")
            yield
            await trio.sleep(1)
            self.note("close", "runtime")

    stage = Openable()
    async with stage.serve():
        await stage.emit("free", run("R1", 2), run("R2", 1))
        await trio.sleep(0.5)
    (context,) = contexts
    assert (context.queue, context.store) == (stage.store.queue, stage.store)
    assert (context.agent_server_url, context.programs_lock) == (None, None)
    assert [what for _, what, _ in stage.log] == ["open", "handle", "handled", "start", "start", "end", "end", "close"]


async def test_what_is_no_runtime_is_refused_where_it_is_written(autojump_clock: Clock) -> None:
    """RUN-4: with the fix."""

    async def function(prompt: RunPrompt) -> RunOutcome:
        return RunOutcome.ok()

    with pytest.raises(UsageError, match="an async function becomes one by FunctionRuntime"):
        async with open_worker(MemoryStore(), function, {}):  # type: ignore[arg-type]
            pass  # pragma: no cover


async def test_the_events_of_a_run_follow_its_life(autojump_clock: Clock) -> None:
    """RUN-2: each says whose it is."""
    stage = Stage()
    async with stage.serve():
        signal_id = await stage.emit("free", run("R1", 2, "limited", session="s"))
        await stage.all_settled()
    ended, settled = stage.told(RunEnded, SignalSettled)
    assert (ended.run_id, ended.state, ended.started, ended.session) == (f"{signal_id}-1", "limited", True, "s")  # type: ignore[attr-defined]
    assert (settled.state, settled.error, settled.at) == ("failed", "R1 is over its limit", 2)  # type: ignore[attr-defined]

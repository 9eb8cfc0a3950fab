"""RUN at the worker's door: what a run is, what its Runtime can do, and what the worker makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio.errors import UsageError
from concorde_trio.events import RunEnded, RunStarted, SignalSettled
from concorde_trio.records import Prompt, RunOutcome, RunPrompt, RunState, SignalState, Usage
from concorde_trio.signals.runtime import RuntimeContext
from concorde_trio.signals.worker import SignalWorker, open_worker
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


@asynccontextmanager
async def serve(call: Callable[[RunPrompt], Any], *prompts: Prompt, **options: Any) -> AsyncIterator[SignalWorker]:
    handlers = {"a": lambda signal: prompts or [Prompt(text="work")]}
    async with open_worker(MemoryStore(), Returns(call), handlers, sweep=None, **options) as worker:
        yield worker


async def ending(call: Callable[[RunPrompt], Any], **options: Any) -> tuple[Any, Any]:
    """The run and the signal, as they are stored, of one run with this Runtime; another one is seen to go on."""
    async with serve(call, **options) as worker:
        signal = await worker.wait_settled(await worker.emit("a"))
        stored = await worker.store.run(f"{signal.id}-1")
        assert worker.locks() == [] and worker.status == "running"
    return stored, signal


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


async def test_an_outcome_is_kept_with_text_and_usage(autojump_clock: Clock) -> None:
    """RUN-5, RUN-2."""
    usage = Usage(input_tokens=3, output_tokens=4, cost=0.5)
    for outcome, state, error in [
        (RunOutcome.ok("fine", usage=usage), "done", None),
        (RunOutcome.failed("broke", text="fine", usage=usage), "failed", "broke"),
        (RunOutcome.limited("enough", text="fine", usage=usage), "limited", "enough"),
    ]:
        stored, signal = await ending(lambda prompt, outcome=outcome: outcome)
        assert (stored.state, stored.error, stored.text, stored.usage) == (state, error, "fine", usage)
        assert (signal.state is SignalState.FAILED, signal.error) == (error is not None, error)


class Nasty(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def _raise(error: BaseException) -> Callable[[RunPrompt], Any]:
    def call(prompt: RunPrompt) -> Any:
        raise error

    return call


RUBBISH: dict[str, tuple[Callable[[RunPrompt], Any], str]] = {
    "nothing": (lambda prompt: None, "its runtime returned NoneType; expected a RunOutcome"),
    "a string": (lambda prompt: "ok", "its runtime returned str"),
    "the class": (lambda prompt: RunOutcome, "its runtime returned type"),
    "no end": (lambda prompt: RunOutcome(state=RunState.RUNNING), "state is running, which is no end"),
    "a state of words": (lambda prompt: RunOutcome(state="done"), "state is str, no RunState"),  # type: ignore[arg-type]
    "no reason": (
        lambda prompt: RunOutcome(state=RunState.FAILED),
        "the run is failed, and its runtime gave no reason",
    ),
    "a blank reason": (lambda prompt: RunOutcome.limited(" \n"), "usage limit reached, and gave no reason"),
    "half characters": (lambda prompt: RunOutcome(state=RunState.FAILED, error="a\ud800\0"), "a\ufffd"),
    "a number for a reason": (lambda prompt: RunOutcome(state=RunState.FAILED, error=7), "error is int"),  # type: ignore[arg-type]
    "bytes for a text": (lambda prompt: RunOutcome(state=RunState.DONE, text=b"x"), "text is bytes"),  # type: ignore[arg-type]
    "words for usage": (lambda prompt: RunOutcome.ok(usage="much"), "usage is str, no Usage"),  # type: ignore[arg-type]
    "half a token": (lambda prompt: RunOutcome.ok(usage=Usage(input_tokens=0.5)), "input_tokens"),  # type: ignore[arg-type]
    "too many tokens": (lambda prompt: RunOutcome.ok(usage=Usage(output_tokens=2**70)), "output_tokens"),
    "an endless number": (lambda prompt: RunOutcome.ok(usage=Usage(cached_tokens=10**5000)), "cached_tokens"),
    "a cost of NaN": (lambda prompt: RunOutcome.ok(usage=Usage(cost=float("nan"))), "cost"),
    "an exception": (_raise(ValueError("it broke")), "ValueError: it broke"),
    "an exception without words": (_raise(ValueError()), "ValueError"),
    "an exception that has no words": (_raise(Nasty()), r"Nasty: \(and its message could not be made: RuntimeError\)"),
    "an exception of half characters": (_raise(ValueError("\udfff\0")), "ValueError: \ufffd+"),
    "a very long exception": (_raise(ValueError("x" * 10_000)), "ValueError: x{1900}"),
    "a group of groups": (
        _raise(ExceptionGroup("out", [ExceptionGroup("in", [ValueError("the cause")]), OSError("b")])),
        r"^ValueError: the cause \(and 1 more\)$",
    ),
}


@pytest.mark.parametrize("rubbish", RUBBISH)
async def test_rubbish_from_a_runtime_fails_its_own_run_and_no_commit(autojump_clock: Clock, rubbish: str) -> None:
    """RUN-3, RUN-5, REC-5: with a message that says what came, and the worker goes on."""
    call, says = RUBBISH[rubbish]
    stored, signal = await ending(call)
    assert stored.state in (RunState.FAILED, RunState.LIMITED) and signal.state is SignalState.FAILED
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(signal.error)
    assert stored.error == signal.error


async def test_a_done_outcome_with_an_error_is_done_without_one(autojump_clock: Clock) -> None:
    """RUN-5, SIG-4: a done run has no error, whatever its Runtime wrote there."""
    stored, signal = await ending(lambda prompt: RunOutcome(state=RunState.DONE, error="but", text="a\ud800"))
    assert (stored.state, stored.error, signal.state, signal.error) == (RunState.DONE, None, SignalState.DONE, None)
    assert stored.text.startswith("a\ufffd")


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        SystemExit(3),
        BaseExceptionGroup("g", [ExceptionGroup("h", [ValueError("x")]), KeyboardInterrupt()]),
    ],
    ids=["Ctrl-C", "exit", "Ctrl-C in a group"],
)
async def test_what_ends_programs_travels(autojump_clock: Clock, error: BaseException) -> None:
    """RUN-3: and the run it came from is left to recovery; a lone one arrives unwrapped."""
    store = MemoryStore()
    with pytest.raises(type(error)) as caught:
        async with open_worker(store, Returns(_raise(error)), {"a": lambda signal: [Prompt(text="x")]}) as worker:
            await worker.wait_settled(await worker.emit("a"))
    assert caught.value is error or isinstance(error, BaseExceptionGroup)
    assert worker.status == "stopped" and worker.last_error is not None
    async with store.open():
        assert [entry.runs[0].state for entry in await store.unfinished()] == ["running"]


class Odd(BaseException):
    """What another library might raise for its own ends, as asyncio does for a cancellation."""


@pytest.mark.parametrize("error", [Odd("odd"), asyncio.CancelledError("odd"), BaseExceptionGroup("g", [Odd("odd")])])
async def test_what_is_no_exception_of_ours_fails_its_own_run(autojump_clock: Clock, error: BaseException) -> None:
    """RUN-3: only what ends programs travels."""
    stored, signal = await ending(_raise(error))
    assert stored.state is RunState.FAILED and (stored.error or "").endswith(": odd")
    assert signal.error == stored.error


async def test_an_exception_that_cannot_even_be_written_out_fails_its_own_run(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """RUN-3: Python's own traceback module stumbles over this one."""
    error = SyntaxError("odd")
    error.filename, error.lineno, error.text, error.offset = "f", 1, "text", "here"  # type: ignore[assignment]
    error.end_lineno, error.end_offset = 1, object()  # type: ignore[assignment]
    stored, _ = await ending(_raise(error))
    assert (stored.error or "").startswith("SyntaxError: odd")
    assert "SyntaxError: odd" in caplog.text


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
    assert contexts == [RuntimeContext(queue=stage.store.queue)]
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

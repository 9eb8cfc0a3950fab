"""RUN-3, RUN-5: what a Runtime gives back, or raises, and what is kept of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio.errors import UnknownId
from concorde_trio.records import Prompt, RunOutcome, RunPrompt, RunState, SignalState, Usage
from concorde_trio.signals.worker import SignalWorker, open_worker
from concorde_trio.stores.memory import MemoryStore

Clock = trio.testing.MockClock


class Returns:
    """A Runtime that does the same for every run: calls a function of the prompt."""

    def __init__(self, call: Callable[[RunPrompt], Any]) -> None:
        self.call = call

    async def run(self, prompt: RunPrompt) -> RunOutcome:
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
async def test_what_ends_programs_travels(
    autojump_clock: Clock, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """RUN-3: and the run it came from is left to recovery, and named in the log; a lone one arrives unwrapped."""
    store = MemoryStore()
    with pytest.raises(type(error)) as caught:
        async with open_worker(store, Returns(_raise(error)), {"a": lambda signal: [Prompt(text="x")]}) as worker:
            await worker.wait_settled(await worker.emit("a"))
    assert caught.value is error or isinstance(error, BaseExceptionGroup)
    assert worker.status == "stopped" and worker.last_error is not None
    async with store.open():
        ((run,),) = [entry.runs for entry in await store.unfinished()]
        assert run.state == "running"
    assert f"run {run.id} raised " in caplog.text and "which stops the worker" in caplog.text


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


async def test_the_runs_of_a_signal_come_in_the_order_of_its_prompts_with_their_answers(autojump_clock: Clock) -> None:
    """RUN-5: what the agents answered is had by the id that emit gave."""
    prompts = [Prompt(session=name, text=name) for name in ("cleo", "ann", "bob")]
    async with serve(lambda prompt: RunOutcome.ok(f"{prompt.text} did it"), *prompts) as worker:
        signal_id = await worker.emit("a")
        await worker.wait_settled(signal_id)
        assert [run.text for run in await worker.runs(signal_id)] == ["cleo did it", "ann did it", "bob did it"]
        with pytest.raises(UnknownId):
            await worker.runs("none")

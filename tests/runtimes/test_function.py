"""A Runtime that is an async function."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import trio

from concorde_trio.errors import UsageError
from concorde_trio.records import RunOutcome, RunPrompt
from concorde_trio.runtimes.function import FunctionRuntime
from concorde_trio.testing.runtime import check_runtime

PROMPT = RunPrompt(session="ann", text="hello")


async def answer(prompt: RunPrompt) -> RunOutcome | str | None:
    """Does what the text says."""
    await trio.lowlevel.checkpoint()
    match prompt.text:
        case "hang":
            await trio.sleep_forever()
        case "raise":
            raise LookupError("no such thing")
        case "fail":
            return RunOutcome.failed("I cannot")
        case "nothing":
            return None
        case "number":
            return 7  # type: ignore[return-value]
    return f"{prompt.session}: {prompt.text}"


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("hello", RunOutcome.ok("ann: hello")),
        ("nothing", RunOutcome.ok()),
        ("fail", RunOutcome.failed("I cannot")),
    ],
)
async def test_what_the_function_returns_is_the_outcome(text: str, outcome: RunOutcome) -> None:
    """RUN-5: a RunOutcome, the text of an ok one, or None."""
    assert await FunctionRuntime(answer).run(RunPrompt(session="ann", text=text)) == outcome


async def test_what_the_function_raises_travels_and_what_is_no_outcome_is_refused() -> None:
    """RUN-3: it fails its run alone, with its own message."""
    with pytest.raises(LookupError, match="no such thing"):
        await FunctionRuntime(answer).run(RunPrompt(session="ann", text="raise"))
    with pytest.raises(UsageError, match="must return a RunOutcome, a string or None, not int: 7"):
        await FunctionRuntime(answer).run(RunPrompt(session="ann", text="number"))


class Agent:
    """Callable objects and methods are async functions too."""

    async def __call__(self, prompt: RunPrompt) -> str:
        return prompt.text

    async def reply(self, suffix: str, prompt: RunPrompt) -> str:
        return prompt.text + suffix


@pytest.mark.parametrize("function", [Agent(), functools.partial(Agent().reply, "")])
async def test_objects_methods_and_partials_are_taken(function: Any) -> None:
    """RUN-4: any async callable."""
    assert await FunctionRuntime(function).run(PROMPT) == RunOutcome.ok("hello")


def plain(prompt: RunPrompt) -> str:
    """No coroutine function."""
    return prompt.text


@pytest.mark.parametrize("function", [plain, functools.partial(plain), str.upper, lambda prompt: None])
def test_a_plain_function_is_refused_with_what_to_do(function: Any) -> None:
    """RUN-4: it would freeze every other run."""
    with pytest.raises(UsageError, match="trio.to_thread.run_sync"):
        FunctionRuntime(function)


def test_what_is_no_function_is_refused() -> None:
    """RUN-4: misuse is loud at once."""
    with pytest.raises(UsageError, match="not 'x'"):
        FunctionRuntime("x")  # type: ignore[arg-type]


async def test_a_function_runtime_passes_the_check() -> None:
    """RUN-3, RUN-4, RUN-5, RUN-6: by the conformance suite."""
    await check_runtime(lambda: FunctionRuntime(answer), hangs="hang", fails="raise")
    await check_runtime(lambda: FunctionRuntime(answer), fails="fail")

"""A Runtime that is an async function of the prompt."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable

from concorde_trio.errors import UsageError
from concorde_trio.records import RunOutcome, RunPrompt


class FunctionRuntime:
    """Executes each run by calling an async function (RUN-4).

    ``function`` gets the RunPrompt and returns a RunOutcome, the text of an ok one, or None for an ok one without
    text. It must be safe to call concurrently. What it raises fails its run alone (RUN-3); it is cancelled with its
    run. UsageError for a plain function: it would freeze every other run.
    """

    def __init__(self, function: Callable[[RunPrompt], Awaitable[RunOutcome | str | None]]) -> None:
        if not callable(function):
            raise UsageError(f"FunctionRuntime takes an async function of a RunPrompt, not {function!r:.80}")
        if not _is_async(function):
            name = getattr(function, "__name__", type(function).__name__)
            raise UsageError(
                f"FunctionRuntime takes an async function, and {name} is a plain one, which would freeze all other runs "
                f"while it works. Let a thread run it: async def run(prompt): return await trio.to_thread.run_sync({name}, "
                f"prompt). If it only returns a coroutine, write: async def run(prompt): return await {name}(prompt)"
            )
        self._function = function

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        """Call the function; what it returns is the outcome. UsageError if that is none."""
        answer = await self._function(prompt)
        if isinstance(answer, RunOutcome):
            return answer
        if answer is None or isinstance(answer, str):
            return RunOutcome.ok(answer)
        raise UsageError(
            "the function of a FunctionRuntime must return a RunOutcome, a string or None, "
            f"not {type(answer).__name__}: {answer!r:.80}"
        )


def _is_async(function: object) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004

"""The check of Runtimes finds what is wrong with them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from concorde_trio.records import RunOutcome, RunPrompt, RunState
from concorde_trio.signals.runtime import RuntimeContext
from concorde_trio.testing.runtime import check_runtime

pytestmark = pytest.mark.slow


class Good:
    """A Runtime with nothing wrong; the broken ones derive from it."""

    async def run(self, prompt: RunPrompt, /) -> Any:
        await trio.lowlevel.checkpoint()
        if prompt.text == "hang":
            await trio.sleep_forever()
        if prompt.text == "fail":
            return RunOutcome.failed("no")
        return RunOutcome.ok("yes")


class NotAsync(Good):
    def run(self, prompt: RunPrompt, /) -> Any:
        return RunOutcome.ok()


class NoOutcome(Good):
    async def run(self, prompt: RunPrompt, /) -> Any:
        return "yes"


class StrangeState(Good):
    async def run(self, prompt: RunPrompt, /) -> Any:
        return RunOutcome(state=RunState.CANCELLED)


class NoReason(Good):
    async def run(self, prompt: RunPrompt, /) -> Any:
        return RunOutcome(state=RunState.FAILED) if prompt.text == "fail" else RunOutcome.ok()


class NeverFails(Good):
    async def run(self, prompt: RunPrompt, /) -> Any:
        return await super().run(RunPrompt(session="x", text="hello" if prompt.text == "fail" else prompt.text))


class OneAtATime(Good):
    busy = False

    async def run(self, prompt: RunPrompt, /) -> Any:
        assert not self.busy, "busy"
        self.busy = True
        await trio.lowlevel.checkpoint()
        self.busy = False
        return await super().run(prompt)


class FailsTogether(Good):
    def __init__(self) -> None:
        self.broken = False

    async def run(self, prompt: RunPrompt, /) -> Any:
        self.broken = self.broken or prompt.text == "fail"
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        return RunOutcome.failed("broken") if self.broken else RunOutcome.ok()


class NamesAsPaths(Good):
    async def run(self, prompt: RunPrompt, /) -> Any:
        return RunOutcome.failed("no such folder") if "/" in prompt.session else await super().run(prompt)


class Deaf(Good):
    async def run(self, prompt: RunPrompt, /) -> Any:
        with trio.move_on_after(0.6, shield=True):
            return await super().run(prompt)


class BrokenByCancel(Good):
    broken = False

    async def run(self, prompt: RunPrompt, /) -> Any:
        if self.broken:
            return RunOutcome.failed("broken")
        self.broken = prompt.text == "hang"
        return await super().run(prompt)


class OpensOnce(Good):
    opened = False

    @contextlib.asynccontextmanager
    async def open(self, context: RuntimeContext, /) -> AsyncIterator[None]:
        assert not OpensOnce.opened, "opened twice"
        OpensOnce.opened = True
        yield


@pytest.mark.parametrize(
    ("runtime", "says"),
    [
        (NotAsync, "must be async"),
        (object, "has a method run"),
        (NoOutcome, "must return a RunOutcome"),
        (StrangeState, "is ok, failed or limited"),
        (NoReason, "says why"),
        (NeverFails, "should fail"),
        (OneAtATime, "called concurrently"),
        (FailsTogether, "another's failure is not theirs"),
        (NamesAsPaths, "CLM-7"),
        (Deaf, "was not over after 0.2 s"),
        (BrokenByCancel, "after a cancelled run the next"),
        (OpensOnce, "opened twice"),
    ],
)
async def test_the_check_finds_a_broken_runtime(runtime: Any, says: str) -> None:
    """RUN-3 to RUN-6: each kind of fault is named."""
    with pytest.raises(AssertionError, match=says):
        await check_runtime(runtime, hangs="hang", fails="fail", stops_within=0.2)


async def test_the_check_passes_a_good_runtime() -> None:
    """RUN-3 to RUN-6: and takes no longer than it must."""
    await check_runtime(Good, hangs="hang", fails="fail")

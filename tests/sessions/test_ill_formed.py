"""What a model client or a tool of a user's own says wrongly harms its own request or call alone."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio import (
    CallDelta,
    CallStarted,
    MemoryStore,
    ModelRequest,
    ReasoningDelta,
    ReplyEnd,
    SessionHarness,
    StopReason,
    TextDelta,
    TextSnapshot,
    ToolContext,
    ToolResult,
    ToolSpec,
    Usage,
    UsageReport,
)
from concorde_trio.errors import ModelError
from concorde_trio.sessions.tool import Leftover
from concorde_trio.testing import check_message_shape

wrong: Any = None
SAYS: dict[str, Callable[[], Any]] = {
    "a text that is none": lambda: TextDelta(wrong),
    "bytes": lambda: TextDelta(b"x"),  # type: ignore[arg-type]
    "a snapshot that is none": lambda: TextSnapshot(wrong),
    "reasoning that is none": lambda: ReasoningDelta(wrong),
    "arguments that are an object": lambda: CallStarted(0, "a", "t", {"x": 1}),  # type: ignore[arg-type]
    "a call without an id": lambda: CallStarted(0, wrong, "t"),
    "a call without a name": lambda: CallStarted(0, "a", wrong),
    "an index that is a list": lambda: CallStarted([], "a", "t"),  # type: ignore[arg-type]
    "more arguments that are none": lambda: CallDelta(0, wrong),
    "a provider with a tuple": lambda: ReplyEnd(provider={"a": (1, 2)}),  # type: ignore[dict-item]
    "a provider that is no JSON": lambda: ReplyEnd(provider=object()),  # type: ignore[arg-type]
    "a provider that is NaN": lambda: ReplyEnd(provider=[math.nan]),
    "usage that is an object": lambda: UsageReport({"input": 1}),  # type: ignore[arg-type]
    "usage without tokens": lambda: UsageReport(Usage(input_tokens=wrong)),
    "usage below nothing": lambda: UsageReport(Usage(output_tokens=-1)),
    "usage that no store holds": lambda: UsageReport(Usage(input_tokens=10**4300)),
    "a cost that is NaN": lambda: UsageReport(Usage(cost=math.nan)),
}


class Misspeaks:
    """Says one thing once, and is fine then."""

    name = "misspeaks"
    context_window = None

    def __init__(self, say: Callable[[], Any] | None) -> None:
        self.say = say

    async def stream(self, request: ModelRequest, on_event: Callable[[Any], None]) -> None:
        await trio.lowlevel.checkpoint()
        say, self.say = self.say, None
        if say is not None:
            on_event(say())
        on_event(TextDelta("fine"))
        on_event(ReplyEnd())


@pytest.mark.parametrize("what", SAYS)
async def test_a_client_that_says_what_is_no_event_fails_its_turn_alone(what: str) -> None:
    """SES-9, SES-5: the turn fails in words that name the fault; the session and its neighbours go on."""
    async with SessionHarness(store=MemoryStore(), model=Misspeaks(SAYS[what])).open() as harness:
        failed = await harness.turn("ann", "hello")
        assert failed.outcome == "failed"
        assert "the client of model misspeaks failed: UsageError" in str(failed.error)
        assert (await harness.turn("ann", "again")).text == "fine"
        assert (await harness.turn("bob", "hello")).text == "fine"


async def test_a_time_to_come_back_may_be_a_number(autojump_clock: trio.testing.MockClock) -> None:
    """SES-11: a client of a user's own need not know that headers are strings."""

    def slow() -> None:
        raise ModelError("slow down", status=429, retry_after=200)  # type: ignore[arg-type]

    async with SessionHarness(store=MemoryStore(), model=Misspeaks(slow)).open() as harness:
        began = trio.current_time()
        assert (await harness.turn("ann", "hello")).text == "fine"
        assert trio.current_time() - began >= 200


async def _left(context: ToolContext, leftover: Any, result: Any) -> ToolResult:
    context.left(leftover).ended(result)
    return ToolResult("done")


Does = Callable[[ToolContext], Awaitable[Any]]


async def _gives(result: Callable[[], Any]) -> Any:
    return result()


ERRORS: dict[str, Does] = {
    "nothing": lambda context: _gives(lambda: None),
    "bytes": lambda context: _gives(lambda: ToolResult(b"x")),  # type: ignore[arg-type]
    "a list": lambda context: _gives(lambda: ToolResult(["x"])),  # type: ignore[arg-type]
    "a path that is no string": lambda context: _gives(lambda: ToolResult("x", path=Path("/x"))),  # type: ignore[arg-type]
    "no leftover": lambda context: _left(context, None, None),
    "a leftover without a number": lambda context: _left(context, Leftover("process", "x", "y"), None),  # type: ignore[arg-type]
    "a leftover of no kind": lambda context: _left(context, Leftover("thing", 1, "y"), None),  # type: ignore[arg-type]
}
FINE: dict[str, Does] = {
    "a path that is no text": lambda context: _gives(lambda: ToolResult("done", path="/x/\udcff\0")),
    "a late result that is a number": lambda context: _left(context, Leftover("thread", 1, "\udcff"), 5),
}


class Misbehaves:
    spec = ToolSpec(name="t", description="", parameters={"type": "object"})
    timeout = 5.0
    concurrent = False
    kind = "read"

    def __init__(self, does: Does) -> None:
        self.does = does

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        return await self.does(context)


class Calls:
    name = "calls"
    context_window = None

    async def stream(self, request: ModelRequest, on_event: Callable[[Any], None]) -> None:
        await trio.lowlevel.checkpoint()
        if request.messages[-1].role == "tool":
            on_event(TextDelta("fine"))
            on_event(ReplyEnd())
        else:
            on_event(CallStarted(0, "call_1", "t", "{}"))
            on_event(ReplyEnd(StopReason.CALLS))


@pytest.mark.parametrize("what", [*ERRORS, *FINE])
async def test_a_tool_that_gives_what_is_no_result_fails_its_call_alone(what: str) -> None:
    """SES-9, SES-13: the model is told, the turn goes on, and what the store can not hold is replaced."""
    does = {**ERRORS, **FINE}[what]
    async with SessionHarness(store=MemoryStore(), model=Calls(), tools=[Misbehaves(does)]).open() as harness:
        for session in ("ann", "ann", "bob"):
            assert (await harness.turn(session, "hello")).text == "fine"
        messages = await harness.store.messages("ann")
        check_message_shape(messages)
        result = messages[2]
        assert (result.outcome, result.text == "done") == (("error", False) if what in ERRORS else ("ok", True))

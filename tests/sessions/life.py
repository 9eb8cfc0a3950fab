"""A session's whole life in one piece: a turn with a queue, two tools, a summary and a compaction, by itself or inside runs.

The law: what model and tools do follows from what they are asked alone, so the life goes on after any end of it in the same
way; and what is judged is what is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from unittest.mock import patch

import attrs
import trio

from concorde_trio import InProcessRuntime, Prompt, SessionHarness, Signal, SignalWorker
from concorde_trio._sansio.model_events import (
    CallStarted,
    ModelRequest,
    Purpose,
    ReplyEnd,
    StopReason,
    TextDelta,
    ToolSpec,
    UsageReport,
)
from concorde_trio.errors import WrongState
from concorde_trio.messages import InputState, Role
from concorde_trio.models.scripted import Script, ScriptedModel
from concorde_trio.records import RequestKind, RunState, Usage
from concorde_trio.runtimes import in_process
from concorde_trio.sessions.tool import ToolContext, ToolResult
from concorde_trio.signals.options import WorkerOptions
from concorde_trio.signals.store import RunFilter, SignalFilter
from concorde_trio.testing.message_shape import check_message_shape

S = "ann"
LLM = 30.0
"""Seconds that a request may take without progress."""
SETTINGS: dict[str, Any] = {
    "heartbeat": 5.0,
    "llm_timeout": LLM,
    "summarize_over": 100,
    "truncate_to": 20,
    "stop_wait": 2.0,
    "wall_clock": trio.current_time,
}


def answer(request: ModelRequest) -> Script:
    """What the model says: calls for the message that wants them, until they have results; a summary; else words."""
    if request.purpose is not Purpose.TURN:
        return [(1.0, TextDelta("in short")), (0.0, ReplyEnd())]
    since: list[Any] = []
    for message in request.messages:
        since = [message] if message.role is Role.USER else [*since, message]
    done = any(each.role in (Role.TOOL, Role.SUMMARY) for each in (*request.messages[:1], *since))
    if "work" in since[0].text and not done:
        return [
            (1.0, CallStarted(0, "a", "read", "{}")),
            (0.0, CallStarted(1, "b", "look", "{}")),
            (0.0, UsageReport(Usage(input_tokens=900))),  # near the window: it is compacted next
            (0.0, ReplyEnd(StopReason.CALLS)),
        ]
    return [(1.0, TextDelta("answered")), (0.0, ReplyEnd())]


@attrs.define(eq=False)
class Tool:
    """Works for a second; ``ran`` counts its calls."""

    name: str
    output: str
    ran: int = 0
    timeout: float = 10.0
    concurrent: bool = False
    kind: Any = "read"

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description="", parameters={"type": "object"})

    async def call(self, arguments: Mapping[str, Any], context: ToolContext, /) -> ToolResult:
        self.ran += 1
        await trio.sleep(1)
        return ToolResult(self.output)


@attrs.define(eq=False)
class Life:
    """One process over a store: how it says something, and the doors that a test needs."""

    store: Any
    tools: tuple[Tool, Tool]
    sessions: SessionHarness
    worker: SignalWorker | None = None
    accepted: list[str] = attrs.field(factory=list)
    began: Callable[[], None] = lambda: None

    async def say(self, text: str, input_id: str) -> None:
        """Submit, and note that it was accepted."""
        receipt = await self.sessions.submit(S, text, id=input_id)
        assert receipt.accepted, receipt
        self.accepted.append(input_id)

    async def rest(self) -> None:
        """Until nothing goes on and nothing waits."""
        while True:
            if self.worker is not None:
                for record in await self.store.signals(SignalFilter(limit=1000)):
                    if record.settled_at is None:
                        await self.worker.wait_settled(record.id)
            loop = await self.sessions.loop(S)
            machine = loop.machine
            await loop.wait_until(lambda machine=machine: machine.idle)
            if not await self.store.unsettled_inputs():
                return
            await trio.sleep(0.1)  # a signal of what a run left is on its way

    async def live(self) -> None:
        """The piece."""
        await self.say("hello", "i1")
        await self.rest()
        if self.worker is None:
            await self.say("work", "i2")
        else:
            await self.worker.emit("chat", ["work"])
        await trio.sleep(2.5)  # the first tool is out
        await self.say("and this", "i3")
        await self.rest()


async def no_sweep(queue: str) -> None:
    """Nothing was left."""


def chat(signal: Signal) -> list[Prompt]:
    """A run for each text."""
    return [Prompt(session=S, text=each) for each in signal.payload]


@asynccontextmanager
async def process(store: Any, *, worker: bool) -> AsyncIterator[Life]:
    """A harness by itself, or inside a worker, until the block is left."""
    model = ScriptedModel(answer, context_window=1000)
    tools = (Tool("read", "a long output " * 20), Tool("look", "found"))
    if not worker:
        async with SessionHarness(store=store, model=model, tools=tools, **SETTINGS).open() as harness:
            yield Life(store, tools, harness)
        return
    runtime = InProcessRuntime(model=model, tools=tools, **SETTINGS)
    options = WorkerOptions(settle=trio.lowlevel.checkpoint, wall_clock=trio.current_time, sweep=None)
    serving = SignalWorker(store, runtime, {"chat": chat}, options)
    async with AsyncExitStack() as stack:
        # It looks for processes in a thread, which a virtual clock does not wait for; none are started here.
        stack.enter_context(patch.object(in_process, "sweep_queue", no_sweep))
        await stack.enter_async_context(store.open())
        await stack.enter_async_context(store.own())
        nursery = await stack.enter_async_context(trio.open_nursery())
        await nursery.start(serving.run)
        yield Life(store, tools, runtime.sessions, serving)
        serving.stop("drain")


async def cancel_runs(life: Life) -> None:
    """An operator cancels whatever run is in flight."""
    for run in await life.store.runs(RunFilter(limit=100)):
        if run.state is RunState.RUNNING:
            await life.store.request(RequestKind.CANCEL_RUN, run.id)


async def judge(store: Any, accepted: list[str], *, worker: bool) -> None:
    """After any end: the next process comes to rest within a budget, takes the next turn, and the books are even."""
    async with process(store, worker=worker) as life:
        with trio.fail_after(LLM + 20):
            await life.rest()
        loop = await life.sessions.loop(S)
        assert loop.machine.idle and not loop.machine.books.lock.is_locked()
        await life.say("next", "next")
        with trio.fail_after(LLM):
            await life.rest()
        assert loop.machine.idle and loop.machine.status == "waiting_for_input"
        messages = await store.messages(S, limit=1000)
        assert messages[-1].text == "answered", "the next turn works"
        check_message_shape([each for each in messages if each.role is not Role.SUMMARY])
        stored = await store.load_session(S)
        assert stored is not None and stored.record.queued == 0
        check_message_shape(stored.messages)
        said = Counter(each.id for message in messages for each in message.inputs)
        assert max(said.values()) == 1, "SES-10a: an input that stands twice in a transcript"
        for input_id in {*accepted, "next"}:
            one = await store.input(input_id)
            assert one is not None and one.state is not InputState.QUEUED, f"{input_id} was lost"
            assert (one.state is InputState.DELIVERED) is (input_id in said), f"{input_id}: neither, or both"
            # With a worker, what waited for a run that was cut or cancelled ends with it; by itself nothing does.
            assert worker or input_id in said, f"{input_id} was not run"
        asked = [call.id for message in messages for call in message.calls]
        assert asked in ([], ["a", "b"]), "the work was asked for twice"


async def guarded(act: Callable[[], Awaitable[None]]) -> None:
    """Somebody from outside, who may come when the session is being closed."""
    try:
        await act()
    except WrongState:
        pass

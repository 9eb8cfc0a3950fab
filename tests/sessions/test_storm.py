"""Five people at six sessions, a model and tools that do everything wrong, a store that takes its time: nothing is stuck or lost.

The law: what is asserted is what the store has in the end, and the shape of every request on the way.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio import InProcessRuntime, MemoryStore, Prompt, Signal, Usage, open_worker
from concorde_trio._sansio.message_shape import message_shape
from concorde_trio._sansio.model_events import (
    CallStarted,
    ModelRequest,
    Purpose,
    ReplyEnd,
    TextDelta,
    ToolSpec,
    UsageReport,
)
from concorde_trio.errors import ModelError, WrongState
from concorde_trio.events import Event, SettleFailed
from concorde_trio.messages import InputState, Message
from concorde_trio.sessions.model import OnEvent
from concorde_trio.sessions.tool import ToolContext, ToolResult

pytestmark = pytest.mark.slow

SESSIONS = [f"s{number}" for number in range(6)]


class SlowStore(MemoryStore):
    """Each commit takes a while, as on a disk."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance

    async def apply(self, changes: Sequence[Any]) -> None:
        await trio.sleep(self.chance.choice([0.0, 0.001, 0.3]))
        await super().apply(changes)


class BadModel:
    """Answers, calls tools that are not there, repeats ids, sends what is no JSON, stalls, breaks off, fails."""

    name = "bad"
    context_window = 4_000

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.wrong: list[str] = []

    async def stream(self, request: ModelRequest, on_event: OnEvent, /) -> None:
        chance = self.chance
        if (fault := message_shape(request.messages)) is not None:
            self.wrong.append(fault)
        await trio.sleep(chance.random() * 0.02)
        how = chance.random()
        if how < 0.05:
            raise ModelError("busy", status=429, retry_after="2")
        if how < 0.08:
            raise ModelError("no", status=400)
        if how < 0.1:
            raise ModelError("gone", connection=True)
        if how < 0.14:
            await trio.sleep_forever()
        on_event(TextDelta("some words"))
        if how < 0.17:
            return
        if request.purpose is Purpose.TURN:
            for number in range(chance.choice([0, 0, 0, 1, 2, 3])):
                name, arguments = chance.choice(["fast", "slow", "none", "boom"]), chance.choice(["{}", "nope"])
                on_event(CallStarted(number, chance.choice(["a", "b", "c"]), name, arguments))
            on_event(UsageReport(Usage(input_tokens=10, output_tokens=5)))
        on_event(ReplyEnd())


class BadTool:
    """Short, long, too slow, or broken."""

    timeout = 0.3
    concurrent = True
    kind = "read"

    def __init__(self, name: str, chance: random.Random) -> None:
        self.spec = ToolSpec(name=name, description="", parameters={"type": "object"})
        self.chance = chance

    async def call(self, arguments: Mapping[str, Any], context: ToolContext, /) -> ToolResult:
        if self.spec.name == "boom":
            raise ValueError("broken")
        if self.spec.name == "slow":
            await trio.sleep(self.chance.choice([0.1, 5.0]))
        return ToolResult("x" * self.chance.choice([5, 500]))


async def busy(store: MemoryStore) -> int:
    """How many signals are not settled."""
    signals = (await store.counts())["signals"]
    return signals["pending"] + signals["processing"]


async def storm(seed: int) -> None:
    chance = random.Random(seed)
    store, model = SlowStore(chance), BadModel(chance)
    tools = [BadTool(name, chance) for name in ("fast", "slow", "boom")]
    runtime = InProcessRuntime(
        model=model,
        tools=tools,  # type: ignore[arg-type]
        llm_timeout=0.5,
        summarizing_timeout=0.3,
        summarize_over=100,
        truncate_to=50,
        unload_after=0.2,
        jitter=chance.random,
        compact_at=0.1,
    )

    def handle(signal: Signal) -> list[Prompt]:
        limit = chance.choice([None, None, 40])
        return [Prompt(session=signal.payload["session"], text=signal.payload["text"], usage_limit=limit)]

    accepted: list[str] = []
    emitted: list[str] = []
    faults: list[Event] = []
    async with open_worker(store, runtime, {"said": handle}, sweep=None, wall_clock=trio.current_time) as worker:
        worker.bus.call(lambda event: faults.append(event) if isinstance(event, SettleFailed) else None)

        async def person(name: str) -> None:
            for number in range(25):
                session, what = chance.choice(SESSIONS), chance.random()
                if what < 0.3:
                    emitted.append(await worker.emit("said", {"session": session, "text": f"{name} {number}"}))
                elif what < 0.8:
                    receipt = await runtime.sessions.submit(session, f"{name} {number}")
                    accepted.append(receipt.id)
                elif what < 0.9:
                    await runtime.sessions.interrupt(session)
                elif what < 0.95 and emitted:
                    with contextlib.suppress(WrongState):
                        await worker.cancel_signal(chance.choice(emitted))
                else:
                    await runtime.sessions.compact(session)
                await trio.sleep(chance.random() * 0.05)

        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(person, f"p{number}")
        with trio.fail_after(3_600):
            while await store.unsettled_inputs() or await busy(store):
                await trio.sleep(1)
        assert not [loop.name for loop in runtime.sessions.loops.values() if loop.machine.books.lock.is_locked()]
    assert model.wrong == [] and faults == []
    async with store.open():
        states = {input_id: await store.input(input_id) for input_id in accepted}
        assert {each.state for each in states.values() if each} <= {InputState.DELIVERED, InputState.CANCELLED}
        assert None not in states.values()
        said: list[Message] = []
        for session in SESSIONS:
            messages = await store.messages(session, limit=10_000)
            assert message_shape(messages) is None
            said += messages
        delivered = [each.id for message in said for each in message.inputs if each.id in states]
        assert sorted(delivered) == sorted(
            input_id for input_id, each in states.items() if each and each.state is InputState.DELIVERED
        )


@pytest.mark.parametrize("seed", range(8))
def test_whatever_goes_wrong_nothing_is_stuck_lost_or_out_of_shape(seed: int) -> None:
    """SES-9, SES-10a, SES-19, SES-21, SES-4: the ledger balances, each delivered input is in one message, every lock is free."""
    trio.run(storm, seed, clock=trio.testing.MockClock(autojump_threshold=0))

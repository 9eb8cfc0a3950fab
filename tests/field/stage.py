"""A stage for sessions: a model that plays a script, tools that note what they do, and judges that no test can forget.

The law: every request of every test is judged for its shape (SES-9), every commit for its ledger (SES-10a), and both again
when the stage is left. What a test expects to go wrong it says to the judges, and nothing else may.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import attrs
import trio
import trio.testing

from concorde_trio import SessionHarness
from concorde_trio._sansio.model_events import (
    EPOCH_KEY,
    CallDelta,
    CallStarted,
    ModelEvent,
    ModelRequest,
    Purpose,
    ReplyEnd,
    StopReason,
    TextDelta,
    ToolSpec,
)
from concorde_trio.errors import ModelError
from concorde_trio.events import Event, InputSettled, SettleFailed
from concorde_trio.messages import Message
from concorde_trio.models.scripted import ScriptedModel
from concorde_trio.sessions.loop import SessionLoop
from concorde_trio.sessions.tool import ToolContext, ToolResult
from concorde_trio.testing.message_shape import check_message_shape
from tests.field.ledger import LedgerStore
from tests.signals.stage import play as play_on_a_virtual_clock

OnEvent: TypeAlias = Callable[[ModelEvent], None]
Step: TypeAlias = tuple[float, ModelEvent | ModelError]
Reply: TypeAlias = Sequence[Step] | Callable[[ModelRequest, OnEvent], Awaitable[None]]
"""Steps of (seconds after the one before, what comes then), which stall after the last; or an async function."""

play = play_on_a_virtual_clock
"""``trio.run`` of a test's main."""

S = "ann"
"""The session of tests that need only one."""


# --- scripts ------------------------------------------------------------------------------------------------


def says(text: str, after: float = 0.0) -> list[Step]:
    """An answer, complete after so many seconds."""
    return [(after, TextDelta(text)), (0.0, ReplyEnd())]


def calls(*wanted: tuple[str, str] | tuple[str, str, str], after: float = 0.0, text: str = "") -> list[Step]:
    """A reply with these calls: (id, tool) or (id, tool, arguments)."""
    steps: list[Step] = [(after, TextDelta(text))]
    for index, (call_id, tool, *arguments) in enumerate(wanted):
        steps.append((0.0, CallStarted(index, call_id, tool)))
        steps.append((0.0, CallDelta(index, arguments[0] if arguments else "{}")))
    return [*steps, (0.0, ReplyEnd(StopReason.CALLS))]


def fails(status: int | None = 500, after: float = 0.0, **more: Any) -> list[Step]:
    """A request that fails."""
    return [(after, ModelError(f"the provider says {status}", status=status, **more))]


class FieldModel:
    """Plays one reply a request, in order; ``asked`` has (time, request), ``closed`` (time, epoch) of those cut off.

    ``then``: every reply after the last; without it a request past the end is a fault of the test.
    """

    name = "field"

    def __init__(
        self,
        *replies: Reply,
        summaries: Iterable[Reply] = (),
        then: Reply | None = None,
        context_window: int | None = None,
    ) -> None:
        self._turns, self._summaries, self._then = list(replies), list(summaries), then
        self.context_window = context_window
        self.asked: list[tuple[float, ModelRequest]] = []
        self.closed: list[tuple[float, int]] = []
        self.wrong: list[str] = []

    def sent(self, *, purpose: Purpose = Purpose.TURN) -> list[ModelRequest]:
        """The requests of one purpose, in order."""
        return [request for _, request in self.asked if request.purpose is purpose]

    def times(self) -> list[float]:
        """When each request came."""
        return [at for at, _ in self.asked]

    async def stream(self, request: ModelRequest, on_event: OnEvent, /) -> None:
        """See ``Model.stream``."""
        self.asked.append((trio.current_time(), request))
        try:
            check_message_shape(request.messages)
        except AssertionError as error:
            self.wrong.append(str(error))
        script = self._turns if request.purpose is Purpose.TURN else self._summaries
        reply = script.pop(0) if script else self._then
        if reply is None:
            self.wrong.append(f"nobody expected request {len(self.asked)}, a {request.purpose}")
            raise ModelError("nobody expected this request")
        try:
            if callable(reply):
                await reply(request, on_event)
            else:
                await ScriptedModel([reply], summaries=[reply]).stream(request, on_event)
        except trio.Cancelled:
            self.closed.append((trio.current_time(), request.context[EPOCH_KEY]))
            raise


# --- tools --------------------------------------------------------------------------------------------------

Body: TypeAlias = Callable[[Mapping[str, Any], ToolContext], Awaitable[str]]


@attrs.define(eq=False)
class FieldTool:
    """A tool that works for some seconds, or as ``body`` says; ``ran`` has (time, call id) of each start."""

    name: str
    body: float | Body = 1.0
    timeout: float = 30.0
    concurrent: bool = False
    kind: Any = "execute"
    output: str | None = None
    ran: list[tuple[float, str]] = attrs.field(factory=list)

    @property
    def spec(self) -> ToolSpec:
        """What a model is told of it."""
        return ToolSpec(name=self.name, description=self.name, parameters={"type": "object", "properties": {}})

    async def call(self, arguments: Mapping[str, Any], context: ToolContext, /) -> ToolResult:
        """Note it and do it."""
        self.ran.append((trio.current_time(), context.call_id))
        if callable(self.body):
            return ToolResult(await self.body(arguments, context))
        await trio.sleep(self.body)
        return ToolResult(f"{context.call_id} done" if self.output is None else self.output)


# --- the stage ----------------------------------------------------------------------------------------------


@attrs.define(eq=False)
class Scene:
    """A harness on its stage. ``events`` has (time, event)."""

    harness: SessionHarness
    model: FieldModel
    store: LedgerStore
    events: list[tuple[float, Event]] = attrs.field(factory=list)
    settle_failures: int = 0
    """How many of them the test wants."""

    async def say(self, text: str, session: str = S, **more: Any) -> str:
        """Submit; the input's id. It must be accepted."""
        receipt = await self.harness.submit(session, text, **more)
        assert receipt.accepted, receipt
        return receipt.id

    def loop(self, session: str = S) -> SessionLoop:
        """The loop of a session that is in memory."""
        loop = self.harness.loaded(session)
        assert loop is not None
        return loop

    def status(self, session: str = S) -> str:
        """What a session does."""
        return self.loop(session).machine.status

    async def idle(self, session: str = S) -> None:
        """Until a session does nothing and has nothing to do."""
        loop = self.loop(session)
        await loop.wait_until(lambda: loop.machine.idle)
        await trio.testing.wait_all_tasks_blocked()

    async def messages(self, session: str = S) -> list[Message]:
        """Its transcript, as it is stored."""
        return await self.store.messages(session, limit=10_000)

    async def texts(self, session: str = S) -> list[str]:
        """The texts of it."""
        return [message.text for message in await self.messages(session)]

    async def die(self, session: str = S) -> None:
        """The process dies: at once, and nothing is written any more; the stage is left by a Crash."""
        self.store.dead = True
        await self.harness.submit(session, "the last thing it hears")
        raise AssertionError("it lives")

    def told(self, *kinds: type[Event]) -> list[Any]:
        """The events of these kinds, in order."""
        return [event for _, event in self.events if isinstance(event, kinds)]

    def when(self, kind: type[Event]) -> list[float]:
        """The times of the events of one kind."""
        return [at for at, event in self.events if isinstance(event, kind)]

    async def judge(self) -> None:
        """What holds at the end of every test."""
        assert self.model.wrong == []
        assert len(self.told(SettleFailed)) == self.settle_failures, self.told(SettleFailed)
        settled = [event.input_id for event in self.told(InputSettled)]
        assert len(settled) == len(set(settled)), "an input settled twice (SES-10a)"
        await self.store.judge()


@asynccontextmanager
async def stage(
    model: FieldModel, *tools: Any, store: LedgerStore | None = None, **options: Any
) -> AsyncIterator[Scene]:
    """A harness that plays; the judges come when the block is left normally."""
    store = LedgerStore() if store is None else store
    events: list[tuple[float, Event]] = []

    def keep(told: Sequence[Event]) -> None:
        events.extend((trio.current_time(), event) for event in told)

    chosen = {"heartbeat": 5.0, "jitter": lambda: 1.0, "wall_clock": trio.current_time, **options}
    harness = SessionHarness(store=store, model=model, tools=tools, publish=keep, **chosen)
    async with harness.open():
        scene = Scene(harness, model, store, events)
        yield scene
    async with store.opened():
        await scene.judge()

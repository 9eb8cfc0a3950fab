"""What the checks of model clients share: one question, what came of it, and the ways to say what was wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

import attrs
import trio

from concorde_trio._sansio.model_events import (
    EPOCH_KEY,
    PURPOSE_KEY,
    ModelEvent,
    ModelRequest,
    Ping,
    Purpose,
    ReasoningDelta,
    ReplyEnd,
    ToolSpec,
)
from concorde_trio._sansio.reply import Reply, ReplyBuilder
from concorde_trio.errors import ModelError
from concorde_trio.messages import Input, Message, Role
from concorde_trio.sessions.model import Model
from concorde_trio.testing.model_dialects import Dialect
from concorde_trio.testing.model_server import ModelServer, open_model_server

MakeModel: TypeAlias = Callable[[str, str], Model]
"""(base URL, key) -> a client that sends its requests there."""
Check: TypeAlias = Callable[[MakeModel, Dialect], Awaitable[None]]

KEY = "sk-check-0123456789-ABCDEFG"
HOLDS = 30.0
"""Seconds of real time after which something that was to happen at once is taken for never. No verdict but that."""

TOOLS = (
    ToolSpec(name="write", description="Write a file.", parameters={"type": "object", "properties": {}}),
    ToolSpec(name="read", description="Read a file.", parameters={"type": "object", "properties": {}}),
)


def asked(text: str = "hello") -> ModelRequest:
    """A request with one message of a person."""
    said = Input(id="i1", text=text, at=0.0)
    return ModelRequest(
        session="ann",
        purpose=Purpose.TURN,
        messages=(Message(seq=1, role=Role.USER, text=text, at=0.0, inputs=(said,)),),
        tools=TOOLS,
        system="Be brief.",
        context={EPOCH_KEY: 4711, PURPOSE_KEY: "turn", "session": "ann"},
    )


@attrs.define
class Heard:
    """What came of a request."""

    events: list[ModelEvent] = attrs.field(factory=list)
    error: ModelError | None = None
    returned: bool = False

    @property
    def complete(self) -> bool:
        """Whether a ReplyEnd came."""
        return any(isinstance(event, ReplyEnd) for event in self.events)

    @property
    def reply(self) -> Reply:
        """The reply that the events make. AssertionError if they make none."""
        assert self.error is None, f"the reply failed: {self.error}"
        builder = ReplyBuilder()
        for event in self.events:
            builder.feed(event)
        assert builder.complete, f"no ReplyEnd came, of {self.events}"
        return builder.reply()

    @property
    def reasoning(self) -> str:
        """All reasoning."""
        return "".join(event.text for event in self.events if isinstance(event, ReasoningDelta))

    @property
    def pings(self) -> int:
        """How many events said only that the connection lives."""
        return sum(isinstance(event, Ping) for event in self.events)


async def hear(model: Model, request: ModelRequest | None = None, into: Heard | None = None) -> Heard:
    """Send a request, and collect what comes. AssertionError for an exception that is no ModelError."""
    heard = into if into is not None else Heard()
    try:
        await model.stream(request or asked(), heard.events.append)
        heard.returned = True
    except ModelError as error:
        heard.error = error
    except Exception as error:
        raise AssertionError(f"Model: what goes wrong must be a ModelError, this is {error!r}") from error
    return heard


@asynccontextmanager
async def served(
    make_model: MakeModel, dialect: Dialect, seconds: float = 4 * HOLDS
) -> AsyncIterator[tuple[ModelServer, Model]]:
    """A server and a client of it. AssertionError if a check takes that many seconds of real time."""
    try:
        with trio.fail_after(seconds):
            async with open_model_server() as server:
                yield server, make_model(server.url + dialect.base_path, KEY)
    except* trio.TooSlowError:
        raise AssertionError(f"Model: the check took more than {seconds:g} seconds; something waits for ever") from None


def same_reply(heard: Heard, events: Sequence[ModelEvent], about: str) -> None:
    """AssertionError unless the events that came make the same reply as these."""
    expected = Heard(list(events)).reply
    found = attrs.evolve(heard.reply, provider=expected.provider)
    if found.usage is not None and expected.usage is not None:
        found = attrs.evolve(found, usage=attrs.evolve(found.usage, cost=expected.usage.cost))
    assert found == expected, f"{about}: {found} came where {expected} was sent"

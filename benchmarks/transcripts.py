"""A store of sessions without a disk, and models without a network: what is measured around them is the session's own work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio

from concorde_trio._sansio.model_events import ModelRequest, ReplyEnd, TextDelta
from concorde_trio.messages import Input, Message, Role
from concorde_trio.sessions.model import OnEvent
from concorde_trio.sessions.store import SessionRecord, StoredSession

MESSAGES = 20
WORDS = "Some words of a conversation, as many as people write to an agent on an ordinary day, more or less. "


class Transcripts:
    """A store of sessions that all have the same number of messages; what is written to it is let go."""

    queue = "benchmark"

    def __init__(self, messages: int = 0) -> None:
        self.messages = messages

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        yield

    async def load_session(self, name: str) -> StoredSession:
        await trio.lowlevel.checkpoint()
        said = tuple(_message(name, seq) for seq in range(1, self.messages + 1))
        record = SessionRecord(name=name, created_at=0.0, updated_at=0.0)
        return StoredSession(record=record, last_seq=len(said), messages=said, inputs=())

    async def unsettled_inputs(self, session: str | None = None) -> list[Any]:
        return []

    async def input(self, input_id: str) -> None:
        return None

    async def apply(self, changes: Sequence[Any]) -> None:
        await trio.lowlevel.checkpoint()


def _message(name: str, seq: int) -> Message:
    text = f"{seq} of {name}: {WORDS}"
    if seq % 2:
        given = Input(id=f"{name}-{seq}", text=text, at=0.0)
        return Message(seq=seq, role=Role.USER, text=text, at=0.0, inputs=(given,))
    return Message(seq=seq, role=Role.ASSISTANT, text=text, at=0.0, model="benchmark")


class Stalling:
    """A model that never answers. ``all_asked`` is set once it was asked so often."""

    name = "stalling"
    context_window = None

    def __init__(self, expected: int = 0) -> None:
        self.left = expected
        self.all_asked = trio.Event()

    def asked(self) -> None:
        """It was."""
        self.left -= 1
        if not self.left:
            self.all_asked.set()

    async def stream(self, request: ModelRequest, on_event: OnEvent) -> None:
        self.asked()
        await trio.sleep_forever()


class Streaming:
    """A model that says ``chunks`` words, with a checkpoint between them, as a socket would have."""

    name = "streaming"
    context_window = None

    def __init__(self, chunks: int) -> None:
        self.chunks = chunks

    async def stream(self, request: ModelRequest, on_event: OnEvent) -> None:
        event = TextDelta("word ")
        for _ in range(self.chunks):
            await trio.lowlevel.checkpoint()
            on_event(event)
        on_event(ReplyEnd())

"""Watching a session while it works: what it streams and what becomes of it. Who does not keep up is cut off (SRV-4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import trio

from concorde_trio._sansio.model_events import ModelEvent
from concorde_trio.events import Event

Seen: TypeAlias = ModelEvent | Event


class Watchers:
    """The channels of those who watch one session."""

    __slots__ = ("_closed", "_sends")

    def __init__(self) -> None:
        self._sends: list[trio.MemorySendChannel[Seen]] | None = None
        self._closed = False

    def __bool__(self) -> bool:
        return bool(self._sends)

    def stream(self, event: ModelEvent) -> None:
        """A piece of the reply that is being streamed."""
        if self._sends:
            self._give(event)

    def events(self, events: Sequence[Event]) -> None:
        """What became of the session."""
        if self._sends:
            for event in events:
                self._give(event)

    def _give(self, seen: Seen) -> None:
        assert self._sends is not None
        for send in tuple(self._sends):
            try:
                send.send_nowait(seen)
            except (trio.WouldBlock, trio.BrokenResourceError):
                send.close()
                self._sends.remove(send)

    @contextmanager
    def watch(self, buffer: int) -> Iterator[trio.MemoryReceiveChannel[Seen]]:
        """A channel of what happens from now on; it ends with the loop, or when ``buffer`` items wait in it."""
        send, receive = trio.open_memory_channel[Seen](buffer)
        if self._sends is None:
            self._sends = []
        self._sends.append(send)
        if self._closed:
            self.close()
        try:
            yield receive
        finally:
            if send in self._sends:
                self._sends.remove(send)
            send.close()
            receive.close()

    def close(self) -> None:
        """End every channel."""
        self._closed = True
        for send in self._sends or ():
            send.close()
        self._sends = None if self._sends is None else []

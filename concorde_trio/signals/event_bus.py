"""Events to whoever listens. A listener that does not keep up is cut off, never waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import trio

from concorde_trio.events import Event


class EventBus:
    """Publishes events, in order, to every subscriber.

    ``measured``: told how many seconds things took that are no events, by name: "commit" (of the worker's changes) and "lag" (of
    the event loop). None, and then nothing is told, unless somebody sets it. Called in Trio's thread: it must be quick and not raise.
    """

    def __init__(self) -> None:
        self._sends: dict[int, trio.MemorySendChannel[Event]] = {}
        self._calls: list[Callable[[Event], None]] = []
        self._next = 0
        self.measured: Callable[[str, float], None] | None = None
        self._closed = False

    def publish(self, events: Iterable[Event]) -> None:
        """Give out events; never waits. A subscriber whose buffer is full gets the end of its stream instead."""
        for event in events:
            for call in self._calls:
                call(event)
            for number, send in list(self._sends.items()):
                try:
                    send.send_nowait(event)
                except (trio.WouldBlock, trio.BrokenResourceError):
                    send.close()
                    del self._sends[number]

    def call(self, function: Callable[[Event], None]) -> None:
        """Call ``function`` with every event from now on, in the worker's own task: it must be quick and not raise."""
        self._calls.append(function)

    def measure(self, function: Callable[[str, float], None]) -> None:
        """Tell ``function`` too what is ``measured``."""
        before = self.measured
        if before is None:
            self.measured = function
        else:

            def both(what: str, seconds: float) -> None:
                before(what, seconds)
                function(what, seconds)

            self.measured = both

    @contextmanager
    def subscribe(self, buffer: int = 1_000) -> Iterator[trio.MemoryReceiveChannel[Event]]:
        """A channel of the events from now on. It ends when the worker does, or when ``buffer`` events wait in it."""
        send, receive = trio.open_memory_channel[Event](buffer)
        number, self._next = self._next, self._next + 1
        self._sends[number] = send
        if self._closed:
            self.close()
        try:
            yield receive
        finally:
            self._sends.pop(number, None)
            send.close()
            receive.close()

    def close(self) -> None:
        """End every stream, those that are asked for later too."""
        self._closed = True
        for send in self._sends.values():
            send.close()
        self._sends.clear()

"""Events of a server over torn connections and restarts: ``Client.follow`` (SRV-4).

The law: between two resets every event is given once, in order. A reset says that some may have been missed: what was known is
not true any more, and a new snapshot is. A connection that is lost, and a server that is away for a while, are nobody's
concern: it is asked again, from the last event that was given.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self, get_origin

import attrs
import trio

from concorde_trio import events
from concorde_trio.client.wire import Wire
from concorde_trio.errors import RequestRefused, ServerGone, ServerSilent
from concorde_trio.failures import alone

SOON = 0.1
LATER = 5.0
"""Seconds before a lost server is asked again: at first, and at most."""
BUFFER = 100
"""Events that may have come and not been asked for; whoever lets more wait is a slow reader to the server."""

_COME_AGAIN = frozenset({429, 502, 503, 504})


@attrs.frozen(kw_only=True)
class Happened:
    """One event. ``id``: to come back to it; ``name``: its class's; ``data``: its JSON document."""

    id: str
    name: str
    data: Mapping[str, Any]

    @property
    def event(self) -> events.Event | None:
        """As its class of ``concorde_trio.events``; None for one that this version does not know."""
        kind = _KINDS.get(self.name)
        if kind is None:
            return None
        try:
            return kind(**{field: _read(type_, self.data[field]) for field, type_ in _fields(kind, self.data)})
        except (TypeError, ValueError):
            return None


@attrs.frozen(kw_only=True)
class Reset:
    """Events may have been missed: take a snapshot. ``id``: the place from which it goes on; ``reason``: a sentence."""

    id: str
    reason: str


class Following:
    """What ``async with client.follow() as following`` gives: an async iterator of Happened and Reset."""

    def __init__(self, given: trio.MemoryReceiveChannel[Happened | Reset | Exception]) -> None:
        self._given = given

    def __aiter__(self) -> Self:
        """Itself."""
        return self

    async def __anext__(self) -> Happened | Reset:
        """The next event; waits for a server that is away. RequestRefused if it refuses. A wait that is cancelled loses nothing."""
        given = await self._given.receive()
        if isinstance(given, Exception):
            raise given
        return given


@asynccontextmanager
async def follow(wire: Wire, query: Mapping[str, object], after: str | None) -> AsyncIterator[Following]:
    """Follow while the block runs. Once it is entered, nothing is missed; what is wrong with the first request is raised."""
    try:
        async with trio.open_nursery() as nursery:
            give, given = trio.open_memory_channel[Happened | Reset | Exception](BUFFER)
            with given:
                await nursery.start(_Reader(wire, query, after, give).run)
                yield Following(given)
            nursery.cancel_scope.cancel("nobody follows any more")
    except BaseExceptionGroup as group:
        single = alone(group)
        if single is None:
            raise
        raise single from None


class _Reader:
    """The task that reads: a read that is cancelled would cost the connection."""

    def __init__(
        self,
        wire: Wire,
        query: Mapping[str, object],
        after: str | None,
        give: trio.MemorySendChannel[Happened | Reset | Exception],
    ) -> None:
        self._wire = wire
        self._query = query
        self._after = after
        self._give = give
        self._begun = False
        self._pause = SOON

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Read one stream after another."""
        while True:
            try:
                await self._read(task_status)
            except (ServerGone, ServerSilent):
                if not self._begun:
                    raise
            except RequestRefused as error:
                if not self._begun:
                    raise
                if error.status not in _COME_AGAIN:
                    await self._give.send(error)
                    return
            await trio.sleep(self._pause)
            self._pause = min(2 * self._pause, LATER)

    async def _read(self, task_status: trio.TaskStatus[None]) -> None:
        headers = {} if self._after is None else {"last-event-id": self._after}
        async with self._wire.events("events", query=self._query, headers=headers) as stream:
            async for event in stream:
                if event.name == "end":
                    return
                self._pause = SOON
                if event.name == "reset":
                    await self._give.send(Reset(id=event.id, reason=str(event.data["reason"])))
                elif event.data is not None:
                    await self._give.send(Happened(id=event.id, name=event.name, data=event.data))
                self._after = event.id or self._after  # an id alone says how far a quiet stream is
                if not self._begun:  # the first thing says from where events are told
                    self._begun = True
                    task_status.started()


def _kinds(root: type[events.Event]) -> dict[str, type[events.Event]]:
    found = {}
    for each in root.__subclasses__():
        if each.__module__ == events.__name__:
            found[each.__name__] = attrs.resolve_types(each, vars(events))
        found |= _kinds(each)
    return found


_KINDS = _kinds(events.Event)


def _fields(kind: type[events.Event], data: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(field.name, field.type) for field in attrs.fields(kind) if field.name in data]


def _read(type_: Any, value: Any) -> Any:
    if isinstance(type_, type) and issubclass(type_, enum.Enum):
        return type_(value)
    return tuple(value) if get_origin(type_) is tuple else value

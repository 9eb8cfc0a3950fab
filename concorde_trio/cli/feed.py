"""Events of whoever serves a queue, over restarts of the gateway: what ``top`` and ``--follow`` live on (SRV-4).

The law: who listens is told to begin before it hears anything, and again whenever events may have been missed: after a
restart, and when it fell behind. Between two beginnings it hears every event once, in order. What cannot pass (a server
that knows no events) ends it with the server's own words.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import trio

from concorde_trio.cli.client import open_client
from concorde_trio.client.client import Client
from concorde_trio.client.wire import ServerEvent
from concorde_trio.errors import RefusedId, RefusedRequest, RequestRefused, ServerGone, ServerSilent
from concorde_trio.server.endpoint import Endpoint, read_endpoint

LOOK = 0.2
"""Seconds between two looks for a gateway, and before one that went away is asked again."""
TRIES = 3
"""Times that a gateway which is there is asked in vain before it counts as gone."""


class Listener(Protocol):
    """Who hears."""

    async def begin(self, client: Client) -> str:
        """Take what is true now; the id of the event, or snapshot, from which to hear."""
        ...

    async def hear(self, event: ServerEvent) -> None:
        """The next event."""
        ...

    def reached(self, endpoint: Endpoint | None) -> None:
        """This gateway is heard from now on; None: that is over."""
        ...

    async def unserved(self, reason: str | None) -> None:
        """Nobody can be heard now, because of ``reason`` or because no gateway serves the queue; said again and again."""
        ...


class Feed:
    """Hears for one listener, until it is cancelled."""

    def __init__(self, path: Path, listener: Listener) -> None:
        """``path`` of the queue's database."""
        self._path = path
        self._listener = listener
        self._after: str | None = None
        self._failed = 0

    async def run(self) -> None:
        """Find the gateway, hear it, and begin anew when it is gone."""
        while True:
            endpoint = read_endpoint(self._path)
            reason = None if endpoint is None else await self._try(endpoint)
            # One that is there still is asked again first: a connection that tore is no reason to look elsewhere.
            if endpoint is None or self._failed > TRIES or read_endpoint(self._path) != endpoint:
                await self._listener.unserved(reason)
            await trio.sleep(LOOK)

    async def _try(self, endpoint: Endpoint) -> str:
        self._failed += 1
        try:
            async with open_client(endpoint) as client:
                self._listener.reached(endpoint)
                return await self._hear(client)
        except (RefusedId, RefusedRequest):
            raise
        except (ServerGone, ServerSilent, RequestRefused) as error:
            return str(error)
        finally:
            self._listener.reached(None)

    async def _hear(self, client: Client) -> str:
        """Hear one gateway; why that is over."""
        if self._after is None:
            self._after = await self._listener.begin(client)
        async with client.events(after=self._after) as events:
            async for event in events:
                if event.name == "end":
                    return str(event.data["reason"])
                if event.name == "reset":
                    # The stream goes on from here, and what it tells from now on may be in what begins now.
                    self._after = await self._listener.begin(client)
                else:
                    if event.data is not None:  # an id alone says how far a quiet stream is
                        self._failed = 0
                        await self._listener.hear(event)
                    self._after = event.id or self._after
        return "its stream ended"

"""Work that tools left running beside a session, until its run ends (SES-8)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import trio

from concorde_trio.failures import travels

logger = logging.getLogger("concorde_trio.sessions")


class KeptWork:
    """Tasks of one session in its harness's nursery. ``stop`` cancels them; ``gone`` waits until they are over."""

    def __init__(self, nursery: trio.Nursery, session: str) -> None:
        self._nursery = nursery
        self._session = session
        self._scopes: set[trio.CancelScope] = set()
        self._gone = trio.Event()

    def __bool__(self) -> bool:
        return bool(self._scopes)

    def start(self, function: Callable[[], Awaitable[None]]) -> None:
        """Run it until it returns, or the run ends."""
        scope = trio.CancelScope()
        self._scopes.add(scope)
        self._nursery.start_soon(self._run, function, scope, name=f"kept for {self._session}")

    async def _run(self, function: Callable[[], Awaitable[None]], scope: trio.CancelScope) -> None:
        try:
            with scope:
                try:
                    await function()
                except BaseException as error:  # noqa: ASYNC103 - a cancellation does travel
                    if travels(error, exits=False):
                        raise
                    logger.error("what a tool of session %s left running failed", self._session, exc_info=error)
        finally:
            self._scopes.discard(scope)
            self._gone.set()
            self._gone = trio.Event()

    def stop(self) -> None:
        """End all of it."""
        for scope in tuple(self._scopes):
            scope.cancel("the run is over")

    async def gone(self) -> None:
        """Until all of it is over."""
        while self._scopes:
            await self._gone.wait()

"""What a model client is: one async method that sends a request and tells of everything that comes back.

Every client passes ``concorde_trio.testing.check_model``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from concorde_trio._sansio.model_events import ModelEvent, ModelRequest

OnEvent: TypeAlias = Callable[[ModelEvent], None]


class Model(Protocol):
    """A model behind some API. Safe to call concurrently; each call has its own stream."""

    @property
    def name(self) -> str:
        """What the provider calls it."""
        ...

    @property
    def context_window(self) -> int | None:
        """Tokens of input and output together that one request may have; None: not known, so nothing is compacted."""
        ...

    async def stream(self, request: ModelRequest, on_event: OnEvent, /) -> None:
        """Send the request; call ``on_event`` with each event as it comes; return after ReplyEnd.

        No retry and no timeout of its own: it is cancelled by Trio, and closes its connection then. ModelError for
        whatever went wrong: a status, a failed connection, an error in the stream, an end without ReplyEnd.
        ``on_event`` is quick and does not raise.
        """
        ...

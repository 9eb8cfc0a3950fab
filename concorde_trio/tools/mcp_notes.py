"""What was seen of an MCP server during one connection, for the words about its end."""

from __future__ import annotations

from collections.abc import Callable

import trio


class Notes:
    """Written by the transport, read by the connection. ``refused``: the last HTTP answer of 400 and above, in words.

    ``words``: what a program said at last. ``end``: how it ended, once it did; ``ended`` is set then.
    """

    def __init__(self) -> None:
        self.refused = ""
        self.words: Callable[[], str] = str
        self.end: str | None = None
        self.ended = trio.Event()

    def died(self, how: str) -> None:
        """The server is gone by itself. The first word stands."""
        if self.end is None:
            self.end = how
            self.ended.set()

    def about(self, problem: str) -> str:
        """The best words there are for a failed connection: how the server ended, or else the problem, and what it said."""
        return f"{self.end or problem + self.refused}{self.words()}"


class ConnectionLost(Exception):
    """The connection ended under a call. ``sent``: False when the call certainly never reached the server."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent

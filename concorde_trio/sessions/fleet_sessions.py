"""What a harness asks where other processes run sessions of its store too.

The law: a loop outside a run writes nothing that another process's run could meet; so who asks for one is sent there.
"""

from __future__ import annotations

from typing import Protocol

from concorde_trio._sansio.input_queue import Receipt
from concorde_trio.messages import Input


class FleetSessions(Protocol):
    """The fleet, as one of its processes sees it."""

    async def elsewhere(self, session: str) -> tuple[str | None] | None:
        """The URL of the agent server of the other process in which a run of this session is in flight, None if in none."""
        ...

    async def submit(self, session: str, given: Input) -> Receipt:
        """Accept an input for a session that no loop here has."""
        ...

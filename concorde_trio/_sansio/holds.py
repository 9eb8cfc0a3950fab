"""What can hold a session: a lease of a model or summary request, the registration of a tool call; and how one expires.

The law: a hold is a value that never changes. It has the number that names it for ever, the times that bound it, and
decides nothing; ``session_lock`` has the holds that are held.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import attrs

LLM = 300.0
"""Seconds without progress that a model request may take."""
SUMMARIZING = 180.0
"""Seconds without progress that a summary request may take."""
LLM_CEILING = 3600.0
"""Seconds that a model request may take in all (LSE-9)."""
SUMMARIZING_CEILING = 900.0
"""Seconds that a summary request may take in all (LSE-9)."""


@attrs.frozen
class Lease:
    """A hold of one model or summary request (LSE-2).

    ``acquired_at`` and ``started_at`` (its last progress) are seconds on the lock's clock; ``timeout`` and ``ceiling``
    (None: no ceiling) are seconds. ``epoch`` names this hold, for the life of the session (LSE-5).
    """

    epoch: int
    acquired_at: float
    started_at: float
    timeout: float
    ceiling: float | None

    @property
    def deadline(self) -> float:
        """When it expires, on the lock's clock: without more progress, or by its ceiling, whichever is earlier."""
        by_progress = self.started_at + self.timeout
        return by_progress if self.ceiling is None else min(by_progress, self.acquired_at + self.ceiling)

    @property
    def bound(self) -> Literal["progress", "ceiling"]:
        """Which of the two its deadline is; ``progress`` if they fall together."""
        by_progress = self.started_at + self.timeout
        return "ceiling" if self.ceiling is not None and self.acquired_at + self.ceiling < by_progress else "progress"


@attrs.frozen
class ToolRegistration:
    """A hold of one tool call (LSE-6).

    ``registration`` names this hold: the call_id may come again, in a later reply or after an approval, and is then
    another hold. ``started_at`` is seconds on the lock's clock, ``timeout`` seconds; nothing moves this deadline.
    ``exec_kind`` is the policy class decided at dispatch, None until it is attached.
    """

    call_id: str
    tool_name: str
    registration: int
    started_at: float
    timeout: float
    exec_kind: str | None = None

    @property
    def deadline(self) -> float:
        """When it expires, on the lock's clock."""
        return self.started_at + self.timeout


@attrs.frozen
class ExpiredLease:
    """A lease that a sweep took (LSE-7).

    ``reason``: ``progress`` if nothing moved for its timeout, ``ceiling`` if it lasted too long in all. ``waited``:
    seconds since its last progress, or since it was acquired if the ceiling ended it.
    """

    kind: Literal["llm", "summarizing"]
    lease: Lease
    waited: float
    reason: Literal["progress", "ceiling"]

    @property
    def epoch(self) -> int:
        """The epoch that is current no more."""
        return self.lease.epoch


@attrs.frozen
class ExpiredTool:
    """A tool registration that a sweep took (LSE-7). ``waited``: seconds since it was registered."""

    tool: ToolRegistration
    waited: float
    kind: Literal["tool"] = "tool"
    reason: Literal["timeout"] = "timeout"

    @property
    def call_id(self) -> str:
        """The call that is waited for no more."""
        return self.tool.call_id


Expired: TypeAlias = ExpiredLease | ExpiredTool


class Acquired(NamedTuple):
    """The lease there is: its epoch, and whether this caller took it, and so has to release it (LSE-4)."""

    epoch: int
    taken: bool

"""Ending one call: a run, a handle or a post that is to stop before it has come to its own end (RUN-6).

The law: the first reason counts.
"""

from __future__ import annotations

import attrs
import trio

from concorde_trio.records import RunState


@attrs.define(eq=False)
class Stopper:
    """Ends one call: its scope, and once asked, why and when (on Trio's clock)."""

    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    reason: str | None = None
    state: RunState = RunState.CANCELLED
    since: float = 0.0

    def stop(self, reason: str, state: RunState = RunState.CANCELLED) -> bool:
        """Ask the call to end; False when it was asked before. The first reason counts."""
        if self.reason is not None:
            return False
        self.reason, self.state, self.since = reason, state, trio.current_time()
        self.scope.cancel(reason=reason)
        return True

"""Which sessions a runtime keeps: one look, for the gateway and the agent server alike."""

from __future__ import annotations

from concorde_trio.errors import UsageError
from concorde_trio.sessions.harness import SessionHarness

NONE_KEPT = (
    "this worker's runtime keeps no sessions of its own; give it runtime=InProcessRuntime(model=...), "
    "or emit a signal whose handler makes a prompt for the session"
)


def keeps_sessions(runtime: object) -> bool:
    """Whether a runtime's runs are turns of sessions in this process. The property itself may not be ready yet."""
    return hasattr(type(runtime), "sessions")


def sessions_of(runtime: object) -> SessionHarness:
    """The sessions of a runtime. UsageError if it keeps none; WrongState while no worker has opened it."""
    if not keeps_sessions(runtime):
        raise UsageError(NONE_KEPT)
    harness: SessionHarness = runtime.sessions  # type: ignore[attr-defined]
    return harness

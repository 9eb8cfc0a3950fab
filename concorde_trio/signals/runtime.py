"""What a Runtime is: any object with ``async run(RunPrompt) -> RunOutcome``, and what it is opened with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol, runtime_checkable

import attrs

from concorde_trio._sansio.session_changes import EmitSignals, LinkInputs
from concorde_trio.events import Event
from concorde_trio.records import RunOutcome, RunPrompt
from concorde_trio.signals.event_bus import EventBus
from concorde_trio.signals.store import SignalStore


@attrs.frozen(kw_only=True)
class RuntimeContext:
    """What a worker opens its Runtime with, once, before the first run (RUN-4).

    ``agent_server_url``: where agents reach the agent server, None when there is none. ``queue``: a name of the
    queue that survives restarts; marks the processes of its runs. ``programs_lock``: a file on which whoever runs
    a program holds a shared flock while any process of it lives, and which recovery waits for (REC-6); None when
    the queue does not outlive its worker. ``store``: the worker's own, open. ``bus``: all events of the worker;
    ``publish`` tells events of your own on it, with live tags masked (TAG-4). ``fleet``: other processes execute runs of
    this queue too, and the next run of a session may be one of theirs.
    """

    queue: str
    agent_server_url: str | None = None
    programs_lock: Path | None = None
    store: SignalStore | None = None
    bus: EventBus | None = None
    publish: Callable[[Iterable[Event]], None] | None = None
    fleet: bool = False


@attrs.define
class Execution:
    """Which run a Runtime is executing, for a Runtime that keeps its books in the worker's store (SES-20).

    ``with_end``: changes that are written in the commit that ends the run, whatever its outcome (SES-21). ``stored``: called
    after that commit, by a member of a fleet alone, to whom no RunEnded comes.
    """

    run_id: str
    signal_id: str
    with_end: list[EmitSignals | LinkInputs] = attrs.field(factory=list)
    stored: list[Callable[[], None]] = attrs.field(factory=list)


executing: ContextVar[Execution | None] = ContextVar("executing", default=None)
"""Set in the task that calls ``Runtime.run``. It carries no tag, resources or context (RUN-4)."""


class Runtime(Protocol):
    """What executes a run.

    ``run`` must be safe to call concurrently; each call uses its own connection. It is cancelled by Trio when the
    run is cancelled or its time is up, and holds its locks until it has really ended (RUN-6). What it raises fails
    that run alone (RUN-3).
    """

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        """Execute one run to its end."""
        ...


@runtime_checkable
class OpenableRuntime(Protocol):
    """A Runtime with something to set up: the worker enters ``open`` once and leaves it when it stops."""

    def open(self, context: RuntimeContext, /) -> AbstractAsyncContextManager[object]:
        """Set up, and on leaving tear down."""
        ...

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        """Execute one run to its end."""
        ...

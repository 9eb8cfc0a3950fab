"""What a signal store is: rows in, rows out, one commit at a time. It decides nothing.

Every store passes ``concorde_trio.testing.check_signal_store``. All times are wall-clock seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import attrs

from concorde_trio._sansio.changes import Change
from concorde_trio.records import (
    NewSignal,
    Request,
    RequestKind,
    Run,
    RunState,
    SignalRecord,
    SignalState,
    Unfinished,
)


@attrs.frozen(kw_only=True)
class SignalFilter:
    """Which signals to list; None means any. ``before`` is a seq: newest first, below it.

    ``since``: only those emitted then or later (wall-clock seconds).
    """

    kind: str | None = None
    state: SignalState | None = None
    since: float | None = None
    before: int | None = None
    limit: int = 50


@attrs.frozen(kw_only=True)
class RunFilter:
    """Which runs to list; None means any. ``before`` is a position: newest first, below it.

    ``kind``: of their signals. ``since``: only those queued then or later (wall-clock seconds).
    """

    signal_id: str | None = None
    kind: str | None = None
    session: str | None = None
    resource: str | None = None
    state: RunState | None = None
    since: float | None = None
    before: int | None = None
    limit: int = 50


@attrs.frozen(kw_only=True)
class Pruned:
    """How many rows a prune removed."""

    signals: int
    runs: int
    sessions: int = 0


class Transaction(Protocol):
    """A transaction of the user's in the store's own database (SIG-2)."""

    async def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> list[tuple[Any, ...]]:
        """Run one statement and give its rows (an empty list when it has none)."""
        ...


class SignalStore(Protocol):
    """Signals, runs and operators' requests, durably.

    Opened once with ``async with store.open():``, and again after it was closed. Its async methods are called only
    while it is open. A database error that can pass is retried inside, with backoff; one that cannot is a StoreError (REC-5).
    """

    @property
    def queue(self) -> str:
        """A name of this queue that survives restarts (known once open): printable ASCII without spaces."""
        ...

    @property
    def programs_lock(self) -> Path | None:
        """The file of REC-6, None when the queue does not outlive the process."""
        ...

    def open(self) -> AbstractAsyncContextManager[None]:
        """Connect and bring the schema up to date; SchemaTooNew if it is newer than this package."""
        ...

    def own(
        self, *, wait: bool = False, waiting: Callable[[str], None] | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Be this queue's one worker (REC-1), and wait for programs of an earlier one to be dead (REC-6).

        QueueTaken, saying who has it, unless ``wait``. ``waiting`` is told, in a sentence, what is waited for.
        """
        ...

    async def emit(self, signals: Sequence[NewSignal], *, tx: Transaction | None = None) -> list[str]:
        """Store signals in the order given; the ids, committed when ``tx`` is None (SIG-1 to SIG-3).

        A signal whose kind and key are stored already gives the stored one's id and stores nothing (SIG-7).
        """
        ...

    def emit_sync(self, signals: Sequence[NewSignal]) -> list[str]:
        """The same from code that does not run Trio, from any thread; the store need not be open (SIG-8)."""
        ...

    def transaction(self, *, time_limit: float = 5.0) -> AbstractAsyncContextManager[Transaction]:
        """A transaction: commits on leaving, rolls back on an exception, ends by itself after ``time_limit``."""
        ...

    def in_transaction(self) -> bool:
        """True in a task that is inside an open transaction of this store: waiting for a signal there would deadlock."""
        ...

    def on_change(self, wake: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        """While entered, ``wake()`` is called in the Trio thread after every commit that added a signal or a request.

        At once for commits of this process, within 100 ms for another's (SIG-6). Spurious calls are allowed.
        """
        ...

    async def apply(self, changes: Sequence[Change]) -> None:
        """Write all of it in one commit, in order. On an error nothing is written. EmitSignals wakes as ``emit`` does."""
        ...

    async def pending(self, limit: int) -> list[SignalRecord]:
        """The first ``limit`` pending signals in seq order."""
        ...

    async def requests(self) -> list[Request]:
        """Every operator's request not yet finished, oldest first."""
        ...

    async def request(self, kind: RequestKind, target: str) -> None:
        """Leave an operator's request for the worker."""
        ...

    async def unfinished(self) -> list[Unfinished]:
        """Every processing signal with its runs, in the order of their claim (positions, then seq)."""
        ...

    async def last_position(self) -> int:
        """The highest position ever given to a run, 0 if none; rows that were pruned count."""
        ...

    async def signal(self, signal_id: str) -> SignalRecord | None:
        """One signal, None if there is none."""
        ...

    async def run(self, run_id: str) -> Run | None:
        """One run, None if there is none."""
        ...

    async def signals(self, where: SignalFilter) -> list[SignalRecord]:
        """Signals, newest first."""
        ...

    async def runs(self, where: RunFilter) -> list[Run]:
        """Runs, newest first; of one signal: in the same order (newest, that is the highest position, first)."""
        ...

    async def tags(self) -> list[str]:
        """The tags of all runs that have not ended: what must be masked in anything shown (TAG-4)."""
        ...

    async def counts(self) -> dict[str, dict[str, int]]:
        """``{"signals": {state: n}, "runs": {state: n}}``; a state with none is 0."""
        ...

    async def prune(self, before: float) -> Pruned:
        """Remove signals settled before this wall-clock time, with their runs (STP-5).

        A store that is a SessionStore too removes what ``prune_sessions`` may, by the same time.
        """
        ...

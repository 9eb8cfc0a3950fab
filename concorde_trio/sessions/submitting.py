"""Input into a session's ledger, once an id whoever sends it, from wherever and how often (SES-10a).

The law: an id that its sender chose is written by itself first. The ledger answers "known" for what another session or
another process wrote, even at this instant; so no step of a session is ever refused for it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from typing import TypeVar

import trio

from concorde_trio import spans
from concorde_trio._sansio.input_queue import Receipt
from concorde_trio._sansio.session_machine import Entry
from concorde_trio.errors import StoreError, UsageError
from concorde_trio.messages import Input
from concorde_trio.sessions.inputs import first_receipt
from concorde_trio.sessions.loop import SessionLoop
from concorde_trio.sessions.store import SessionStore, StoredInput

T = TypeVar("T")


class Submissions:
    """Those of one harness."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._accepting: dict[str, trio.Event] = {}  # ids of senders, until what came of them is committed

    async def submit(self, loop: SessionLoop, given: Input, *, chosen: bool) -> Receipt:
        """Its receipt, once it is in the ledger. ``chosen``: the id is its sender's. InputConflict: it names another input."""
        known: StoredInput | None = None
        written: Entry | None = None
        noted: trio.Event | None = None
        # The signal that it may become is emitted by whoever submits it, and not by the loop that makes it.
        emitter = copy_context() if spans.tracing() else None

        async def look() -> None:
            """In the loop, which does nothing else meanwhile."""
            nonlocal known, written, noted
            await self._look_for_prune(loop)
            if not chosen:
                return
            while (other := self._accepting.get(given.id)) is not None:
                await other.wait()
            noted = self._accepting[given.id] = trio.Event()
            known = await self._store.input(given.id)
            entry = None if known is not None else _within(emitter, partial(_entry, loop, given))
            if entry is None:
                return
            try:
                await self._store.apply(entry.changes)
            except StoreError:
                known = await self._store.input(given.id)  # noqa: ASYNC120 - where this is cancelled, that is what counts
                if known is None:
                    raise
            else:
                written = entry

        def act() -> Receipt:
            if known is not None:
                return first_receipt(known, loop.name, given)
            return _within(emitter, partial(loop.machine.submit, given, written=written))

        def committed() -> None:
            if noted is not None:
                del self._accepting[given.id]
                noted.set()

        return await loop.ask(act, before=look, after=committed)

    async def _look_for_prune(self, loop: SessionLoop) -> None:
        """Where a turn may begin now. With a worker that is in a run, which looks for itself."""
        if loop.machine.terms.signal_for is None:
            await loop.forget_pruned()


def _within(context: Context | None, act: Callable[[], T]) -> T:
    return act() if context is None else context.run(act)


def _entry(loop: SessionLoop, given: Input) -> Entry | None:
    """None if there is nothing to write: ``submit`` will say why."""
    try:
        return None if loop.machine.knows(given) else loop.machine.entry(given)
    except UsageError:
        return None

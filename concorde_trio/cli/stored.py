"""A queue whose database is read directly, because no worker serves it (or ``--direct`` says so).

The law: nothing here settles or starts anything. What is asked of a worker is left as a row, and the next one takes
it up; who waits for whom comes from a lock table rebuilt from the rows. An emit, which needs neither, imports neither.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from concorde_trio.cli.options import LIMIT
from concorde_trio.cli.queue import store_at
from concorde_trio.errors import UnknownId
from concorde_trio.records import JSON, Run, RunOutcome, RunPrompt, RunState, SignalState
from concorde_trio.signals import documents
from concorde_trio.signals.emit import emit_sync
from concorde_trio.signals.store import RunFilter, SignalFilter

if TYPE_CHECKING:
    from concorde_trio.cli.queue import StoredQueue
    from concorde_trio.signals.documents import Document
    from concorde_trio.signals.views import LockViews
    from concorde_trio.signals.worker import SignalWorker

T = TypeVar("T")


class Stored:
    """One database. It is opened for each question and closed after it."""

    def __init__(self, path: Path) -> None:
        """``path`` of the database; it is made when it is not there."""
        self._path = path

    def signals(self, *, kind: str | None, state: str | None, limit: int) -> Document:
        """A page of signals, newest first."""
        where = SignalFilter(kind=kind, state=None if state is None else SignalState(state), limit=limit)

        async def ask(store: StoredQueue) -> Document:
            return documents.signals_document(await store.signals(where), limit, await mask_of(store))

        return self._ask(ask)

    def signal(self, signal_id: str) -> Document:
        """A signal with its runs."""

        async def ask(store: StoredQueue) -> Document:
            record = await store.signal(signal_id)
            if record is None:
                raise UnknownId(f"there is no signal {signal_id!r:.80}")
            mask = await mask_of(store)
            where = RunFilter(signal_id=signal_id, limit=LIMIT)
            page = documents.runs_document(await _with_waits(store, await store.runs(where), mask), LIMIT)
            return {**documents.signal_with_runs(record, page["runs"], mask), "next": page["next"]}

        return self._ask(ask)

    def runs(
        self, *, signal: str | None, session: str | None, resource: str | None, state: str | None, limit: int
    ) -> Document:
        """A page of runs, newest first."""
        where = RunFilter(
            signal_id=signal,
            session=session,
            resource=resource,
            state=None if state is None else RunState(state),
            limit=limit,
        )

        async def ask(store: StoredQueue) -> Document:
            runs = await store.runs(where)
            return documents.runs_document(await _with_waits(store, runs, await mask_of(store)), limit)

        return self._ask(ask)

    def run(self, run_id: str) -> Document:
        """A run."""

        async def ask(store: StoredQueue) -> Document:
            run = await store.run(run_id)
            if run is None:
                raise UnknownId(f"there is no run {run_id!r:.80}")
            return (await _with_waits(store, [run], await mask_of(store)))[0]

        return self._ask(ask)

    def locks(self) -> Document:
        """The lock table as the rows describe it."""

        async def ask(store: StoredQueue) -> Document:
            views, mask = await views_of(store), await mask_of(store)
            return {
                "locks": [documents.lock_document(lock, mask) for lock in views.locks(documents.SHOWN_WAITING)],
                "next": None,
            }

        return self._ask(ask)

    def emit(self, kind: str, payload: JSON, key: str | None) -> str:
        """The id of the signal, once it is committed (SIG-8)."""
        return emit_sync(self._store(), kind, payload, key=key)

    def cancel_run(self, run_id: str) -> None:
        """Leave a request for the next worker (RUN-6)."""
        self._ask(lambda store: _worker(store).cancel_run(run_id))

    def cancel_signal(self, signal_id: str) -> None:
        """Leave a request for the next worker (RUN-6)."""
        self._ask(lambda store: _worker(store).cancel_signal(signal_id))

    def retry(self, signal_id: str) -> str:
        """The id of a new signal of the same kind and payload (PST-5)."""
        return self._ask(lambda store: _worker(store).retry(signal_id))

    def _ask(self, question: Callable[[StoredQueue], Awaitable[T]]) -> T:
        async def main() -> T:
            store = self._store()
            async with store.open():
                return await question(store)

        return trio.run(main)

    def _store(self) -> StoredQueue:
        return store_at(self._path)


class _NoRuntime:
    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        raise AssertionError("a command runs nothing itself")


def _worker(store: StoredQueue) -> SignalWorker:
    """A worker that is never run, for what its door refuses and how."""
    from concorde_trio.signals.options import WorkerOptions
    from concorde_trio.signals.worker import SignalWorker

    return SignalWorker(store, _NoRuntime(), {}, WorkerOptions())


async def mask_of(store: StoredQueue) -> Callable[[Any], Any]:
    """What masks every tag that is stored (TAG-4)."""
    from concorde_trio._sansio.run_tags import RunTags

    tags: RunTags[str] = RunTags()
    for tag in await store.tags():
        tags.expect(tag)
    return tags.mask_json


async def views_of(store: StoredQueue) -> LockViews:
    """Views of the lock table that the rows describe."""
    from concorde_trio.signals.views import rebuilt_locks

    return rebuilt_locks(await store.unfinished())


async def _with_waits(store: StoredQueue, runs: list[Run], mask: Callable[[Any], Any]) -> list[Document]:
    waiting = [run.id for run in runs if run.state is RunState.PENDING]
    waits = (await views_of(store)).why_all(waiting) if waiting else {}
    return [documents.run_document(run, mask, waits.get(run.id)) for run in runs]

"""Rows to fill a store with, and the changes that bring them to a state."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from concorde_trio._sansio.changes import Change, ClaimSignal, EndRun, QueueRuns, SettleSignal, StartPost, StartRun
from concorde_trio._sansio.json_values import encode
from concorde_trio.records import NewSignal, Run, RunState, SignalPhase, SignalState
from concorde_trio.signals.store import SignalStore

MakeStore = Callable[[], SignalStore]
Check = Callable[[MakeStore], Awaitable[None]]

EMITTED, CLAIMED, QUEUED, STARTED, ENDED, SETTLED = 1_764_451_234.1234567, 1_764_451_235.1, 36.2, 37.3, 38.4, 39.5
"""Wall-clock times, some that no shorter number stands for."""

_numbers = itertools.count(1)


def new_signal(
    id_: str | None = None, payload: Any = None, *, kind: str = "asked", key: str | None = None
) -> NewSignal:
    """A signal to be emitted, with an id of its own unless one is given."""
    return NewSignal(
        id=id_ or f"signal-{next(_numbers)}", kind=kind, payload=encode(payload), emitted_at=EMITTED, key=key
    )


def new_run(signal_id: str, position: int, index: int = 0, **fields: Any) -> Run:
    """A pending run, as a worker queues it."""
    made: dict[str, Any] = {
        "id": f"run-{signal_id}-{index}",
        "signal_id": signal_id,
        "signal_seq": 1,
        "position": position,
        "index": index,
        "session": "ann",
        "prompt": "do it",
        "queued_at": QUEUED,
    }
    return Run(**made | fields)


@asynccontextmanager
async def opened(make_store: MakeStore) -> AsyncIterator[SignalStore]:
    """A fresh store, open."""
    store = make_store()
    async with store.open():
        yield store


async def emitted(store: SignalStore, *ids: str) -> None:
    """Signals with these ids, pending."""
    await store.emit([new_signal(each) for each in ids])


async def claimed(store: SignalStore, *ids: str) -> None:
    """Signals with these ids, claimed and in the phase handling."""
    await emitted(store, *ids)
    await store.apply([ClaimSignal(each, CLAIMED) for each in ids])


async def queued(store: SignalStore, signal_id: str, *runs: Run, error: str | None = None) -> None:
    """A signal in the phase running, with these runs."""
    await claimed(store, signal_id)
    await store.apply([QueueRuns(signal_id, runs, error)])


async def settled(store: SignalStore, signal_id: str, at: float = SETTLED, runs: tuple[Run, ...] = ()) -> None:
    """A signal that is done, with its runs."""
    await queued(store, signal_id, *runs)
    ends: list[Change] = [StartRun(run.id, STARTED) for run in runs]
    ends += [EndRun(run.id, RunState.DONE, ENDED) for run in runs]
    await store.apply([*ends, SettleSignal(signal_id, SignalState.DONE, at)])


async def in_phase(store: SignalStore, signal_id: str, state: SignalState, phase: SignalPhase | None) -> None:
    """A signal in this state and phase, without runs."""
    await emitted(store, signal_id)
    way: list[Change] = [
        ClaimSignal(signal_id, CLAIMED),
        QueueRuns(signal_id, ()),
        StartPost(signal_id, ENDED),
        SettleSignal(signal_id, SignalState.DONE, SETTLED),
    ]
    if state is SignalState.FAILED:
        way[-1] = SettleSignal(signal_id, SignalState.FAILED, SETTLED, "it failed")
    steps = {
        (SignalState.PENDING, None): 0,
        (SignalState.PROCESSING, SignalPhase.HANDLING): 1,
        (SignalState.PROCESSING, SignalPhase.RUNNING): 2,
        (SignalState.PROCESSING, SignalPhase.POSTING): 3,
    }
    await store.apply(way[: steps.get((state, phase), 4)])


async def in_run_state(store: SignalStore, signal_id: str, position: int, state: RunState) -> str:
    """The id of a run in this state."""
    run = new_run(signal_id, position)
    await queued(store, signal_id, run)
    error = None if state is RunState.DONE else "it did not go well"
    steps: dict[RunState, list[Change]] = {
        RunState.PENDING: [],
        RunState.RUNNING: [StartRun(run.id, STARTED)],
    }
    await store.apply(steps.get(state, [StartRun(run.id, STARTED), EndRun(run.id, state, ENDED, error=error)]))
    return run.id


async def everything(store: SignalStore) -> dict[str, Any]:
    """All that can be read from a store, to be compared."""
    from concorde_trio.signals.store import RunFilter, SignalFilter

    return {
        "pending": await store.pending(1_000_000),
        "unfinished": await store.unfinished(),
        "requests": await store.requests(),
        "signals": await store.signals(SignalFilter(limit=1_000_000)),
        "runs": await store.runs(RunFilter(limit=1_000_000)),
        "tags": sorted(await store.tags()),
        "counts": await store.counts(),
        "last_position": await store.last_position(),
    }

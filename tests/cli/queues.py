"""A queue with something in every state, written through the store's own door, as a worker would have left it."""

from __future__ import annotations

from pathlib import Path

import attrs
import trio

from concorde_trio._sansio.changes import (
    Change,
    ClaimSignal,
    EndRun,
    InterruptSignal,
    QueueRuns,
    SettleSignal,
    StartPost,
    StartRun,
)
from concorde_trio.records import NewSignal, Run, RunState, SignalState, Usage
from concorde_trio.stores.sqlite import SqliteStore

TAG = "tag-of-ann-0123456789"
HOSTILE = "\x1b[31m[red]\u202eend\x9b0m\r\nsecond line"
"""Text that would act on a terminal, if it were let."""
BEGAN = 1_700_000_000.0
FAILED, WAITING = "f0e1d2c3b4a5968778ab", "0123456789abcdef0123"


def run(signal: int, index: int, position: int, session: str, *resources: str, **fields: object) -> Run:
    """A pending run of signal number ``signal``."""
    return Run(
        id=f"signal-{signal}-{index}",
        signal_id=f"signal-{signal}",
        signal_seq=signal,
        position=position,
        index=index,
        session=session,
        resources=tuple(resources),
        prompt=f"do it as {TAG} {HOSTILE}",
        queued_at=BEGAN + signal,
        **fields,  # type: ignore[arg-type]
    )


def write_household(path: Path) -> None:
    """Signals 1 to 7 at ``path``.

    1 failed, 2 done, 3 processing: run 0 runs in session ann with the budget and carries TAG, run 1 waits for it on the budget.
    4 processing: waits for run 3-0 on ann and for 3-1 on the budget. 5 processing, posting: its ended run is held in
    session bob, for which 6 waits. 7 pending.
    """
    payload = '{"text": "\\u001b[31m[red]\\u202eend", "user": "ann"}'
    new = [
        NewSignal(id=f"signal-{number}", kind=f"kind[red]{number}", payload=payload, emitted_at=BEGAN + number)
        for number in range(1, 8)
    ]
    usage = Usage(input_tokens=10, output_tokens=5, cost=0.25)
    changes: list[Change] = []
    for number, runs in (
        (1, (run(1, 0, 1, "[red]eve", context={"why": HOSTILE}),)),
        (2, (run(2, 0, 2, "eve"),)),
        (3, (run(3, 0, 3, "ann", "budget", tag=TAG), run(3, 1, 4, "cleo", "budget"))),
        (4, (run(4, 0, 5, "ann", "budget"),)),
        (5, (run(5, 0, 6, "bob"),)),
        (6, (run(6, 0, 7, "bob"),)),
    ):
        changes.append(ClaimSignal(f"signal-{number}", BEGAN + number))
        changes.append(QueueRuns(f"signal-{number}", runs, holds=number == 5))
    for number in (1, 2, 3, 5):
        changes.append(StartRun(f"signal-{number}-0", BEGAN + 10 + number))
    changes += [
        EndRun("signal-1-0", RunState.FAILED, BEGAN + 20, error=HOSTILE, text=HOSTILE, usage=usage),
        InterruptSignal("signal-1"),
        SettleSignal("signal-1", SignalState.FAILED, BEGAN + 21, error=HOSTILE),
        EndRun("signal-2-0", RunState.DONE, BEGAN + 20, text="answer\nin two lines", usage=usage),
        SettleSignal("signal-2", SignalState.DONE, BEGAN + 22),
        EndRun("signal-5-0", RunState.DONE, BEGAN + 20),
        StartPost("signal-5", BEGAN + 20),
    ]

    trio.run(_write, path, new, changes)


def write_line(path: Path, length: int) -> None:
    """One signal of so many runs in session ann, the first of which runs."""
    new = [NewSignal(id="signal-1", kind="k", payload="null", emitted_at=BEGAN)]
    runs = tuple(run(1, index, index + 1, "ann") for index in range(length))
    changes = [ClaimSignal("signal-1", BEGAN), QueueRuns("signal-1", runs), StartRun("signal-1-0", BEGAN)]
    trio.run(_write, path, new, changes)


def write_failed(path: Path, error: str, began: float) -> None:
    """Signals with ids as real ones: FAILED, whose one run in session ann failed, and WAITING, the second run of which waits."""
    new = [NewSignal(id=name, kind="message.received", payload="null", emitted_at=began) for name in (FAILED, WAITING)]
    failed = attrs.evolve(run(1, 1, 1, "ann"), queued_at=began, id=f"{FAILED}-1", signal_id=FAILED)
    waiting = [
        attrs.evolve(run(2, index, 1 + index, "cleo"), queued_at=began, id=f"{WAITING}-{index}", signal_id=WAITING)
        for index in (1, 2)
    ]
    changes: list[Change] = [
        ClaimSignal(FAILED, began),
        QueueRuns(FAILED, (failed,)),
        StartRun(failed.id, began + 3),
        EndRun(failed.id, RunState.FAILED, began + 11, error=error),
        SettleSignal(FAILED, SignalState.FAILED, began + 12, error=error),
        ClaimSignal(WAITING, began),
        QueueRuns(WAITING, tuple(waiting)),
        StartRun(waiting[0].id, began + 4),
    ]
    trio.run(_write, path, new, changes)


async def _write(path: Path, new: list[NewSignal], changes: list[Change]) -> None:
    store = SqliteStore(path)
    async with store.open():
        await store.emit(new)
        await store.apply(changes)

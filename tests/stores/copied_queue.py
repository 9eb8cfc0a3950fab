"""A queue with something of everything in it, to be copied."""

from __future__ import annotations

from typing import Any

import attrs

from concorde_trio._sansio.changes import ClaimSignal, EndRun, QueueRuns, StartRun
from concorde_trio.records import RequestKind, RunState, Usage
from concorde_trio.testing.schedule_store_checks.rows import by_cron, once
from concorde_trio.testing.session_store_checks.samples import AT, LATER, given, said, save, summed
from concorde_trio.testing.store_checks.samples import SETTLED, new_run, new_signal, settled

LATEST = 7
"""The highest seq that was ever given out, and its run's the highest position; the rows are gone."""

ANN, BEA = "ann \u20ac", "b\u00e9a"


async def fill(store: Any) -> None:
    """Signals, runs, sessions, messages, inputs, a request and schedules, odd characters and numbers among them."""
    signals = [new_signal(f"s{number}", {"n": 0.1 * number}) for number in range(1, LATEST)]
    await store.emit([attrs.evolve(each, key=f"k {place}") for place, each in enumerate(signals)])
    runs = [new_run("s1", position, position, session=ANN, context={"a": [1]}, tag="t" * 16) for position in (1, 2)]
    await store.apply(
        [
            ClaimSignal("s1", AT),
            QueueRuns("s1", tuple(runs), holds=True),
            StartRun(runs[0].id, LATER),
            EndRun(runs[0].id, RunState.DONE, LATER, text="\t'\\N\n\"", usage=Usage(input_tokens=1, cost=0.1)),
            *(save(ANN, usage=Usage(output_tokens=2**40)), save(BEA, held=True), save("Zoe")),
            *(said(seq, f"{{{seq}}}\U0001f600", BEA) for seq in (1, 2)),
            summed(3, 2, session=BEA),
            given("i1", "Zoe"),
            given("i2", BEA, signal_id="s2"),
        ]
    )
    await store.request(RequestKind.CANCEL_SIGNAL, "s3")
    for schedule in (by_cron(), once(payload='"\u20ac"')):
        await store.put_schedule(schedule)
    await settled(store, "last", runs=(new_run("last", 3),))
    assert (await store.prune(SETTLED + 1)).signals == 1


async def numbers(store: Any) -> tuple[int, int, int]:
    """The seq of a signal that is emitted now, the highest position of a run, and the id of a request that is made now."""
    await store.emit([new_signal("next")])
    record = await store.signal("next")
    await store.request(RequestKind.CANCEL_SIGNAL, "next")
    return record.seq, await store.last_position(), (await store.requests())[-1].id

"""Faults to be planted into the rows of a queue, as a tool that edits them could: what is done, and what is to be found."""

from __future__ import annotations

from typing import Any

from concorde_trio._sansio.changes import ClaimSignal, QueueRuns, StartRun
from concorde_trio.testing.session_store_checks.samples import given, said, save
from concorde_trio.testing.store_checks.samples import new_run, new_signal, settled

LONG_AGO = 1.0

FAULTS: tuple[tuple[str, str, str], ...] = (
    ("update signals set error = 'why' where id = 'done'", "SIG-4", "done"),
    ("update signals set settled_at = null where id = 'done'", "SIG-4", "done"),
    ("update runs set error = null, state = 'failed' where id = 'run-done-0'", "RUN-2, TAG-4", "run-done-0"),
    ("update runs set tag = 'ttttttttttttttttt' where id = 'run-done-0'", "RUN-2, TAG-4", "run-done-0"),
    ("update signals set state = 'done', phase = null, settled_at = 1 where id = 'parked'", "PST-1", "run-parked-0"),
    ("update runs set state = 'cancelled' where id = 'run-done-0'", "RUN-2", "done"),
    ("update runs set signal_id = 'pending', \"index\" = 7 where id = 'run-parked-0'", "CLM-1", "run-parked-0"),
    ("update runs set signal_seq = 99 where id = 'run-parked-0'", "LCK-2", "run-parked-0"),
    ("delete from signals where id = 'parked'", "STP-5", "run-parked-0"),
    ("delete from sessions where name = 'bob'", "STP-5", "bob 1"),
    ("delete from sessions where name = 'cleo'", "STP-5", "given"),
    ("delete from messages where session = 'bob'", "SES-17", "bob"),
    ("update inputs set signal_id = 'done' where id = 'given'", "SES-10a, SES-20", "given"),
    ("update inputs set signal_id = 'gone' where id = 'given'", "SES-10a, SES-20", "given"),
    ("update inputs set prompt = true, id = 'prompt_run-done-0' where id = 'given'", "SES-21", "prompt_run-done-0"),
    ("update concorde_meta set last_position = 1", "SIG-3", "runs: 2 is there, 1 was the last"),
)
"""Statement, the rule that is told, and the id."""


async def fill(store: Any) -> None:
    """A stopped queue with which all is well."""
    await settled(store, "done", at=LONG_AGO, runs=(new_run("done", 1),))
    await store.emit([new_signal("parked"), new_signal("pending")])
    await store.apply(
        [
            ClaimSignal("parked", LONG_AGO),
            QueueRuns("parked", (new_run("parked", 2, signal_seq=2),)),
            *(save("bob"), said(1, session="bob"), save("cleo"), given("given", "cleo", at=LONG_AGO)),
        ]
    )


async def start(store: Any) -> None:
    """Its waiting run starts."""
    await store.apply([StartRun("run-parked-0", 5.0)])

"""Signals and runs as JSON documents: the same from the agent server and from a database read directly.

The law: every string that could hold a tag goes through ``mask``, and a run's tag is no field (TAG-4). Times are
wall-clock seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from concorde_trio.records import JSON, Run, SignalRecord

if TYPE_CHECKING:
    from concorde_trio.signals.views import LockView, WaitView

Document: TypeAlias = dict[str, Any]
Mask: TypeAlias = Callable[[JSON], JSON]
"""Masks every tag in a JSON value, as ``RunTags.mask_json`` does."""

SHOWN_WAITING = 100
"""Runs that are shown as waiting for one lock."""


def signal_document(record: SignalRecord, mask: Mask) -> Document:
    """A signal, without its runs."""
    found: Document = mask(
        {
            "id": record.id,
            "seq": record.seq,
            "kind": record.kind,
            "state": record.state.value,
            "phase": None if record.phase is None else record.phase.value,
            "payload": record.payload,
            "error": record.error,
            "interrupted": record.interrupted,
            "key": record.key,
            "retry_of": record.retry_of,
            "emitted_at": record.emitted_at,
            "claimed_at": record.claimed_at,
            "settled_at": record.settled_at,
        }
    )
    return found


def run_document(run: Run, mask: Mask, waits: WaitView | None = None, *, stopping: float | None = None) -> Document:
    """A run.

    ``waits_for`` says why it waits (LCK-7), null when it does not; ``stopping`` how many seconds ago it was told to
    stop, null when it was not (RUN-6).
    """
    found: Document = mask(
        {
            "id": run.id,
            "signal_id": run.signal_id,
            "position": run.position,
            "index": run.index,
            "session": run.session,
            "resources": list(run.resources),
            "state": run.state.value,
            "stopping": stopping,
            "prompt": run.prompt,
            "context": run.context,
            "usage_limit": run.usage_limit,
            "time_limit": run.time_limit,
            "queued_at": run.queued_at,
            "started_at": run.started_at,
            "ended_at": run.ended_at,
            "error": run.error,
            "text": run.text,
            "usage": None if run.usage is None else attrs.asdict(run.usage),
            "waits_for": None if waits is None or not waits.edges else waits.as_json(),
        }
    )
    return found


def signal_with_runs(record: SignalRecord, runs: Iterable[Document], mask: Mask) -> Document:
    """A signal with its runs' documents, in prompt order."""
    return {**signal_document(record, mask), "runs": sorted(runs, key=lambda run: int(run["index"]))}


def signals_document(records: list[SignalRecord], limit: int, mask: Mask) -> Document:
    """A page of signals, newest first; ``next`` is the ``before`` of the page after it, null when this is the last."""
    return {
        "signals": [signal_document(record, mask) for record in records],
        "next": records[-1].seq if len(records) == limit else None,
    }


def runs_document(runs: list[Document], limit: int) -> Document:
    """A page of runs' documents, newest first; ``next`` as for signals."""
    return {"runs": runs, "next": runs[-1]["position"] if len(runs) == limit else None}


def lock_document(lock: LockView, mask: Mask) -> Document:
    """A lock: who holds it, and who waits, in order; ``more_waiting`` says how many wait beyond those shown."""
    found: Document = mask(lock.as_json())
    return found

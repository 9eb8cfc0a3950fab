"""Making a signal, and emitting one from code that does not run Trio.

What is wrong with a signal is said here, before anything is stored (SIG-5).
"""

from __future__ import annotations

import time
from uuid import uuid4

from concorde_trio._sansio import json_values
from concorde_trio.records import JSON, NewSignal, check_name
from concorde_trio.signals.store import SignalStore


def new_signal(
    kind: str, payload: JSON = None, *, key: str | None = None, retry_of: str | None = None, emitted_at: float
) -> NewSignal:
    """A checked signal with a new id: InvalidName for the kind or key, InvalidValue for the payload (SIG-5)."""
    check_name(kind, "kind")
    if key is not None:
        check_name(key, "key")
    text = json_values.encode(payload)
    return NewSignal(id=uuid4().hex[:20], kind=kind, payload=text, emitted_at=emitted_at, key=key, retry_of=retry_of)


def emit_sync(store: SignalStore, kind: str, payload: JSON = None, *, key: str | None = None) -> str:
    """``worker.emit`` for producers that do not run Trio: a web app, a cron job, a thread, another process (SIG-8).

    ``store`` is a store object, open or not: ``emit_sync(SqliteStore("queue.db"), "order.placed", {"id": 7})``. It returns
    the signal's id once it is committed, and blocks its thread until then. Raises what ``emit`` raises.
    """
    return store.emit_sync([new_signal(kind, payload, key=key, emitted_at=time.time())])[0]

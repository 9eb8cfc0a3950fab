"""Making a signal, and emitting one from code that does not run Trio.

What is wrong with a signal is said here, before anything is stored (SIG-5).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from concorde_trio import spans
from concorde_trio._sansio import json_values
from concorde_trio.new_ids import new_id
from concorde_trio.records import JSON, NewSignal, check_name

MAX_PAYLOAD = 1_000_000
"""Bytes of a payload's JSON text, unless set (SIG-5)."""


def new_signal(
    kind: str,
    payload: JSON = None,
    *,
    key: str | None = None,
    retry_of: str | None = None,
    emitted_at: float,
    max_payload: int = MAX_PAYLOAD,
) -> NewSignal:
    """A checked signal with a new id: InvalidName for the kind or key, InvalidValue for the payload (SIG-5)."""
    check_name(kind, "kind")
    if key is not None:
        check_name(key, "key")
    text = json_values.encode(payload, max_bytes=max_payload)
    new = NewSignal(id=new_id(), kind=kind, payload=text, emitted_at=emitted_at, key=key, retry_of=retry_of)
    spans.emitted(new.id)
    return new


class EmitsSync(Protocol):
    """A store, or what stands for one."""

    def emit_sync(self, signals: Sequence[NewSignal]) -> list[str]:
        """Store signals; their ids."""
        ...


def emit_sync(
    store: EmitsSync, kind: str, payload: JSON = None, *, key: str | None = None, max_payload: int = MAX_PAYLOAD
) -> str:
    """``worker.emit`` for producers that do not run Trio: a web app, a cron job, a thread, another process (SIG-8).

    ``store`` is a store object, open or not: ``emit_sync(SqliteStore("queue.db"), "order.placed", {"id": 7})``. Or it is a
    transaction of yours, ``PostgresStore(url).join(connection)``, and then your commit is what stores the signal. It returns
    the signal's id once it is committed, and blocks its thread until then. ``max_payload``: bytes of JSON text that are
    allowed. Raises what ``emit`` raises.
    """
    signal = new_signal(kind, payload, key=key, emitted_at=time.time(), max_payload=max_payload)
    return store.emit_sync([signal])[0]

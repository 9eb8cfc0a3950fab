"""What the worker is compared with: the rows it leaves, written by one thread that does nothing else.

The law: this is the least that writing those rows durably costs with Python's sqlite3: for each signal one row of
``signals`` (done) and one of ``runs`` (done), in the store's own schema with its indexes and checks, on a database in
WAL mode with synchronous FULL, many rows in one transaction (``group``) or one signal in each. There is no Trio, no
claim, no handler, no start mark, no lock and no other process to wait for.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GROUP = 256
"""Signals in one commit of the reference with group commit."""

_SIGNAL = """insert into signals (id, kind, payload, state, emitted_at, claimed_at, settled_at)
values (?, 'bench', ?, 'done', ?, ?, ?)"""
_RUN = """insert into runs (position, id, signal_id, signal_seq, "index", session, prompt, resources, state, queued_at,
started_at, ended_at, text) values (?, ?, ?, ?, 0, ?, ?, '[]', 'done', ?, ?, ?, null)"""


class Reference:
    """A database made by the store, into which final rows are written."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._next: int = connection.execute("select coalesce(max(position), 0) + 1 from runs").fetchone()[0]

    def seconds(self, payloads: list[str], group: int) -> list[float]:
        """Write a signal and its run for each payload, ``group`` signals a commit; what each commit took."""
        connection, took = self._connection, []
        for start in range(0, len(payloads), group):
            begun = time.perf_counter()
            signals, runs = [], []
            for payload in payloads[start : start + group]:
                number = self._next
                self._next += 1
                now = time.time()
                signal_id = f"reference-{number:010}"
                session = f"session-{number % 50}"
                signals.append((signal_id, payload, now, now, now))
                runs.append((number, f"{signal_id}-1", signal_id, number, session, "do it", now, now, now))
            connection.execute("begin immediate")
            connection.executemany(_SIGNAL, signals)
            connection.executemany(_RUN, runs)
            connection.execute("commit")
            took.append(time.perf_counter() - begun)
        return took


@contextmanager
def reference(database: Path) -> Iterator[Reference]:
    """On the database of a store that was opened before, so that its tables are there."""
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        connection.execute("pragma synchronous = full")
        connection.execute("pragma foreign_keys = on")
        yield Reference(connection)
    finally:
        connection.close()

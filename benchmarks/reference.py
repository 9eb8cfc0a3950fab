"""What the worker is compared with: the rows it leaves, written by one thread that does nothing else.

The law: this is the least that writing those rows durably costs with Python's sqlite3: for each signal one row of
``signals`` (done) and one of ``runs`` (done), in the store's own schema with its indexes and checks, on a connection that the
store's own code made and prepared (WAL, synchronous FULL, foreign keys, the same size of journal), in a database of its own that
is as fresh, many rows in one transaction (``group``) or one signal in each. There is no Trio, no claim, no handler, no start
mark, no lock and no other process to wait for; a worker writes its rows twice or more, and this once.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from benchmarks import queue
from concorde_trio.stores.sqlite import SqliteStore
from concorde_trio.stores.sqlite_connection import connect, prepare
from concorde_trio.stores.sqlite_place import place_of

GROUP = 256
"""Signals in one commit of the reference with group commit."""

_SIGNAL = """insert into signals (id, kind, payload, state, emitted_at, claimed_at, settled_at)
values (?, 'bench', ?, 'done', ?, ?, ?)"""
_RUN = """insert into runs (position, id, signal_id, signal_seq, "index", session, prompt, resources, state, queued_at,
started_at, ended_at, text) values (?, ?, ?, ?, 0, ?, ?, ?, 'done', ?, ?, ?, null)"""


class Reference:
    """A database made by the store, into which final rows are written."""

    def __init__(self, connection: sqlite3.Connection, locks: int) -> None:
        self._connection = connection
        self._locks = locks
        self._next = 1

    def seconds(self, count: int, group: int) -> list[float]:
        """Write ``count`` signals and their runs, ``group`` signals a commit; what each commit took."""
        connection, took = self._connection, []
        for start in range(0, count, group):
            size = min(group, count - start)
            texts = [queue.payload_text(number) for number in range(self._next, self._next + size)]
            begun = time.perf_counter()
            signals, runs = [], []
            for payload in texts:
                number = self._next
                self._next += 1
                now = time.time()
                signal_id = f"reference-{number:010}"
                session = f"session-{number % queue.SESSIONS}"
                resources = json.dumps(queue.resources(session, self._locks)) if self._locks > 1 else "[]"
                signals.append((signal_id, payload, now, now, now))
                run = (number, f"{signal_id}-1", signal_id, number, session, queue.TEXT, resources, now, now, now)
                runs.append(run)
            connection.execute("begin immediate")
            connection.executemany(_SIGNAL, signals)
            connection.executemany(_RUN, runs)
            connection.execute("commit")
            took.append(time.perf_counter() - begun)
        return took


@contextmanager
def reference(folder: Path, *, locks: int = 1) -> Iterator[Reference]:
    """On a fresh database in ``folder``."""
    store = SqliteStore(folder / "reference.db")
    trio.run(_make, store)
    place = place_of(store.path)
    connection = connect(place)
    try:
        assert prepare(connection, place)
        yield Reference(connection, locks)
    finally:
        connection.close()


async def _make(store: SqliteStore) -> None:
    async with store.open():
        pass

"""What a fleet is compared with: the rows that it leaves, written by one connection that does nothing else.

The law: for each signal one row of ``signals`` (done) and one of ``runs`` (done), in the store's own schema with its indexes and
checks, many in one transaction or one signal in each, in one round trip to the server for all rows of a kind. It writes them once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import trio

from benchmarks import queue
from concorde_trio.stores.postgres.store import PostgresStore

_SIGNALS = """insert into {0}.signals (id, kind, payload, state, emitted_at, claimed_at, settled_at)
select id, 'bench', payload, 'done', %s, %s, %s from unnest(%s::text[], %s::text[]) as new (id, payload)"""
_RUNS = """insert into {0}.runs (position, id, signal_id, signal_seq, "index", session, prompt, resources, state, queued_at,
started_at, ended_at) select position, id || '-1', id, position, 0, session, %s, '[]', 'done', %s, %s, %s
from unnest(%s::bigint[], %s::text[], %s::text[]) as new (position, id, session)"""


class PostgresReference:
    """A schema made by the store, into which final rows are written."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]], schema: str) -> None:
        self._connection = connection
        self._schema = schema
        self._next = 1

    def seconds(self, count: int, group: int) -> list[float]:
        """Write ``count`` signals and their runs, ``group`` signals a commit; what each commit took."""
        took = []
        for start in range(0, count, group):
            numbers = range(self._next, self._next + min(group, count - start))
            self._next = numbers.stop
            texts = [queue.payload_text(number) for number in numbers]
            begun = time.perf_counter()
            now = time.time()
            ids = [f"reference-{number:010}" for number in numbers]
            sessions = [f"session-{number % queue.SESSIONS}" for number in numbers]
            with self._connection.transaction(), self._connection.cursor() as cursor:
                cursor.execute(_SIGNALS.format(self._schema), (now, now, now, ids, texts))
                cursor.execute(_RUNS.format(self._schema), (queue.TEXT, now, now, now, list(numbers), ids, sessions))
            took.append(time.perf_counter() - begun)
        return took


@contextmanager
def postgres_reference(url: str, schema: str) -> Iterator[PostgresReference]:
    """On a fresh schema of this database."""
    trio.run(_make, PostgresStore(url, schema=schema))
    with psycopg.connect(url, autocommit=True) as connection:
        yield PostgresReference(connection, schema)


async def _make(store: PostgresStore) -> None:
    async with store.open():
        pass

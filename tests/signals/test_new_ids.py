"""Ids of signals: unique, growing, and kind to the indexes of a queue with a long history."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from concorde_trio.new_ids import new_id
from concorde_trio.signals.emit import new_signal
from concorde_trio.stores.sqlite import SqliteStore


def test_ids_grow_and_none_comes_twice() -> None:
    """SIG-3: made in one thread they grow, however many fall into one millisecond."""
    ids = [new_id() for _ in range(20_000)]
    assert ids == sorted(set(ids))
    assert all(re.fullmatch("[0-9a-v]{20}", each) for each in ids)


def test_ids_grow_while_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIG-3: a clock that stands, or is set back by years, makes no id come twice."""
    before = new_id()
    monkeypatch.setattr(time, "time", lambda: 1e9)
    ids = [before, *(new_id() for _ in range(1_000))]
    assert ids == sorted(set(ids))


def test_ids_of_several_threads_differ() -> None:
    """SIG-8: signals are emitted from any thread."""
    made: list[list[str]] = [[] for _ in range(4)]
    threads = [threading.Thread(target=lambda ids=ids: ids.extend(new_id() for _ in range(5_000))) for ids in made]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len({new for ids in made for new in ids}) == 20_000


async def test_a_commit_writes_as_few_pages_beside_a_long_history(tmp_path: Path) -> None:
    """SIG-1: cost grows with what is emitted, never with what was emitted before."""
    store = SqliteStore(tmp_path / "queue.db", inline=True)
    async with store.open():
        fresh = await _written(store, 64)
        for _ in range(10):
            await store.emit([new_signal("old", "x" * 100, emitted_at=1.0) for _ in range(1_000)])
        assert await _written(store, 64) < 4 * fresh


async def _written(store: SqliteStore, count: int) -> int:
    """How many bytes these signals add to the write-ahead log."""
    with closing(sqlite3.connect(store.path)) as beside:
        beside.execute("pragma wal_checkpoint(truncate)")
    await store.emit([new_signal("new", "x" * 100, emitted_at=1.0) for _ in range(count)])
    return store.path.with_name(f"{store.path.name}-wal").stat().st_size

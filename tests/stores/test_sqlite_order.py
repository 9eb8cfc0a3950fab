"""The order of signals that several connections emit into one file (SIG-3)."""

from __future__ import annotations

from pathlib import Path

import trio

from concorde_trio.signals.emit import emit_sync
from concorde_trio.stores.sqlite import SqliteStore
from concorde_trio.testing.store_checks.samples import new_signal


async def test_a_later_emit_waits_for_a_transaction_that_emitted_before_it_and_comes_behind(tmp_path: Path) -> None:
    """SIG-3, Q-04: order is commit order, for the file has one writer; nobody sees the later signal without the earlier."""
    path = tmp_path / "queue.db"
    store = SqliteStore(path)
    async with store.open():
        async with trio.open_nursery() as nursery, store.transaction() as tx:
            await store.emit([new_signal("early")], tx=tx)
            nursery.start_soon(trio.to_thread.run_sync, emit_sync, SqliteStore(path), "late")
            await trio.sleep(0.2)  # as the case has it; the verdict is the order and does not depend on it
            assert await store.pending(10) == []
        found = await store.pending(10)
    assert [signal.id == "early" for signal in found] == [True, False]
    assert found[0].seq < found[1].seq

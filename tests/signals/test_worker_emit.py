"""SIG at the worker's door: what an emitted signal becomes, and who is told."""

from __future__ import annotations

import pytest
import trio

from concorde_trio.errors import InsideTransaction, InvalidName, InvalidValue, UnknownId, WrongState
from concorde_trio.records import SignalState
from tests.signals.stage import Stage, run


async def test_an_emitted_signal_is_handled_run_and_settled(autojump_clock: trio.testing.MockClock) -> None:
    """SIG-1, SIG-4."""
    stage = Stage()
    async with stage.serve() as worker:
        signal_id = await stage.emit("held", run("R1", 5))
        record = await worker.wait_settled(signal_id)
    assert (record.state, record.error, record.settled_at) == (SignalState.DONE, None, 5)
    assert [(what, name) for _, what, name in stage.log] == [
        ("handle", signal_id), ("handled", signal_id), ("start", "R1"), ("end", "R1"),
        ("post", signal_id), ("posted", signal_id),
    ]  # fmt: skip
    assert (await stage.states()) == {"R1": "done"}

"""Rows that were not what a batch needs of them: which one it was, and in which words that is said.

The law: a statement that writes many rows only tells how many it wrote. Once it is undone, the rows are looked at one by
one, and the first that stood in the way is named.
"""

from __future__ import annotations

from collections.abc import Sequence

from concorde_trio.errors import StoreError
from concorde_trio.stores.change_plan import ChangePlan, RunDelta, SignalDelta
from concorde_trio.stores.database import Reads
from concorde_trio.stores.session_change_checks import message_name
from concorde_trio.stores.session_plan import InputDelta


class RowMismatch(Exception):
    """Fewer rows were changed than a plan has: one was not there, or not in the state it must be in."""

    def __init__(self, deltas: Sequence[SignalDelta] | Sequence[RunDelta] | Sequence[InputDelta]) -> None:
        self.deltas = deltas

    def explain(self, connection: Reads) -> StoreError:
        """Which row, once the statement that fell short is rolled back."""
        for delta in self.deltas:
            if (error := _explained(connection, delta)) is not None:
                return error
        return StoreError(f"rows could not be written: {[delta.id for delta in self.deltas]}")


def _explained(connection: Reads, delta: SignalDelta | RunDelta | InputDelta) -> StoreError | None:
    match delta:
        case SignalDelta():
            row = connection.execute("select state, phase from signals where id = ?", (delta.id,)).fetchone()
            what, needs, becomes = (
                "signal",
                _named(delta.from_state, delta.from_phase),
                _named(delta.state, delta.phase),
            )
            good = row and row[0] == delta.from_state and delta.from_phase in (None, row[1])
        case RunDelta():
            row = connection.execute("select state, null from runs where id = ?", (delta.id,)).fetchone()
            what, needs, becomes = "run", " or ".join(sorted(delta.needs)), delta.state
            good = row and row[0] in delta.needs
        case InputDelta():
            row = connection.execute("select state, null from inputs where id = ?", (delta.id,)).fetchone()
            what, needs = "input", "queued"
            becomes = delta.state if delta.settled_at is not None else f"signal {delta.signal_id}"
            good = row and row[0] == "queued"
    if row is None:
        return StoreError(f"there is no {what} {delta.id!r}, so it cannot become {becomes}")
    if not good:
        return StoreError(f"{what} {delta.id} must be {needs} to become {becomes}, but it is {_named(*row)}")
    return None


def doubled(connection: Reads, plan: ChangePlan) -> StoreError | None:
    """Which new row of a plan is stored already; None if none is."""
    for given in plan.sessions.inputs.values():
        if given.new and connection.execute("select 1 from inputs where id = ?", (given.id,)).fetchone():
            return StoreError(f"input {given.id!r} is stored already; each input needs a new id")
    for name, seq in plan.sessions.messages:
        if connection.execute("select 1 from messages where session = ? and seq = ?", (name, seq)).fetchone():
            return StoreError(f"{message_name(name, seq)} is stored already; each needs its own seq")
    for new in plan.emitted:
        if connection.execute("select 1 from signals where id = ?", (new.id,)).fetchone():
            return StoreError(f"a signal with the id {new.id!r} is stored already; an emit needs a new id")
    return None


def _named(state: str, phase: str | None) -> str:
    return state if phase is None else f"{state} ({phase})"

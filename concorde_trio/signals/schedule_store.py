"""What a store keeps of schedules: rows in, rows out. It decides nothing.

Every store that keeps them passes ``concorde_trio.testing.check_schedule_store``. All times are wall-clock seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import attrs

from concorde_trio._sansio.schedules import Advance, ScheduleRecord
from concorde_trio.records import NewSignal


@attrs.frozen(kw_only=True)
class Fire:
    """What becomes of one row: it is advanced, and ``signal`` (None: nothing was due) is emitted, together or not at all.

    ``revision`` and ``next_at``: what the row must have, for else it was replaced, removed or fired by somebody else.
    """

    name: str
    revision: str
    next_at: float
    advance: Advance
    signal: NewSignal | None = None


@attrs.frozen
class Fired:
    """A row was advanced. ``signal_id``: what came of it; that of the stored signal if its key was stored already (SIG-7)."""

    signal_id: str | None


@runtime_checkable
class ScheduleStore(Protocol):
    """Schedules, durably, in the same database as their signals (SCH-1, SCH-4). Called only while the store is open."""

    async def put_schedule(self, record: ScheduleRecord) -> bool:
        """Store it under its name; False if one with the same definition is there, which then stays as it is (SCH-5).

        One with another definition is replaced as a whole.
        """
        ...

    async def remove_schedule(self, name: str) -> bool:
        """Remove it; False if there is none of this name."""
        ...

    async def fire_schedules(self, fires: Sequence[Fire]) -> list[Fired | None]:
        """Advance rows and emit their signals, in this order and in one commit; None for a row that is not as it must be.

        Signals wake as those of ``emit`` do, and take their place in the order of seqs as they stand here (SIG-3).
        """
        ...

    async def schedules(self) -> list[ScheduleRecord]:
        """All of them, by name."""
        ...

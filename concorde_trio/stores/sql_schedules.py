"""The methods of ScheduleStore for the stores that speak SQL; each says in one method how it writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from concorde_trio._sansio.schedules import ScheduleRecord
from concorde_trio.signals.schedule_store import Fire, Fired
from concorde_trio.stores import transactions
from concorde_trio.stores.change_checks import check_size
from concorde_trio.stores.schedule_works import FireSchedules, PutSchedule, RemoveSchedule, ScheduleWork


class SqlSchedules:
    """What a store inherits."""

    _max_payload: int | None

    async def put_schedule(self, record: ScheduleRecord) -> bool:
        """Store it under its name; False if the same is there already (SCH-5)."""
        check_size(record.payload, self._max_payload)
        changed: bool = await self._change_schedules(PutSchedule(record))
        return changed

    async def remove_schedule(self, name: str) -> bool:
        """Remove it; False if there is none of this name."""
        there: bool = await self._change_schedules(RemoveSchedule(name))
        return there

    async def fire_schedules(self, fires: Sequence[Fire]) -> list[Fired | None]:
        """Advance rows and emit their signals in one commit; None for a row that is not as it must be (SCH-4)."""
        fired: list[Fired | None] = await self._change_schedules(FireSchedules(fires))
        return fired

    async def _change_schedules(self, work: ScheduleWork) -> Any:
        transactions.refuse_inside(self, "a change of schedules")
        return await self._write_schedules(work, by_worker=isinstance(work, FireSchedules))

    async def _write_schedules(self, work: ScheduleWork, *, by_worker: bool) -> Any:
        """Write it in one commit; ``by_worker``: with a worker's patience."""
        raise NotImplementedError

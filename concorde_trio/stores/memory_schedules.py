"""The schedules of a queue in memory: a dict by name, and the obvious form of what the SQL stores do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from concorde_trio._sansio.schedules import ScheduleRecord
from concorde_trio.records import NewSignal
from concorde_trio.signals.schedule_store import Fire, Fired


class MemorySchedules:
    """Rows by name. Each method is one synchronous step."""

    def __init__(self) -> None:
        self._rows: dict[str, ScheduleRecord] = {}

    def put(self, record: ScheduleRecord) -> bool:
        """Store it; False if the same is there already (SCH-5)."""
        there = self._rows.get(record.name)
        if there is not None and there.definition == record.definition:
            return False
        self._rows[record.name] = record
        return True

    def remove(self, name: str) -> bool:
        """Remove it; False if it is not there."""
        return self._rows.pop(name, None) is not None

    def fire(self, fires: Sequence[Fire], insert: Callable[[Sequence[NewSignal]], list[str]]) -> list[Fired | None]:
        """Advance rows; ``insert`` stores all of their signals, or raises, and then nothing is changed (SCH-4)."""
        rows = dict(self._rows)
        results: list[Fired | None] = []
        signals = []
        for fire in fires:
            row = rows.get(fire.name)
            if row is None or row.revision != fire.revision or row.next_at != fire.next_at:
                results.append(None)
                continue
            to = fire.advance
            rows[fire.name] = attrs.evolve(
                row,
                next_at=to.next_at,
                fired_at=row.fired_at if to.due is None else to.due,
                missed=row.missed + to.missed,
                missed_at=row.missed_at if to.missed_to is None else to.missed_to,
            )
            results.append(Fired(None))
            if fire.signal is not None:
                signals.append((len(results) - 1, fire.name, fire.signal))
        ids = insert([signal for _, _, signal in signals])
        for (number, name, _), signal_id in zip(signals, ids, strict=True):
            results[number] = Fired(signal_id)
            rows[name] = attrs.evolve(rows[name], signal_id=signal_id)
        self._rows = rows
        return results

    def all(self) -> list[ScheduleRecord]:
        """All of them, by name."""
        return [self._rows[name] for name in sorted(self._rows)]

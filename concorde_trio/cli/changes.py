"""What has become of runs or signals: from the events of a gateway, and from lists read before, between and after them.

The law: each change is told once, in the order of what one thing can become, whoever told of it first: an event, or a list
read after a gap. What a list shows to have gone two steps is told as two.

Pure. Changes are documents with the fields of the event of that name, and ``id``: the event's, null where a list told of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import attrs

Row: TypeAlias = dict[str, Any]

REMEMBERED = 20_000
"""Things that are over and remembered all the same, since their events may come late; the gateway keeps fewer."""
KEPT = ("signal_id", "session", "resources", "kind", "queued_at", "started_at", "claimed_at")
"""What is remembered of a listed thing: prompts and payloads may be long."""
ENDED = ("done", "failed", "limited", "cancelled")


@attrs.define
class Known:
    """One thing. ``place``: its number in lists, None where only events told of it. ``step``: how far it has come."""

    place: int | None
    step: int
    row: Row


class Changes(ABC):
    """Of one kind of thing; ``where``: filters by name, None for any."""

    last = 0
    """The step of what is over."""

    def __init__(self, where: Mapping[str, str | None]) -> None:
        self._where = {name: wanted for name, wanted in where.items() if wanted is not None}
        self._open: dict[str, Known] = {}
        self._over: OrderedDict[str, Known] = OrderedDict()
        self._newest = 0

    # --- lists -----------------------------------------------------------------------------------------------------

    def learn(self, row: Row) -> None:
        """A row of a list, of which nothing is to be told."""
        self._newest = max(self._newest, self.place(row))
        if self._matches(row):
            self._know(row, self._find(row["id"]))

    def read(self, row: Row) -> Iterator[Row]:
        """A row of a list that is read from its oldest to its newest: the changes that it shows.

        What is no newer than anything learned or read, and not known, was over at the beginning, or is forgotten.
        """
        new = self.place(row) > self._newest
        self._newest = max(self._newest, self.place(row))
        if not self._matches(row):
            return
        known = self._find(row["id"])
        if known is None and not new:
            return
        step = -1 if known is None else known.step
        for change in self.steps(row):
            if step < change.pop("step"):
                yield change
        self._know(row, known)

    def _know(self, row: Row, known: Known | None) -> None:
        step = max(self.step_of(row), -1 if known is None else known.step)
        kept = {name: row[name] for name in KEPT if name in row}
        self._keep(row["id"], Known(self.place(row), step, kept))

    def floor(self, *, whole: bool) -> int:
        """Down to which place a list, newest first, has to be read: to what is new, or to all that may have changed."""
        places = [each.place for each in self._open.values() if each.place is not None] if whole else []
        return min([self._newest + 1, *places])

    def stale(self, present: Iterable[Row]) -> list[str]:
        """What is not over as far as is known, and is not as it was according to these rows, which are all that there is."""
        steps = {row["id"]: self.step_of(row) for row in present}
        return [thing for thing, known in self._open.items() if steps.get(thing, self.last) > known.step]

    def forget(self, thing: str) -> None:
        """It is not there any more."""
        self._open.pop(thing, None)

    # --- events ----------------------------------------------------------------------------------------------------

    def hear(self, name: str, event: Row, event_id: str) -> Iterator[Row]:
        """An event: itself, if it tells of a change that is not known yet."""
        found = self.told_by(name, event)
        if found is None:
            return
        thing, step, more = found
        known = self._find(thing)
        row = {**({} if known is None else known.row), **more}
        if known is None and not self._matches(row):
            return
        if known is not None and step <= known.step:
            return
        self._keep(thing, Known(None if known is None else known.place, step, row))
        yield {"id": event_id, **event}

    def known(self, thing: str) -> Row:
        """What is known of one, {} for nothing."""
        found = self._find(thing)
        return {} if found is None else found.row

    # --- of each kind ----------------------------------------------------------------------------------------------

    @abstractmethod
    def place(self, row: Row) -> int:
        """The number of a listed row."""

    @abstractmethod
    def step_of(self, row: Row) -> int:
        """How far a listed row has come."""

    @abstractmethod
    def steps(self, row: Row) -> Iterator[Row]:
        """What a listed row has gone through, as changes, each with its ``step``."""

    @abstractmethod
    def told_by(self, name: str, event: Row) -> tuple[str, int, Row] | None:
        """Of whom an event tells, how far that has come, and what is known of it by that; None if of nothing that counts."""

    def _matches(self, row: Row) -> bool:
        for name, wanted in self._where.items():
            if name == "resource":
                if wanted not in row.get("resources", ()):
                    return False
            elif row.get(name) != wanted:
                return False
        return True

    def _find(self, thing: str) -> Known | None:
        return self._open.get(thing) or self._over.get(thing)

    def _keep(self, thing: str, known: Known) -> None:
        if known.step < self.last:
            self._open[thing] = known
            return
        self._open.pop(thing, None)
        self._over[thing] = known
        if len(self._over) > REMEMBERED:
            self._over.popitem(last=False)


class RunChanges(Changes):
    """Of runs: queued, started, told to stop, ended. Filters: ``signal_id``, ``session``, ``resource``."""

    last = 3

    def place(self, row: Row) -> int:
        """Its position."""
        return int(row["position"])

    def step_of(self, row: Row) -> int:
        """Queued, running (and whether it is being stopped a list tells too), ended."""
        if row["state"] in ENDED:
            return 3
        if row["state"] in ("running", "held"):
            return 2 if row.get("stopping") is not None else 1
        return 0

    def steps(self, row: Row) -> Iterator[Row]:
        """RunQueued, RunStarted, RunEnded, as far as it has come."""
        named = {"id": None, "run_id": row["id"], "signal_id": row["signal_id"], "session": row["session"]}
        yield {"event": "RunQueued", "at": row["queued_at"], "resources": row["resources"], **named, "step": 0}
        if row["started_at"] is not None:
            yield {"event": "RunStarted", "at": row["started_at"], **named, "step": 1}
        if row["state"] in ENDED:
            ended = {"state": row["state"], "error": row["error"], "started": row["started_at"] is not None}
            yield {"event": "RunEnded", "at": row["ended_at"], **named, **ended, "step": 3}

    def told_by(self, name: str, event: Row) -> tuple[str, int, Row] | None:
        """The four events of runs."""
        at: Row = {
            "RunQueued": {"queued_at": event["at"], "resources": event.get("resources", ())},
            "RunStarted": {"started_at": event["at"]},
            "RunStopping": {},
            "RunEnded": {"ended_at": event["at"]},
        }
        if name not in at:
            return None
        named = {each: event[each] for each in ("signal_id", "session") if each in event}
        return event["run_id"], list(at).index(name), {**named, **at[name]}


class SignalChanges(Changes):
    """Of signals: emitted, claimed, settled. Filters: ``kind``. That one was emitted only a list tells."""

    last = 2

    def place(self, row: Row) -> int:
        """Its seq."""
        return int(row["seq"])

    def step_of(self, row: Row) -> int:
        """Pending, processing, settled."""
        return {"pending": 0, "processing": 1}.get(row["state"], 2)

    def steps(self, row: Row) -> Iterator[Row]:
        """SignalEmitted (an event of these lists alone), SignalClaimed, SignalSettled, as far as it has come."""
        named = {"id": None, "signal_id": row["id"], "kind": row["kind"]}
        yield {"event": "SignalEmitted", "at": row["emitted_at"], **named, "step": 0}
        if row["claimed_at"] is not None:
            yield {"event": "SignalClaimed", "at": row["claimed_at"], **named, "step": 1}
        if row["settled_at"] is not None:
            settled = {"state": row["state"], "error": row["error"]}
            yield {"event": "SignalSettled", "at": row["settled_at"], **named, **settled, "step": 2}

    def told_by(self, name: str, event: Row) -> tuple[str, int, Row] | None:
        """The two events of signals."""
        steps = {"SignalClaimed": (1, "claimed_at"), "SignalSettled": (2, "settled_at")}
        if name not in steps:
            return None
        step, when = steps[name]
        return event["signal_id"], step, {"kind": event["kind"], when: event["at"]}

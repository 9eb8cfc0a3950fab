"""Work that goes on though nobody waits for it: listed until it is seen to end, its late result kept (SES-7, SES-8)."""

from __future__ import annotations

import attrs

from concorde_trio import events
from concorde_trio._sansio.session_books import Books
from concorde_trio._sansio.session_terms import Abandoned
from concorde_trio.messages import ToolCall

KEPT = 50
"""Ended records that are still shown."""
_LATE = 2_000


class AbandonedWork:
    """The records of one session, oldest first."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._records: dict[int, Abandoned] = {}
        self._by_registration: dict[int, int] = {}
        self._last = 0

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._records.values())

    @property
    def records(self) -> tuple[Abandoned, ...]:
        """All that is known, ended ones too."""
        return tuple(self._records.values())

    def add(
        self,
        call: ToolCall,
        registration: int | None,
        what: str,
        number: int | None,
        about: str,
        *,
        expected: bool = False,
    ) -> Abandoned:
        """List work; ``registration`` finds it again when a result of that call comes after all."""
        self._last += 1
        record = Abandoned(
            work=self._last,
            call_id=call.id,
            tool=call.name,
            what=what,
            number=number,
            about=about,
            since=self._books.wall(),
            expected=expected,
        )
        self._records[record.work] = record
        if registration is not None and what == "call":
            self._by_registration[registration] = record.work
        self._books.say(events.WorkAbandoned, work=record.work, call_id=call.id, what=what, number=number)
        return record

    def of_registration(self, registration: int | None) -> int | None:
        """The record of a call that could not be stopped."""
        return None if registration is None else self._by_registration.get(registration)

    def of_call(self, call_id: str) -> int | None:
        """The latest record of such a call that has not ended, by the call's id."""
        found = [
            each.work
            for each in self._records.values()
            if each.call_id == call_id and each.what == "call" and each.ended is None
        ]
        return found[-1] if found else None

    def ended(self, work: int, late: str | None) -> None:
        """It was seen to end; a second time changes nothing."""
        record = self._records.get(work)
        if record is None or record.ended is not None:
            return
        late = None if late is None else late[:_LATE]
        self._records[work] = attrs.evolve(record, ended=self._books.wall(), late=late)
        self._by_registration = {reg: one for reg, one in self._by_registration.items() if one != work}
        self._books.say(events.AbandonedEnded, work=work, call_id=record.call_id)
        over = [each.work for each in self._records.values() if each.ended is not None]
        for old in over[: max(0, len(over) - KEPT)]:
            del self._records[old]

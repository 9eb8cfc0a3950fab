"""A bounded log of events by number, and which of them a reader asks for (SRV-4).

The law: an event's number is that of the one before plus 1, from 1, and its id is ``<boot>-<number>``, so that no two events of
any two starts share one. A reader is a number, nothing more: what a thousand of them keep is this one log. Who asks for
what is not kept any more is told so, and never given a part as if it were the whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from concorde_trio.events import Event, SessionEvent

_ID = re.compile(r"(?P<boot>[0-9a-z]{1,64})-(?P<number>[0-9]{1,15})\Z")

UNKNOWN_BOOT = "the server was started anew since, or this is no event id of it"
NOT_KEPT = "what came after that event is not kept any more"


@attrs.define(slots=True, eq=False)
class Entry:
    """One event. ``text``: how it is written, once somebody wrote it."""

    number: int
    event: Event
    text: str | None = None


@attrs.frozen
class Lost:
    """Events cannot be followed from where a reader left off; ``reason`` says why."""

    reason: str


class EventLog:
    """The last ``size`` events of one start, which ``boot`` names: lower-case letters and digits."""

    __slots__ = ("_ring", "boot", "last")

    def __init__(self, boot: str, size: int) -> None:
        self.boot = boot
        self.last = 0
        self._ring: list[Entry | None] = [None] * size

    def append(self, event: Event) -> None:
        """The next event."""
        self.last = number = self.last + 1
        self._ring[number % len(self._ring)] = Entry(number, event)

    @property
    def first(self) -> int:
        """The number of the oldest event that is kept; ``last`` + 1 while there is none."""
        return max(1, self.last - len(self._ring) + 1)

    def id_of(self, number: int) -> str:
        """The id of the event of this number; 0 is the place before the first."""
        return f"{self.boot}-{number}"

    def lost(self, number: int) -> bool:
        """Whether an event that came after the one of this number is not kept any more."""
        return number + 1 < self.first

    def place(self, given: str) -> int | Lost:
        """The number in an event id, if all that came after it is here. Anything may be given."""
        match = _ID.match(given)
        if match is None or match["boot"] != self.boot or int(match["number"]) > self.last:
            return Lost(UNKNOWN_BOOT)
        number = int(match["number"])
        return Lost(NOT_KEPT) if self.lost(number) else number

    def entries(self, after: int, upto: int) -> Iterator[Entry]:
        """The events with a number above ``after``, not above ``upto``; none of them may be lost."""
        ring, size = self._ring, len(self._ring)
        for number in range(after + 1, min(upto, self.last) + 1):
            entry = ring[number % size]
            assert entry is not None
            yield entry


def is_event_id(text: str) -> bool:
    """Whether this could be the id of an event, of any start."""
    return _ID.match(text) is not None


@attrs.frozen(kw_only=True)
class EventFilter:
    """Which events a reader asks for; None means any. An event that does not name what is asked for does not pass."""

    kinds: frozenset[str] | None = None
    session: str | None = None
    signal_id: str | None = None
    run_id: str | None = None

    def passes(self, event: Event) -> bool:
        """Whether it asks for this one."""
        return (
            (self.kinds is None or event.name in self.kinds)
            and (self.session is None or getattr(event, "session", None) == self.session)
            and (self.signal_id is None or getattr(event, "signal_id", None) == self.signal_id)
            and (self.run_id is None or getattr(event, "run_id", None) == self.run_id)
        )

    @property
    def all(self) -> bool:
        """Whether every event passes."""
        return self == EVERYTHING


EVERYTHING = EventFilter()


def event_names() -> list[str]:
    """The names of all events that there are, those that a runtime of the user's defines included."""
    return sorted({each.__name__ for each in _below(Event) if each is not SessionEvent})


def _below(root: type[Event]) -> Iterator[type[Event]]:
    for each in root.__subclasses__():
        yield each
        yield from _below(each)

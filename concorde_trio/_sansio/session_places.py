"""In which order the inputs that wait in a session were accepted, in its queue or as signals (SES-10).

The law: a place once given out stays that input's until it is settled, whichever way it waits. The stored ledger knows the
order of what other processes wrote; ``learn`` takes it over.
"""

from __future__ import annotations

from collections.abc import Iterable


class Places:
    """Places by input id; whoever has the lower one came first."""

    __slots__ = ("_last", "_places")

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._places: dict[str, int] = {}
        self._last = 0
        for each in ids:
            self.take(each)

    def take(self, input_id: str, *, of: str | None = None) -> None:
        """It was accepted now, unless it has a place; ``of``: it stands where that one stands."""
        if of in self._places:
            self._places[input_id] = self._places[of]
        elif input_id not in self._places:
            self._last += 1
            self._places[input_id] = self._last

    def learn(self, ids: Iterable[str]) -> None:
        """This is the order of these, as it is stored. Those that are not among them come after."""
        known, self._places = self._places, {}
        for each in (*ids, *sorted(known, key=known.__getitem__)):
            self.take(each)

    def forget(self, ids: Iterable[str]) -> None:
        """They are settled."""
        for each in ids:
            self._places.pop(each, None)

    def of(self, input_id: str) -> int:
        """Its place, 0 if it has none."""
        return self._places.get(input_id, 0)

    def last_of(self, ids: Iterable[str]) -> int:
        """The last place that any of these has, 0 if none has one."""
        return max(map(self.of, ids), default=0)

"""File patterns, matched one path component at a time as a folder is walked down.

``*``, ``?`` and ``[...]`` match within a component, ``**`` any number of components. None of them matches a name that begins
with a dot, unless the pattern's component does too. The time is bounded by pattern times path: no pattern can freeze us.
"""

from __future__ import annotations

import fnmatch

from concorde_trio.errors import UsageError

Places = frozenset[int]
"""How far into a pattern a path has come, in every way that it can be read."""


class Glob:
    """``start`` is where every path begins; ``step`` goes into one component."""

    def __init__(self, pattern: str) -> None:
        self._parts = [part for part in pattern.split("/") if part not in ("", ".")]
        if not self._parts or pattern.startswith("/") or ".." in self._parts or len(pattern) > 1_000:
            raise UsageError(
                f"a pattern is relative, such as '*.py' or '**/*.py', without '..', not {pattern!r:.80}; the folder goes into path"
            )
        self.start = self._closed({0})

    def step(self, places: Places, name: str) -> Places:
        """After one more component."""
        hidden = name.startswith(".")
        after = set()
        for place in places:
            if place == len(self._parts):
                continue
            part = self._parts[place]
            if part == "**":
                if not hidden:
                    after.add(place)
            elif (not hidden or part.startswith(".")) and fnmatch.fnmatchcase(name, part):
                after.add(place + 1)
        return self._closed(after)

    def fits(self, places: Places) -> bool:
        """Whether the path that led here matches."""
        return len(self._parts) in places

    def leads_on(self, places: Places) -> bool:
        """Whether something below it could."""
        return any(place < len(self._parts) for place in places)

    def _closed(self, places: set[int]) -> Places:
        found = set(places)
        for place in range(len(self._parts)):
            if place in found and self._parts[place] == "**":
                found.add(place + 1)
        return frozenset(found)

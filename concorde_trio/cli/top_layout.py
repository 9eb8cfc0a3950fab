"""How the lines of a terminal are shared among the lists of ``top``.

The law: every line is given out once, at any size. The list that is looked at has a row before any other has its second,
and keeps its chosen row in sight; what is empty takes nothing.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping


def share(room: int, wanted: Mapping[str, int], focus: str) -> dict[str, int]:
    """How many rows each list shows, if a heading stands above each; lists that are not named are not shown.

    ``wanted``: how many rows each has, in their order. ``room``: lines for headings and rows.
    """
    given: dict[str, int] = {}
    left = room
    for name in sorted(wanted, key=lambda each: each != focus):  # stable: the focus first, then in order
        if left >= 2 and wanted[name]:
            given[name] = 1
            left -= 2
    # Small lists whole, large ones equal parts, as far as there is room.
    while left > 0 and (hungry := [name for name in given if given[name] < wanted[name]]):
        part = max(1, left // len(hungry))
        for name in hungry:
            more = min(part, wanted[name] - given[name], left)
            given[name] += more
            left -= more
    return {name: given[name] for name in wanted if name in given}


def window(offset: int, count: int, rows: int, chosen: int) -> int:
    """The first row that is shown, of ``count`` with room for ``rows``, so that the chosen one is among them."""
    if chosen >= 0:
        offset = min(offset, chosen)
        offset = max(offset, chosen - rows + 1)
    return max(0, min(offset, count - rows))

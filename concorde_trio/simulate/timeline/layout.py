"""Where everything of a timeline goes: lanes, tracks inside them, and the scale of time. No drawing.

The law of this module: bars on one track never overlap, and the height is bounded by sessions, not by runs: where
every waiting run with a line of its own would make a wall, waiting becomes one strip per lane that shows how many.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypeAlias

import attrs

from concorde_trio.simulate.timeline.rows import TimelineRow

Kind: TypeAlias = Literal["waiting", "running", "held", "post"]

MOST_TRACKS = 240
"""More than this, and waiting runs are counted instead of drawn one by one."""

FRESH = "fresh sessions"


@attrs.frozen
class Segment:
    """A stretch of one kind, from ``start`` to ``end`` seconds."""

    kind: Kind
    start: float
    end: float


@attrs.frozen(kw_only=True)
class Bar:
    """One run on its track: its segments in order of time, and ``free``, up to where text may follow it."""

    row: TimelineRow
    segments: tuple[Segment, ...]
    track: int
    free: float

    @property
    def start(self) -> float:
        """Where its first segment begins."""
        return self.segments[0].start

    @property
    def end(self) -> float:
        """Where its last segment ends."""
        return self.segments[-1].end


@attrs.frozen(kw_only=True)
class Lane:
    """One session (or all fresh ones): ``tracks`` lines high. ``waiting``: (from when, how many), when counted."""

    name: str
    bars: tuple[Bar, ...]
    tracks: int
    waiting: tuple[tuple[float, int], ...] = ()

    @property
    def most_waiting(self) -> int:
        """The longest its queue ever was."""
        return max((count for _, count in self.waiting), default=0)


@attrs.frozen(kw_only=True)
class Layout:
    """All of it, from ``start`` to ``end`` seconds. ``dense``: waiting is counted, not drawn one by one."""

    lanes: tuple[Lane, ...]
    start: float
    end: float
    dense: bool


def lay_out(rows: Sequence[TimelineRow], *, start: float | None = None, end: float | None = None) -> Layout:
    """Lay out ``rows``, which are in emission order. What has no end yet reaches to ``end``."""
    first, last = min(row.queued for row in rows), max(_last(row) for row in rows)
    start = first if start is None else min(start, first)
    end = last if end is None else max(end, last)
    if end <= start:
        end = start + 1.0
    groups: dict[str, list[TimelineRow]] = {}
    fresh: list[TimelineRow] = []
    shared = Counter(row.session for row in rows)
    for row in rows:
        if row.fresh and shared[row.session] == 1:
            fresh.append(row)
        else:
            groups.setdefault(row.session, []).append(row)
    named = [*groups.items(), *([(FRESH, fresh)] if fresh else [])]
    lanes = [_lane(name, members, end) for name, members in named]
    dense = sum(lane.tracks for lane in lanes) > MOST_TRACKS
    if dense:
        lanes = [_counted_lane(name, members, end) for name, members in named]
    return Layout(lanes=tuple(lanes), start=start, end=end, dense=dense)


def segments(row: TimelineRow, end: float) -> tuple[Segment, ...]:
    """The stretches of one run's life; what is not over yet reaches to ``end``."""
    marks: list[tuple[Kind, float]] = [("waiting", row.queued)]
    if row.started is not None:
        marks.append(("running", row.started))
        if row.ended is not None and row.released != row.ended:
            marks.append(("held", row.ended))
            if row.post_started is not None:
                marks.append(("post", row.post_started))
    over = row.released if row.started is not None else row.ended
    edges = [at for _, at in marks[1:]] + [end if over is None else over]
    parts = [Segment(kind, at, edge) for (kind, at), edge in zip(marks, edges, strict=True)]
    kept = tuple(part for part in parts if part.end > part.start or part.kind == "running")
    return kept or (Segment("waiting", row.queued, row.queued),)


def ticks(start: float, end: float, *, about: int = 10) -> list[float]:
    """Round offsets from ``start``, seconds, about so many of them."""
    span = end - start
    rough = span / about
    small = 10.0 ** math.floor(math.log10(rough))
    steps = [small, 2 * small, 5 * small, 10 * small]
    if rough >= 10:
        steps = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400]
        steps += [86400.0 * days for days in (2, 7, 14, 30, 90, 365, 3650, 36500)]
    step = next((step for step in steps if step >= rough), steps[-1])
    return [step * place for place in range(int(span / step + 1e-9) + 1)]


def _last(row: TimelineRow) -> float:
    times = (row.queued, row.started, row.ended, row.released, row.post_ended)
    return max(time for time in times if time is not None)


def _pack(shown: Sequence[tuple[TimelineRow, tuple[Segment, ...]]]) -> tuple[tuple[Bar, ...], int]:
    """Each on the first track that is free when it begins; ``shown`` is in order of beginning. How many tracks."""
    busy: list[float] = []
    last: list[int] = []
    tracks: list[int] = []
    free = [math.inf] * len(shown)
    for place, (_, parts) in enumerate(shown):
        begin, over = parts[0].start, max(parts[-1].end, math.nextafter(parts[0].start, math.inf))
        track = next((track for track, until in enumerate(busy) if until <= begin), len(busy))
        if track == len(busy):
            busy.append(over)
            last.append(place)
        else:
            free[last[track]] = begin
            busy[track], last[track] = over, place
        tracks.append(track)
    bars = tuple(
        Bar(row=row, segments=parts, track=track, free=limit)
        for (row, parts), track, limit in zip(shown, tracks, free, strict=True)
    )
    return bars, max(1, len(busy))


def _lane(name: str, rows: Sequence[TimelineRow], end: float) -> Lane:
    # By time and not by emission: a wall clock may have been set back between two runs.
    bars, tracks = _pack(sorted(((row, segments(row, end)) for row in rows), key=lambda one: one[1][0].start))
    return Lane(name=name, bars=bars, tracks=tracks)


def _counted_lane(name: str, rows: Sequence[TimelineRow], end: float) -> Lane:
    shown: list[tuple[TimelineRow, tuple[Segment, ...]]] = []
    steps: dict[float, int] = {}
    for row in rows:
        parts = segments(row, end)
        active = tuple(part for part in parts if part.kind != "waiting")
        if active:
            shown.append((row, active))
        elif row.ended is not None:  # refused: a mark where it ended
            shown.append((row, (Segment("waiting", row.ended, row.ended),)))
        for part in parts:
            if part.kind == "waiting":
                steps[part.start] = steps.get(part.start, 0) + 1
                steps[part.end] = steps.get(part.end, 0) - 1
    shown.sort(key=lambda one: one[1][0].start)
    bars, tracks = _pack(shown)
    count, waiting = 0, []
    for at in sorted(steps):
        count += steps[at]
        waiting.append((at, count))
    return Lane(name=name, bars=bars, tracks=tracks, waiting=tuple(waiting))

"""A timeline as one SVG document: lanes by session, bars for waiting, running, held and post.

The law of this module: it stands alone (no script, no font, no link), and every text in it is escaped, because
session names come from strangers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

import attrs

from concorde_trio.simulate.timeline.layout import Bar, Lane, Layout, Segment, lay_out, ticks
from concorde_trio.simulate.timeline.rows import TimelineRow, WaitedFor, waited_for
from concorde_trio.simulate.timeline.style import LEGEND, STYLE

WIDTH = 1200
_LEFT, _RIGHT, _TOP = 168.0, 28.0, 92.0
_TRACK, _BAR, _PAD = 20.0, 14.0, 5.0
_QUEUE, _TALLEST, _TALL = 10.0, 72.0, 800.0
_CHARACTER = 6.6
_MOST_HANDS = 120

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def timeline_svg(
    rows: Iterable[TimelineRow],
    *,
    title: str = "Runs by session",
    start: float | None = None,
    end: float | None = None,
    width: int = WIDTH,
) -> str:
    """The rows, in emission order, as an SVG document of ``width`` pixels (600 or more).

    ``start`` and ``end``, in the unit of the rows: where the axis begins (the first queued run unless given; labels
    count from there), and to where what is not over yet is drawn (the last thing that happened unless given). With
    more waiting runs than a page holds they are counted, in a strip on top of each lane.
    """
    shown = list(rows)
    if not shown:
        body = '<text class="soft" x="24" y="58">No runs.</text>\n'
        return _document(title, "There are no runs.", body, width, 84.0)
    page = _Page(lay_out(shown, start=start, end=end), width, waited_for(shown))
    return _document(title, _summary(shown, page.layout), page.draw(shown), width, page.height)


def text(value: str) -> str:
    """``value`` for a text node or attribute: escaped, and without what XML cannot hold."""
    return escape(_NOT_XML.sub("\ufffd", value), {'"': "&quot;", "'": "&#39;"})


def span(seconds: float) -> str:
    """A length of time in words: "850 ms", "2.5 s", "3 min 20 s", "2 h 5 min"."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms" if seconds else "0 s"
    if seconds < 120:
        return f"{round(seconds, 2):g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def _document(title: str, summary: str, body: str, width: int, height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:g}" '
        f'viewBox="0 0 {width} {height:g}" role="img" aria-labelledby="ct-title ct-desc">\n'
        f'<title id="ct-title">{text(title)}</title>\n<desc id="ct-desc">{text(summary)}</desc>\n'
        f"<style>{STYLE}</style>\n"
        '<defs><pattern id="ct-hatch" width="5" height="5" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><path class="hatch" d="M0 0V5"/></pattern></defs>\n'
        f'<rect class="page" width="{width}" height="{height:g}"/>\n'
        f'<text class="head" x="24" y="30">{text(_short(title, width - 48, 9.8))}</text>\n'
        f"{body}</svg>\n"
    )


def _summary(rows: Sequence[TimelineRow], layout: Layout) -> str:
    states = Counter(row.state for row in rows)
    order = ("done", "failed", "limited", "cancelled", "running", "pending")
    words = {"limited": "cut off by a limit", "pending": "waiting"}
    parts = [f"{states[state]:,} {words.get(state, state)}" for state in order if states[state]]
    signals, sessions = len({row.signal for row in rows}), len({row.session for row in rows})
    return (
        f"{_many(len(rows), 'run')} of {_many(signals, 'signal')} in {_many(sessions, 'session')}, "
        f"{span(layout.end - layout.start)}: {', '.join(parts)}."
    )


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _short(name: str, room: float, character: float = _CHARACTER) -> str:
    most = max(1, int(room / character))
    return name if len(name) <= most else name[: most - 1] + "…"


@attrs.define
class _Page:
    layout: Layout
    width: int
    waits: dict[str, tuple[WaitedFor, ...]]
    height: float = 0.0
    _tops: list[float] = attrs.field(factory=list)
    _top: float = _TOP

    def __attrs_post_init__(self) -> None:
        lanes = sum(self._lane_height(lane) for lane in self.layout.lanes)
        if lanes > _TALL:
            self._top += 20  # the times stand at the top too, where a person begins to read
        y = self._top
        for lane in self.layout.lanes:
            self._tops.append(y)
            y += self._lane_height(lane)
        self.height = y + 40

    def draw(self, rows: Sequence[TimelineRow]) -> str:
        parts = [f'<text class="soft" x="24" y="52">{text(_summary(rows, self.layout))}</text>\n']
        parts.append(self._legend())
        parts += [self._background(place, lane) for place, lane in enumerate(self.layout.lanes)]
        parts.append(self._axis())
        for place, lane in enumerate(self.layout.lanes):
            if lane.most_waiting:
                parts.append(self._queue(place, lane))
            parts += [self._bar(place, lane, bar) for bar in lane.bars]
        parts.append(self._hands())
        return "".join(parts)

    # --- where ------------------------------------------------------------------------------------------------

    def _x(self, at: float) -> float:
        share = (at - self.layout.start) / (self.layout.end - self.layout.start)
        return _LEFT + share * (self.width - _LEFT - _RIGHT)

    def _track_height(self, lane: Lane) -> float:
        return min(_TRACK, _TALLEST / lane.tracks) if self.layout.dense else _TRACK

    def _lane_height(self, lane: Lane) -> float:
        queue = _QUEUE if self.layout.dense else 0.0
        return 2 * _PAD + queue + lane.tracks * self._track_height(lane)

    def _y(self, place: int, bar: Bar) -> tuple[float, float]:
        """The middle of a bar, and its height."""
        lane = self.layout.lanes[place]
        height = self._track_height(lane)
        top = self._tops[place] + _PAD + (_QUEUE if self.layout.dense else 0.0)
        return top + (bar.track + 0.5) * height, height * _BAR / _TRACK

    # --- what -------------------------------------------------------------------------------------------------

    def _legend(self) -> str:
        there = {row.state for lane in self.layout.lanes for row in (bar.row for bar in lane.bars)}
        there |= {part.kind for lane in self.layout.lanes for bar in lane.bars for part in bar.segments}
        there |= {"waiting"} if any(lane.waiting for lane in self.layout.lanes) else set()
        if not any(row.state == "running" for lane in self.layout.lanes for row in (bar.row for bar in lane.bars)):
            there.discard("running")
        x, parts = _LEFT, []
        for name, words in LEGEND:
            if name not in there:
                continue
            if name == "waiting" and self.layout.dense:
                parts.append(f'<rect class="queue" x="{x:g}" y="68" width="18" height="10"/>')
                words = "how many wait"
            elif name == "waiting":
                parts.append(f'<path class="wait" d="M{x:g} 73h18"/>')
            else:
                parts.append(f'<rect class="{name}" x="{x:g}" y="67" width="18" height="12" rx="3"/>')
                parts.append(_mark(name, x + 9, 73, 12))
            parts.append(f'<text class="small soft" x="{x + 24:g}" y="77">{words}</text>')
            x += 44 + len(words) * 6.1
        return f"<g>{''.join(parts)}</g>\n"

    def _background(self, place: int, lane: Lane) -> str:
        top, height = self._tops[place], self._lane_height(lane)
        stripe = f'<rect class="lane" x="12" y="{top:g}" width="{self.width - 24}" height="{height:g}" rx="4"/>'
        name = f"<title>{text(lane.name)}</title>{text(_short(lane.name, _LEFT - 36, 7.4))}"
        middle = top + min(height, 2 * _PAD + _TRACK + (_QUEUE if self.layout.dense else 0.0)) / 2 + 4
        return (stripe if place % 2 == 0 else "") + f'<text class="name" x="24" y="{middle:g}">{name}</text>\n'

    def _axis(self) -> str:
        bottom = self.height - 36
        parts = []
        for offset in ticks(self.layout.start, self.layout.end):
            x = self._x(self.layout.start + offset)
            parts.append(f'<path class="grid" d="M{x:.1f} {self._top:g}V{bottom:g}"/>')
            for y in [bottom + 18] + [self._top - 6] * (self._top > _TOP):
                parts.append(
                    f'<text class="small soft" x="{x:.1f}" y="{y:g}" text-anchor="middle">{span(offset)}</text>'
                )
        parts.append(f'<path class="axis" d="M{_LEFT:g} {bottom:g}H{self.width - _RIGHT:g}"/>')
        return f"<g>{''.join(parts)}</g>\n"

    def _queue(self, place: int, lane: Lane) -> str:
        base = self._tops[place] + _PAD + _QUEUE - 1
        scale = (_QUEUE - 1) / max(other.most_waiting for other in self.layout.lanes)
        path = f"M{self._x(lane.waiting[0][0]):.1f} {base:g}"
        for at, count in lane.waiting:
            path += f"H{self._x(at):.1f}V{base - count * scale:.1f}"
        tip = f"{lane.name}: up to {_many(lane.most_waiting, 'run')} waiting"
        return f'<path class="queue" d="{path}V{base:g}Z"><title>{text(tip)}</title></path>\n'

    def _bar(self, place: int, lane: Lane, bar: Bar) -> str:
        middle, height = self._y(place, bar)
        parts = [f"<title>{text(self._tip(bar.row))}</title>"]
        inset = self._inset(bar)
        for segment in bar.segments:
            parts.append(self._segment(bar.row, segment, middle, height, inset))
        if bar.row.started is None and bar.row.ended is not None:
            mark = "failed" if bar.row.state == "failed" else "cancelled"
            parts.append(_mark(mark, self._x(bar.end), middle, height, alone=True))
        if not self.layout.dense:
            parts.append(self._label(bar, middle))
        return f'<g class="bar">{"".join(parts)}</g>\n'

    def _inset(self, bar: Bar) -> float:
        """The room that the name of a run needs at the beginning of its line, where nothing else can carry it."""
        needs = len(bar.row.run) * _CHARACTER + 8
        pending = bar.row.started is None and bar.row.ended is None and not self.layout.dense
        return needs if pending and self._x(bar.end) - self._x(bar.start) > needs + 16 else 0.0

    def _segment(self, row: TimelineRow, segment: Segment, middle: float, height: float, inset: float) -> str:
        x, end = self._x(segment.start), self._x(segment.end)
        if segment.kind == "waiting":
            return f'<path class="wait" d="M{x + inset:.1f} {middle:g}H{end:.1f}"/>'
        name = row.state if segment.kind == "running" else segment.kind
        size = max(end - x, 1.6)
        round_ = f' rx="{min(3.0, size / 2):.2g}"'
        rect = f'<rect class="{name}" x="{x:.1f}" y="{middle - height / 2:g}" width="{size:.1f}" height="{height:g}"'
        mark = _mark(name, end - 8, middle, height) if segment.kind == "running" and size > 16 and height > 8 else ""
        return f"{rect}{round_}/>{mark}"

    def _label(self, bar: Bar, middle: float) -> str:
        name = bar.row.run
        running = next((part for part in bar.segments if part.kind == "running"), None)
        needs = len(name) * _CHARACTER + 8
        if running is not None:
            x, end = self._x(running.start), self._x(running.end)
            inside = end - x - (14 if bar.row.state in ("failed", "limited", "cancelled") else 0)
            if inside >= min(needs, 60):
                ink = " dark-ink" if bar.row.state == "limited" else ""
                return (
                    f'<text class="in{ink}" x="{x + 5:.1f}" y="{middle + 4:g}">{text(_short(name, inside - 6))}</text>'
                )
        if self._inset(bar):
            return f'<text class="small soft" x="{self._x(bar.start) + 2:.1f}" y="{middle + 4:g}">{text(name)}</text>'
        after = self._x(bar.end) + (9 if running is None else 4)
        limit = min(self._x(bar.free) if bar.free < self.layout.end else self.width - 6, self.width - 6.0)
        if limit - after < needs:
            return ""
        return f'<text class="small soft" x="{after:.1f}" y="{middle + 4:g}">{text(name)}</text>'

    def _hands(self) -> str:
        """Thin lines from the run that let a lock go to the one that could start then, across lanes."""
        where = {
            bar.row.run: (self._y(place, bar), bar) for place, lane in enumerate(self.layout.lanes) for bar in lane.bars
        }
        lines = []
        for run, reasons in self.waits.items():
            if run not in where or where[run][1].row.started is None:
                continue
            (y, height), bar = where[run]
            start = bar.row.started
            for name in dict.fromkeys(reason.run for reason in reasons):
                (from_y, from_height), other = where.get(name, ((0.0, 0.0), bar))
                if other is bar or start not in (other.row.released, other.row.ended) or from_y == y:
                    continue
                down = 1 if y > from_y else -1
                path = f"M{self._x(start or 0.0):.1f} {from_y + down * from_height / 2:g}V{y - down * height / 2:g}"
                lines.append(f'<path class="hand" d="{path}"/>')
        return f"<g>{''.join(lines)}</g>\n" if 0 < len(lines) <= _MOST_HANDS and not self.layout.dense else ""

    def _tip(self, row: TimelineRow) -> str:
        """What a person who points at a run is told."""
        lines = [f"{row.run} · signal {row.signal} · {'a fresh session' if row.fresh else f'session {row.session}'}"]
        if row.resources:
            lines.append(f"needs {', '.join(row.resources)}")
        until = row.started if row.started is not None else row.ended
        waited = (self.layout.end if until is None else until) - row.queued
        reasons = self.waits.get(row.run, ())
        if waited > 0 or until is None:
            who = ", ".join(f"{reason.run} ({reason.lock})" for reason in reasons) or "a place to run"
            lines.append(f"{'waits' if until is None else 'waited'} {span(waited)} for {who}")
        if row.started is None and row.ended is not None:
            lines.append(f"never started: {row.state}")
        elif row.started is not None:
            ran = (self.layout.end if row.ended is None else row.ended) - row.started
            lines.append(f"ran {span(ran)}: {row.state}" if row.ended is not None else f"runs since {span(ran)}")
        if row.post_started is not None:
            post = (self.layout.end if row.post_ended is None else row.post_ended) - row.post_started
            lines.append(f"post took {span(post)}" if row.post_ended is not None else f"in post since {span(post)}")
        return "\n".join(lines)


def _mark(name: str, x: float, y: float, height: float, *, alone: bool = False) -> str:
    """A shape for what must not be told by colour alone: a cross, a ceiling, a dash."""
    size = min(3.2, height / 3.5)
    shapes = {
        "failed": f"M{x - size:.1f} {y - size:.1f}l{2 * size:.1f} {2 * size:.1f}m0 {-2 * size:.1f}l{-2 * size:.1f} {2 * size:.1f}",
        "limited": f"M{x - size:.1f} {y - size:.1f}h{2 * size:.1f}M{x:.1f} {y + size:.1f}v{-size - 1:.1f}",
        "cancelled": f"M{x - size:.1f} {y:.1f}h{2 * size:.1f}",
    }
    if name not in shapes:
        return ""
    more = " alone" if alone else " dark-ink" if name == "limited" else ""
    return f'<path class="mark{more}" d="{shapes[name]}"/>'

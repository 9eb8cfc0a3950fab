"""Charts as SVG, in two forms: lines by size, and bars by name. Both axes of a line chart are logarithmic, so is the one of bars.

The law: a chart is a text that depends on nothing but what it draws. It carries its own colours for light and for dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

import attrs

from benchmarks.figures import number

WIDTH, HEIGHT = 800, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 270, 44, 48
BAR, GAP, NAMES = 18, 8, 300
SIZES = 10
"""At most so many sizes are named each; of more, round numbers."""
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-size: 14px; font-weight: 600 }
.faint { fill: #57606a }
.grid { stroke: #d0d7de; stroke-width: 1 }
.peer { fill: #4c72b0 } .ours { fill: #c44e52 } .reference { fill: #dd9a9c } .limit { fill: #9aa4b0 }
.range { stroke: #24292f; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .faint { fill: #9198a1 } .grid { stroke: #3d444d } .range { stroke: #e6edf3 }
}"""
COLOURS = ("#c44e52", "#4c72b0", "#55a868", "#dd8452", "#8172b3", "#937860", "#da8bc3", "#8c8c8c")


@attrs.frozen
class Dot:
    """One value of a line: its place, its median and its spread."""

    x: float
    y: float
    low: float
    high: float


def lines(title: str, x_name: str, y_name: str, drawn: Mapping[str, Sequence[Dot]]) -> str:
    """A line a name, with its spread as a band. Every x and y must be above 0."""
    dots = [dot for line in drawn.values() for dot in line]
    x_axis = _Axis(min(dot.x for dot in dots), max(dot.x for dot in dots), LEFT, WIDTH - RIGHT)
    y_axis = _Axis(min(dot.low for dot in dots), max(dot.high for dot in dots), HEIGHT - BOTTOM, TOP)
    parts = [_text(LEFT, 22, title, "title")]
    for value in y_axis.ticks():
        y = y_axis.place(value)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(_text(LEFT - 8, y + 4, _short(value), "faint", "end"))
    sizes = sorted({dot.x for dot in dots})
    for value in sizes if len(sizes) <= SIZES else x_axis.ticks():
        x = x_axis.place(value)
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
        parts.append(_text(x, HEIGHT - BOTTOM + 18, _short(value), "faint", "middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_name, "faint", "middle"))
    parts.append(_text(LEFT, 38, y_name, "faint"))
    labels = _apart([y_axis.place(line[-1].y) for line in drawn.values()])
    for (name, line), label, colour in zip(drawn.items(), labels, _colours(), strict=False):
        ordered = sorted(line, key=lambda dot: dot.x)
        here = [(x_axis.place(dot.x), y_axis.place(dot.y)) for dot in ordered]
        top = [f"{x_axis.place(dot.x):.1f} {y_axis.place(dot.high):.1f}" for dot in ordered]
        bottom = [f"{x_axis.place(dot.x):.1f} {y_axis.place(dot.low):.1f}" for dot in reversed(ordered)]
        parts.append(f'<path fill="{colour}" fill-opacity="0.15" d="M{"L".join(top + bottom)}Z"/>')
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in here)
        parts.append(f'<path fill="none" stroke="{colour}" stroke-width="2" d="M{path}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in here]
        parts.append(
            f'<path stroke="{colour}" d="M{here[-1][0]:.1f} {here[-1][1]:.1f}L{WIDTH - RIGHT + 8} {label:.1f}"/>'
        )
        parts.append(_text(WIDTH - RIGHT + 12, label + 4, name))
    return _document(WIDTH, HEIGHT, title, parts)


def bars(title: str, unit: str, drawn: Mapping[str, Dot], kinds: Mapping[str, str]) -> str:
    """A bar a name. ``kinds``: ours, reference, peer or limit, which have colours. Values must be above 0."""
    height = TOP + len(drawn) * (BAR + GAP) + BOTTOM
    # A bar begins somewhat below the lowest value: a logarithmic axis has no 0.
    axis = _Axis(min(dot.low for dot in drawn.values()) / 2, max(dot.high for dot in drawn.values()), NAMES, WIDTH - 90)
    parts = [_text(16, 22, title, "title")]
    for value in axis.ticks():
        x = axis.place(value)
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP - 6}V{height - BOTTOM}"/>')
        parts.append(_text(x, height - BOTTOM + 16, _short(value), "faint", "middle"))
    parts.append(_text((NAMES + WIDTH - 90) / 2, height - 10, f"{unit}, on a logarithmic axis", "faint", "middle"))
    for place, (name, dot) in enumerate(drawn.items()):
        y = TOP + place * (BAR + GAP)
        end = axis.place(dot.y)
        parts.append(_text(NAMES - 8, y + 13, name, "", "end"))
        parts.append(
            f'<rect class="{kinds.get(name, "peer")}" x="{NAMES}" y="{y}" width="{end - NAMES:.1f}" height="{BAR}"/>'
        )
        middle = y + BAR / 2
        spread = f"M{axis.place(dot.low):.1f} {middle}H{axis.place(dot.high):.1f}"
        parts.append(f'<path class="range" d="{spread}"/>')
        parts.append(_text(axis.place(dot.high) + 6, y + 13, number(dot.y)))
    return _document(WIDTH, height, title, parts)


class _Axis:
    """From values to places, by their logarithm."""

    def __init__(self, low: float, high: float, first: float, last: float) -> None:
        if not 0 < low <= high:
            raise ValueError(f"a logarithmic axis needs values above 0, not {low!r} to {high!r}")
        if high / low < 4:
            low, high = low / 1.5, high * 1.5
        self.low, self.high = math.log10(low), math.log10(high)
        self.first, self.last = first, last

    def place(self, value: float) -> float:
        return self.first + (math.log10(value) - self.low) / (self.high - self.low) * (self.last - self.first)

    def ticks(self) -> Iterator[float]:
        steps = (1,) if self.high - self.low > 2 else (1, 2, 5)
        for power in range(math.floor(self.low), math.ceil(self.high) + 1):
            for step in steps:
                value = step * 10.0**power
                if self.low - 1e-9 <= math.log10(value) <= self.high + 1e-9:
                    yield value


def _apart(places: Sequence[float]) -> list[float]:
    """The same heights, moved down where two labels would overlap."""
    found = dict.fromkeys(range(len(places)), 0.0)
    last = -math.inf
    for index in sorted(found, key=lambda each: places[each]):
        last = found[index] = max(places[index], last + 15)
    return list(found.values())


def _colours() -> Iterator[str]:
    while True:
        yield from COLOURS


def _short(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _text(x: float, y: float, words: str, style: str = "", anchor: str = "start") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escape(words)}</text>'


def _document(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img">\n<title>{escape(title)}</title>\n<style>{STYLE}\n</style>\n{body}\n</svg>\n'
    )

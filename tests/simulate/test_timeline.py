"""The drawing: it stands alone, nothing in it overlaps, and no name can break out of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio.simulate import TimelineRow, rows_from_result, simulate, timeline_svg
from concorde_trio.simulate.timeline.layout import FRESH, Layout, Segment, lay_out, segments, ticks
from concorde_trio.simulate.timeline.svg import span
from tests.cases.files import signal_cases
from tests.reference.model import Reference
from tests.reference.scenarios import random_scenario

SVG = "{http://www.w3.org/2000/svg}"


def row(run: str, session: str = "ann", *times: float | None, state: str = "done", **more: Any) -> TimelineRow:
    """``times``: queued, started, ended, released (ended, if it is not given)."""
    queued, started, ended, released = (*times, *([None] * 4))[:4]
    over = ended if len(times) < 4 else released
    return TimelineRow(
        **(
            {"run": run, "signal": f"s-{run}", "session": session, "state": state, "queued": queued or 0.0}
            | {"started": started, "ended": ended, "released": over}
            | more
        )
    )


def parse(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def texts(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in parse(svg).iter(f"{SVG}text")]


def tips(svg: str) -> list[str]:
    return [node.text or "" for node in parse(svg).iter(f"{SVG}title")][1:]


def many(count: int, sessions: int) -> list[TimelineRow]:
    random = Random(7)
    free = [0.0] * sessions
    rows = []
    for number in range(count):
        session = random.randrange(sessions)
        start = max(free[session], number * 0.1)
        free[session] = start + random.choice((1, 2, 9))
        state = random.choice(("done", "failed", "limited"))
        rows.append(row(f"r{number}", f"user_{session}", number * 0.1, start, free[session], state=state))
    return rows


def test_it_is_one_svg_that_needs_nothing_else() -> None:
    """No script, no link, no font, no picture."""
    svg = timeline_svg(many(50, 5), title="A day")
    root = parse(svg)
    assert root.tag == f"{SVG}svg"
    assert {node.tag.removeprefix(SVG) for node in root.iter()} <= {
        *("svg", "title", "desc", "style", "defs", "pattern", "path", "rect", "text", "g")
    }
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg\")|@import|url\((?!#)", svg)


def test_a_screen_reader_is_told_what_it_shows() -> None:
    """A drawing without words is nothing to many."""
    root = parse(timeline_svg([row("a", "ann", 0, 0, 2), row("b", "bob", 0, 1, 3, state="limited")], title="A day"))
    assert root.get("role") == "img"
    named = (root.get("aria-labelledby") or "").split()
    words = {node.get("id"): node.text for node in root.iter() if node.get("id")}
    assert [words[name] for name in named] == [
        "A day",
        "2 runs of 2 signals in 2 sessions, 3 s: 1 done, 1 cut off by a limit.",
    ]


def test_it_is_light_and_dark() -> None:
    """By what the reader's system prefers."""
    assert "@media (prefers-color-scheme:dark)" in timeline_svg([row("a", "ann", 0, 0, 2)])


def test_no_runs_are_said_to_be_none() -> None:
    """An empty queue is no error."""
    assert "No runs." in texts(timeline_svg([]))


HOSTILE = [
    "<script>alert(1)</script>",
    "\"'&",
    "]]>",
    "--><b>",
    "&lt;",
    "\x00\x1b[31m",
    "\ud800",
    "\u202eevil",
    "a" * 300,
]


@given(st.lists(st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=[])), min_size=1, max_size=6))
def test_no_name_breaks_out_of_its_text(names: list[str]) -> None:
    """CLM-7: names are used as written, so they are escaped where they are drawn."""
    rows = [
        TimelineRow(
            run=name,
            signal=name,
            session=name,
            resources=(name,),
            state="done",
            queued=0,
            started=1,
            ended=2,
            released=2,
        )
        for name in names
    ]
    svg = timeline_svg(rows, title=names[0])
    svg.encode()
    assert {node.tag for node in parse(svg).iter()} == {
        node.tag for node in parse(timeline_svg([row("a", "a", 0, 1, 2)])).iter()
    }


def test_a_name_comes_back_whole_where_it_is_pointed_at() -> None:
    """A long one is cut in the margin only."""
    name = "<ann & bob>" * 9
    svg = timeline_svg([row("a", name, 0, 0, 2)])
    assert name in tips(svg)
    assert any(text.endswith("…") and name.startswith(text[:-1].removeprefix(name)) for text in texts(svg))


def test_a_tip_says_whom_a_run_waited_for_and_how_it_went() -> None:
    """LCK-7."""
    first = row("a", "ann", 0, 0, 4, resources=("w",))
    second = row("b", "bob", 1, 4, 6, 9, resources=("w",), state="failed", post_started=7, post_ended=9)
    third = row("c", "ann", 1, None, None, state="pending")
    found = [tip for tip in tips(timeline_svg([first, second, third])) if "signal" in tip]
    assert found == [
        "a · signal s-a · session ann\nneeds w\nran 4 s: done",
        "c · signal s-c · session ann\nwaits 8 s for a (session ann)",
        "b · signal s-b · session bob\nneeds w\nwaited 3 s for a (resource w)\nran 2 s: failed\npost took 2 s",
    ]


def test_a_run_waiting_for_nobody_waits_for_a_place() -> None:
    """LCK-3."""
    assert "waited 2 s for a place to run" in "".join(tips(timeline_svg([row("a", "ann", 0, 2, 3)])))


def test_a_life_is_waiting_running_held_and_post() -> None:
    """LCK-4: what has no end yet reaches to the end of the drawing."""
    whole = row("a", "ann", 0, 1, 2, 5, post_started=3, post_ended=5)
    assert segments(whole, 9) == (
        Segment("waiting", 0, 1),
        Segment("running", 1, 2),
        Segment("held", 2, 3),
        Segment("post", 3, 5),
    )
    assert segments(row("a", "ann", 0, 0, None, state="running"), 9) == (Segment("running", 0, 9),)
    assert segments(row("a", "ann", 0, None, None, state="pending"), 9) == (Segment("waiting", 0, 9),)
    assert segments(row("a", "ann", 0, 0, 2, None), 9) == (Segment("running", 0, 2), Segment("held", 2, 9))
    assert segments(row("a", "ann", 3, None, 3, state="failed"), 9) == (Segment("waiting", 3, 3),)
    assert segments(row("a", "ann", 3, 3, 3), 9) == (Segment("running", 3, 3),)


def assert_sound(layout: Layout, rows: Iterable[TimelineRow]) -> None:
    drawn = [bar.row.run for lane in layout.lanes for bar in lane.bars]
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == {
        row.run for row in rows if not layout.dense or row.started is not None or row.ended is not None
    }
    for lane in layout.lanes:
        ends = [-math.inf] * lane.tracks
        for bar in sorted(lane.bars, key=lambda bar: bar.start):
            assert layout.start <= bar.start <= bar.end <= layout.end
            assert bar.start >= ends[bar.track]
            assert bar.free >= bar.end
            ends[bar.track] = bar.end


@given(st.randoms(use_true_random=False))
def test_bars_on_one_track_never_overlap(random: Random) -> None:
    """A drawing in which one bar hides another would lie."""
    scenario = random_scenario(random)
    rows = rows_from_result(scenario, Reference(scenario).play())
    if rows:
        assert_sound(lay_out(rows), rows)
    parse(timeline_svg(rows, start=0.0))


def test_fresh_sessions_share_a_lane_unless_they_are_continued() -> None:
    """LCK-1: a lane for each would be a page of single bars."""
    rows = [
        row("a", "run_a", 0, 0, 2, fresh=True),
        row("b", "run_b", 0, 0, 2, fresh=True),
        row("c", "run_b", 0, 2, 3),
        row("d", "ann", 0, 0, 2),
    ]
    assert [(lane.name, lane.tracks) for lane in lay_out(rows).lanes] == [("run_b", 2), ("ann", 1), (FRESH, 1)]


def test_more_runs_than_a_page_holds_are_counted_while_they_wait() -> None:
    """200 sessions and 5,000 runs: a page of sensible size, and every run is still on it."""
    rows = many(5_000, 200)
    layout = lay_out(rows)
    assert layout.dense
    assert_sound(layout, rows)
    assert max(lane.most_waiting for lane in layout.lanes) > 5
    assert all(lane.waiting[-1][1] == 0 for lane in layout.lanes if lane.waiting)
    svg = timeline_svg(rows)
    root = parse(svg)
    assert len(svg) < 2_500_000
    assert float(root.get("height") or 0) < 200 * 60
    assert sum(tip.count("· signal") for tip in tips(svg)) == 5_000


def test_a_thousand_runs_at_once_do_not_make_a_tower() -> None:
    """Fresh sessions conflict with nothing, so all of them may run at one time."""
    rows = [row(f"r{n}", f"run_r{n}", 0, 0, 5, fresh=True) for n in range(1_000)]
    assert float(parse(timeline_svg(rows)).get("height") or 0) < 400


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 10, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        (5, 5.5, [0, 0.05, 0.1]),
        (0, 60, [0, 10, 20]),
        (0, 3600, [0, 600, 1200]),
        (0, 86_400 * 20, [0, 86_400 * 2, 86_400 * 4]),
    ],
)
def test_times_are_labelled_at_round_numbers(start: float, end: float, expected: list[float]) -> None:
    """Seconds, minutes, hours, days."""
    assert ticks(start, end)[: len(expected)] == pytest.approx(expected)
    assert 3 <= len(ticks(start, end)) <= 14


@given(st.floats(1e-6, 1e10))
def test_any_stretch_of_time_gets_a_few_labels(length: float) -> None:
    """From microseconds to centuries."""
    assert 2 <= len(ticks(0, length)) <= 15


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.0005, "0.5 ms"),
        (0.85, "850 ms"),
        (0.9999, "1 s"),
        (2.5, "2.5 s"),
        (90, "90 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (86400, "24 h"),
    ],
)
def test_a_length_of_time_is_told_in_words(seconds: float, words: str) -> None:
    """As a person would."""
    assert span(seconds) == words


def test_the_axis_begins_where_it_is_told_to() -> None:
    """A scenario begins at 0, whenever its first run is queued."""
    rows = [row("a", "ann", 3, 3, 5)]
    assert (lay_out(rows).start, lay_out(rows).end) == (3, 5)
    assert (lay_out(rows, start=0, end=9).start, lay_out(rows, start=0, end=9).end) == (0, 9)
    assert (lay_out(rows, start=4, end=4).start, lay_out(rows, start=4, end=4).end) == (3, 5)


@pytest.mark.parametrize("name", ["philosophers", "tag-live-elsewhere", "stop-drains", "post-holds-early-sibling"])
def test_a_case_is_drawn(name: str) -> None:
    """Every run is on it."""
    scenario = signal_cases()[name]
    rows = rows_from_result(scenario, simulate(scenario))
    shown = "\n".join(tips(timeline_svg(rows, start=0.0)))
    assert all(f"{row.run} · signal {row.signal}" in shown for row in rows)

"""Charts are well-formed, whole, and the same each time."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from benchmarks import svg
from benchmarks.charts import charts
from benchmarks.figures import Figure, Point
from benchmarks.svg import Dot
from tests.benchmarks.fakes import figure, result

SVG = "{http://www.w3.org/2000/svg}"


def at(x: float | str, line: str = "ours", chart: str = "pairs a second by runs waiting") -> Figure:
    factor = 10.0 if isinstance(x, str) else float(x)
    return figure([factor, 2 * factor], beside=[3.0, 4.0], name=f"{line} {x}", point=Point(chart=chart, line=line, x=x))


def test_a_chart_of_sizes_has_a_line_for_ours_and_for_what_stands_beside_it() -> None:
    """Benchmarks: charts are well-formed SVG, a dot a figure."""
    drawn = charts(result(*[at(10.0**power) for power in range(1, 7)]))
    assert list(drawn) == ["pairs-a-second-by-runs-waiting.svg"]
    root = ElementTree.fromstring(drawn["pairs-a-second-by-runs-waiting.svg"])
    assert len(root.findall(f"{SVG}circle")) == 12
    words = [each.text for each in root.iter(f"{SVG}text")]
    assert "runs waiting" in words
    assert {"ours", "a limit"} <= set(words)
    assert charts(result(*[at(10.0**power) for power in range(1, 7)])) == drawn


def test_a_chart_of_names_has_a_bar_each_the_highest_first() -> None:
    """Benchmarks: names are text, whatever is in them."""
    figures = [at("<b> & co", "peer", "jobs"), figure([99.0], name="n", point=Point(chart="jobs", line="ours", x="we"))]
    root = ElementTree.fromstring(charts(result(*figures))["jobs.svg"])
    bars = [each for each in root.iter(f"{SVG}rect")]
    assert [bar.get("class") for bar in bars] == ["ours", "peer"]
    assert "<b> & co" in [each.text for each in root.iter(f"{SVG}text")]


def test_everything_drawn_is_inside_of_the_picture() -> None:
    """Benchmarks: whatever the values, one of them or equal ones too."""
    for values in ([1.0], [5.0, 5.0], [1e-6, 1e9], [300.0, 301.0]):
        line = [Dot(value, value, value, value) for value in values]
        root = ElementTree.fromstring(svg.lines("title", "x", "y", {"one": line, "two": line}))
        for circle in root.iter(f"{SVG}circle"):
            assert 0 <= float(circle.get("cx", "-1")) <= svg.WIDTH
            assert 0 <= float(circle.get("cy", "-1")) <= svg.HEIGHT
        root = ElementTree.fromstring(svg.bars("title", "/s", dict(zip("abcd", line, strict=False)), {"a": "ours"}))
        assert all(float(bar.get("width", "-1")) > 0 for bar in root.iter(f"{SVG}rect"))


def test_a_value_of_zero_cannot_be_drawn() -> None:
    """Benchmarks: a logarithmic axis has no zero."""
    with pytest.raises(ValueError, match="above 0"):
        svg.lines("title", "x", "y", {"one": [Dot(1, 0, 0, 0)]})

"""Bytes in, lines out, and JSON objects from them (rules of agent programs: LF only, any split, bounded)."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from concorde_trio._sansio.lines import JsonLine, Line, LineReader, parse_line
from concorde_trio.errors import UsageError


def read(data: bytes, max_line: int = 1000, cuts: list[int] | None = None) -> list[Line]:
    reader = LineReader(max_line)
    lines = []
    done = 0
    for cut in [*sorted(cuts or []), len(data)]:
        lines += reader.feed(data[done:cut])
        done = cut
    rest = reader.finish()
    assert reader.finish() is None
    return [*lines, rest] if rest else lines


def texts(data: bytes, max_line: int = 1000) -> list[str]:
    return [line.text for line in read(data, max_line)]


def parsed(text: str) -> JsonLine | None:
    return parse_line(Line(text=text, size=len(text.encode())))


def test_a_line_ends_at_lf_and_nowhere_else() -> None:
    """U+2028, U+0085, VT, FF and a lone CR stay inside a line."""
    inside = "a\u2028b\u2029c\u0085d\ve\ff\rg\x1ch"
    assert texts(f"{inside}\nnext\n".encode()) == [inside, "next"]


def test_one_cr_before_the_lf_belongs_to_the_end() -> None:
    """CRLF is tolerated; any other CR is kept."""
    assert texts(b"a\r\nb\r\r\n\r\n\rc\n") == ["a", "b\r", "", "\rc"]
    assert read(b"a\r\n\n") == [Line(text="a", size=1), Line(text="", size=0)]


def test_empty_lines_are_lines() -> None:
    """Text output keeps its shape."""
    assert texts(b"\n\na\n\n") == ["", "", "a", ""]
    assert texts(b"") == []


def test_what_follows_the_last_lf_is_unterminated() -> None:
    """An output that ends inside a record is told apart."""
    assert read(b"a\nb") == [Line(text="a", size=1), Line(text="b", size=1, unterminated=True)]
    assert read(b"a\r") == [Line(text="a\r", size=2, unterminated=True)]


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    """Nothing that a program writes stops the reading."""
    assert texts(b"\xff\xc3\n\xc3\xa4\n\xed\xa0\x80\n") == ["\ufffd\ufffd", "ä", "\ufffd" * 3]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_line_over_the_bound_is_told_by_its_beginning_and_size(end: bytes) -> None:
    """The bound counts the line without its end; the next line is read as ever."""
    assert read(b"x" * 10 + end + b"y" * 11 + end + b"z" + end, max_line=10) == [
        Line(text="x" * 10, size=10),
        Line(text="y" * 10, size=11, over_long=True),
        Line(text="z", size=1),
    ]
    assert read(b"x" * 25, max_line=10) == [Line(text="x" * 10, size=25, over_long=True, unterminated=True)]


def test_the_bound_never_leaves_half_a_character() -> None:
    """Only the beginning is shown, and it is what was written."""
    assert read("ääää\n".encode(), max_line=5) == [Line(text="ää", size=8, over_long=True)]


def test_an_endless_line_takes_bounded_memory() -> None:
    """Lines of agents grow without bound; what is kept of one does not."""
    reader = LineReader(10_000)
    piece = b"x" * 1000
    tracemalloc.start()
    for _ in range(10_000):
        assert reader.feed(piece) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000
    assert reader.feed(b"\n") == [Line(text="x" * 10_000, size=10_000_000, over_long=True)]


def test_a_bound_below_one_byte_is_refused() -> None:
    """Misuse is loud at once."""
    with pytest.raises(UsageError, match="at least 1 byte, not 0"):
        LineReader(0)


mixed_bytes = st.lists(
    st.sampled_from([b"\n", b"\r", b"\r\n", b"a", "ä\u2028😀".encode(), b"\xff", b"\xf0\x9f", b"b" * 7]) | st.binary()
).map(b"".join)


@given(mixed_bytes, st.integers(1, 12), st.data())
@example(b"12345\r\n", 5, None)
def test_any_split_gives_the_same_lines(data: bytes, max_line: int, draws: st.DataObject | None) -> None:
    """Inside a character, between CR and LF, byte by byte, in empty pieces."""
    whole = read(data, max_line)
    assert read(data, max_line, list(range(len(data)))) == whole
    if draws is not None:
        assert read(data, max_line, draws.draw(st.lists(st.integers(0, len(data))))) == whole


@given(mixed_bytes)
def test_no_byte_is_lost_below_the_bound(data: bytes) -> None:
    """The lines, put together again, are the output."""
    lines = read(data.replace(b"\r", b""), 10**9)
    text = "".join(line.text + ("" if line.unterminated else "\n") for line in lines)
    assert text == data.replace(b"\r", b"").decode("utf-8", "replace")


def test_a_line_of_json_is_an_object() -> None:
    """One JSON object a line; spaces around it do not matter."""
    assert parsed(' {"type": "end", "text": "a\u2028b"} ') == JsonLine(record={"type": "end", "text": "a\u2028b"})


@pytest.mark.parametrize("text", ["", " ", "\t\r"])
def test_a_blank_line_says_nothing(text: str) -> None:
    """It is neither a record nor unreadable."""
    assert parsed(text) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "expected a JSON object a line"),
        ("Error: no key", "begins 'Error: no key'"),
        ("[1]", "not a list: '[1]'"),
        ("null", "not a NoneType"),
        ('"text"', "not a str"),
        ('{"a": 1} {"b": 2}', "Extra data"),
        ("[" * 100_000, "nested too deep"),
        ('{"n": ' + "9" * 5000 + "}", "4300"),
        ("\ufffd", "expected a JSON object"),
    ],
    ids=range(9),
)
def test_a_line_that_is_no_object_is_flagged_with_the_reason(text: str, words: str) -> None:
    """The verdict on a stream with an unreadable line is: failed."""
    result = parsed(text)
    assert result is not None
    assert result.record is None
    assert result.unreadable is not None
    assert words in result.unreadable
    assert len(result.unreadable) < 400


def test_an_over_long_line_is_unreadable_even_where_its_beginning_is_json() -> None:
    """What was cut off could say anything."""
    result = parse_line(Line(text='{"a": 1}', size=5000, over_long=True))
    assert result is not None
    assert result.record is None
    assert result.unreadable is not None
    assert "5,000 bytes" in result.unreadable


def test_a_whole_object_without_its_lf_is_flagged_as_unterminated() -> None:
    """The verdict decides what to make of it."""
    result = parse_line(Line(text='{"a": 1}', size=8, unterminated=True))
    assert result == JsonLine(record={"a": 1}, unterminated=True)


def test_numbers_that_are_no_json_are_read_as_null() -> None:
    """Some programs write NaN; a price that is none must not become one."""
    assert parsed('{"cost": NaN, "most": Infinity, "least": -Infinity, "large": -1e400, "n": 1.5}') == JsonLine(
        record={"cost": None, "most": None, "least": None, "large": None, "n": 1.5}
    )


@given(st.dictionaries(st.text(), st.text() | st.lists(st.integers() | st.none()), max_size=5))
def test_what_json_writes_is_read(record: dict[str, object]) -> None:
    """Escaped or raw."""
    for ascii_only in (True, False):
        text = json.dumps(record, ensure_ascii=ascii_only)
        assert parsed(text) == JsonLine(record=record)

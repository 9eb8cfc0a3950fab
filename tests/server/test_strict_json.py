"""Bodies that two readers could take for two things are refused, with their place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio.server.problems import Problem
from concorde_trio.server.strict_json import read_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(values, st.booleans())
def test_what_json_can_say_is_read_as_it_was_written(value: object, ascii: bool) -> None:
    """SRV-5, SIG-5: strictness refuses nothing that is right."""
    text = json.dumps(value, ensure_ascii=ascii)
    assert read_json(text.encode()) == value


@pytest.mark.parametrize(
    ("body", "said", "place"),
    [
        (b"", "empty", "body"),
        (b" \r\n\t ", "empty", "body"),
        (b"{", "line 1, column 2", "line 1, column 2"),
        (b'{"a": 1,}', "not JSON", "line 1, column"),
        (b'{"a": 1} x', "extra data", "line 1, column 10"),
        (b'{\n "a": tru}', "line 2, column 7", "line 2, column 7"),
        (b"{'a': 1}", "not JSON", "line 1"),
        (b'"\x01"', "not JSON", "line 1"),
        (b"\xef\xbb\xbf{}", "not JSON", "line 1"),
        ('{"a": 1}'.encode("utf-16"), "not UTF-8", "byte 0"),
        (b'{"a": "\xff"}', "byte 7 is 0xff", "byte 7"),
        (b'{"a": "\xed\xa0\x80"}', "not UTF-8", "byte 7"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "'c' stands twice", "the key 'c'"),
        (b'{"a": NaN}', "NaN is no JSON", "NaN"),
        (b"[Infinity]", "Infinity is no JSON", "Infinity"),
        (b"-Infinity", "-Infinity is no JSON", "-Infinity"),
        (b'{"a": 1e999}', "1e999 is too large", "the number 1e999"),
        (b'{"a": "\\ud800"}', "lone surrogate U+D800", "body"),
        (b'{"\\uDC00": 1}', "lone surrogate U+DC00", "body"),
        (b"[" * 100_000, "nested too deep", "body"),
        (b'{"a":' * 100_000, "nested too deep", "body"),
        (b"9" * 5000, "more than 4,300 digits; write it as a string", "body"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(body: bytes, said: str, place: str) -> None:
    """SRV-5: 400, and a person can find it."""
    with pytest.raises(Problem) as caught:
        read_json(body)
    problem = caught.value.document
    assert problem.status == 400
    assert said.lower() in problem.detail.lower()
    assert problem.place is not None
    assert problem.place.startswith(place)


def test_a_pair_of_surrogates_is_one_character() -> None:
    """SRV-5: only a lone one is none."""
    assert read_json(b'"\\ud83d\\ude00"') == "\U0001f600"
    assert read_json(b'"\\\\ud800"') == "\\ud800"

"""What a payload may be, and how it comes back."""

from __future__ import annotations

import collections
import enum
import json
import math
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio._sansio.json_values import decode, encode
from concorde_trio.errors import InvalidValue, StoreError


class Colour(enum.StrEnum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


def nested(depth: int, innermost: object = None) -> object:
    value = [] if innermost is None else [innermost]
    for _ in range(depth - 1):
        value = [value]
    return value


def around(*, shared: object) -> object:
    for _ in range(90):
        shared = [shared, shared]
    return shared


CYCLE: list[Any] = [0]
CYCLE.append({"again": CYCLE})
SHARED = nested(50)

storable_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
storable = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | storable_text,
    lambda inner: st.lists(inner) | st.dictionaries(storable_text, inner),
    max_leaves=30,
)


def same(one: object, other: object) -> bool:
    """Equal, of the same types, in the same order of keys, down to the sign of a zero."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return one == other


@given(storable)
def test_every_storable_value_comes_back_equal_and_of_the_same_types(value: object) -> None:
    """SIG-5."""
    text = encode(value)
    assert same(decode(text), value)
    assert same(json.loads(text.encode("utf-8")), value), "it is JSON for anyone"


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=3)
    | st.sampled_from([Colour.RED, Number.ONE, b"x", object(), (), 10**4299, "\0", "\ud800", "\\u0000", -0.0]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.text(st.characters(), max_size=3) | st.integers() | st.just(Colour.RED), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(anything)
def test_any_value_is_refused_with_its_place_or_comes_back_the_same(value: object) -> None:
    """SIG-5: there is nothing between."""
    try:
        text = encode(value)
    except InvalidValue as refused:
        assert refused.place.startswith("payload")
        assert refused.place in str(refused)
        assert str(refused).isprintable()
    else:
        assert same(decode(text), value)
        assert "\0" not in text
        text.encode("utf-8")


REFUSED: list[tuple[object, str, str]] = [
    ({"items": [0, 1, 2, {"name": "a\0b"}]}, "payload.items[3].name", "NUL at character 1"),
    ({"a\0": 1}, "payload", "a key, 'a\\x00', with NUL at character 1"),
    ([float("nan")], "payload[0]", "nan"),
    ({"x": float("inf")}, "payload.x", "inf"),
    ({"x": -float("inf")}, "payload.x", "-inf"),
    ("ab\ud800", "payload", "the lone surrogate U+D800 at character 2"),
    ({"\udfff": 1}, "payload", "the lone surrogate U+DFFF"),
    ({"a": {1: 2}}, "payload.a", "the key 1 of type int"),
    ({None: 2}, "payload", "the key None"),
    ({True: 2}, "payload", "the key True"),
    ({(1, 2): 2}, "payload", "a key of type tuple"),
    ({Colour.RED: 2}, "payload", "a key that is a Colour"),
    ({"colour": Colour.RED}, "payload.colour", "would come back as a plain str; write its .value"),
    ([Number.ONE], "payload[0]", "would come back as a plain int"),
    ({"pair": (1, 2)}, "payload.pair", "would come back as a list; write a list"),
    ({"a": collections.OrderedDict()}, "payload.a", "write dict(...) of it"),
    ({"a b": {1}}, "payload['a b']", "of type set; JSON holds"),
    (b"bytes", "payload", "of type bytes"),
    (object(), "payload", "of type object"),
    (CYCLE, "payload[1].again", "contains itself"),
    (nested(101), "payload" + "[0]" * 100, "nested more than 100 deep"),
    (nested(101, 1), "payload" + "[0]" * 100, "nested more than 100 deep"),
    ({10**4300: 1}, "payload", "a key of type int"),
    ([10**4300], "payload[0]", "more than 4300 digits"),
    ([-(10**4300)], "payload[0]", "more than 4300 digits"),
    (around(shared=[]), "payload", "more than 1,000,000 bytes"),
    ([SHARED, nested(60, SHARED)], "payload[1]" + "[0]" * 99, "nested more than 100 deep"),
    ("x" * 999_999, "payload", "1,000,001 bytes"),
    ("é" * 500_000, "payload", "1,000,002 bytes"),
]


@pytest.mark.parametrize(("value", "place", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_what_cannot_be_stored_is_refused_with_its_place(value: object, place: str, words: str) -> None:
    """SIG-5."""
    with pytest.raises(InvalidValue) as refused:
        encode(value)
    assert refused.value.place == place
    assert words in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "\\u0000",
        "\x7f\x1f\u2028\ufeff\U0001f600",
        {"": {"": []}},
        nested(100),
        nested(100)[0],  # type: ignore[index]
        10**4299,
        2**64,
        -0.0,
        5e-324,
        1.7976931348623157e308,
        "x" * 999_998,
        [[]] * 1000,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_lies_just_inside_the_bounds_is_stored(value: object) -> None:
    """SIG-5."""
    assert same(decode(encode(value)), value)


def test_a_long_integer_is_refused_even_where_python_was_told_to_write_it() -> None:
    """SIG-5: the process that reads it back may not have been told."""
    allowed = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(InvalidValue, match="more than 4300 digits"):
            encode([10**4300])
    finally:
        sys.set_int_max_str_digits(allowed)


def test_the_place_begins_with_what_the_caller_calls_the_value() -> None:
    """REC-3: the same for a context; its bound is the caller's."""
    with pytest.raises(InvalidValue, match=r"^context\.x is nan") as refused:
        encode({"x": float("nan")}, what="context")
    assert refused.value.place == "context.x"
    with pytest.raises(InvalidValue, match="context is 12 bytes of JSON, at most 11 are allowed"):
        encode("0123456789", what="context", max_bytes=11)
    assert encode("0123456789", max_bytes=12) == '"0123456789"'


def test_the_text_is_compact_and_readable() -> None:
    """SIG-5: operators will query it."""
    assert encode({"a": [1, 2.5, None, True], "ü": "日本"}) == '{"a":[1,2.5,null,true],"ü":"日本"}'


@pytest.mark.parametrize("text", ["", "{", "NaN", "[1,]", "9" * 5000])
def test_text_that_something_else_changed_is_the_stores_fault(text: str) -> None:
    """REC-5."""
    with pytest.raises(StoreError, match="cannot be read"):
        decode(text)

"""How the words of a command line are read, and what is said of wrong ones."""

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concorde_trio.cli.options import Duration, read_json


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("45m", 2700), ("1h30m", 5400), ("30d", 2592000), ("2w", 1209600), ("0.5s", 0.5)]
)
def test_a_duration_is_a_number_with_its_unit(text: str, seconds: float) -> None:
    """STP-5: prune removes by age."""
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize(
    "text", ["30", "", "d", "-1d", "1 d", "1y", "1d ", "٣d", "1e3s", "inf", "9" * 40 + "d", "\x1b"]
)
def test_a_duration_without_a_unit_or_sense_is_refused_with_examples(text: str) -> None:
    """STP-5: thirty of what?"""
    with pytest.raises(click.BadParameter, match="such as 30d") as caught:
        Duration().convert(text, None, None)
    assert "\x1b" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"a": }', "line 1, column 7"),
        ("[1,\n2,\n}", "line 3, column 1"),
        ("", "line 1, column 1"),
        ("hello", "keeps its double quotes"),
        ("NaN", "NaN is no JSON number"),
        ("-Infinity", "-Infinity is no JSON number"),
        ("9" * 5000, "5000 digits"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_a_payload_that_is_not_json_is_refused_with_its_place(text: str, what: str) -> None:
    """SIG-5: an error names the place."""
    with pytest.raises(click.BadParameter, match=what):
        read_json(text, "JSON")


@settings(max_examples=20)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_every_json_value_is_read_back_equal(value: object) -> None:
    """SIG-5: any JSON value, given back equal."""
    import json

    text = json.dumps(value)
    if text != "-":
        assert read_json(text, "JSON") == value

"""Nothing that came from outside acts on a terminal; durations and times are for people."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio.cli.show import Cell, first_line, json_text, lasting, plural, table, visible, visible_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Grüße 家 👩‍👩‍👧", "Grüße 家 👩‍👩‍👧"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\r\nb", "a\\r\\nb"),
        ("\x9b31m", "\\x9b31m"),
        ("abc\u202etxt.exe", "abc\\u202etxt.exe"),
        ("a\u2028b", "a\\u2028b"),
        ("\ud800", "\\ud800"),
        ("\0", "\\x00"),
        ("[red]x[/red] :smile:", "[red]x[/red] :smile:"),
    ],
)
def test_text_from_outside_is_shown_and_never_interpreted(text: str, shown: str) -> None:
    """CLM-7: names are used as written, so they may hold anything printable; texts may hold everything."""
    assert visible(text) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_no_shown_text_has_a_character_that_acts_on_a_terminal(text: str) -> None:
    """TAG-4: what is given out is text."""
    shown = visible_lines(text)
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in shown.replace("\n", ""))
    assert shown.encode().decode() == shown
    assert "\n" not in visible(text)


def test_a_payload_is_shown_as_json_with_its_escapes() -> None:
    """SIG-5: a payload is any JSON value."""
    assert json_text({"a": "\x1b\x9b", "ü": [1]}) == '{\n  "a": "\\u001b\\x9b",\n  "ü": [\n    1\n  ]\n}'


def test_a_table_off_a_terminal_is_aligned_and_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe gets all of it: nothing is cut to a width."""
    table(["ID", "NAME"], [["1", "x" * 300], [Cell("22", "bold"), "家\x1b"], ["3", ""]])
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["ID  NAME", "1   " + "x" * 300, "22  家\\x1b", "3"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "-"),
        (-1, "0.00s"),
        (0.004, "0.00s"),
        (9.99, "9.99s"),
        (9.999, "10.0s"),
        (59.94, "59.9s"),
        (59.96, "1m00s"),
        (61, "1m01s"),
        (3599.9, "1h00m"),
        (86399, "23h59m"),
        (90000, "1d01h"),
    ],
)
def test_a_duration_is_shown_in_its_two_largest_units(seconds: float | None, shown: str) -> None:
    """LCK-7: since when, for a person."""
    assert lasting(seconds) == shown


def test_small_words() -> None:
    """RUN-7: an error's first line tells what it is about."""
    assert first_line("\n  \n the error\nmore") == "the error"
    assert first_line(None) == ""
    assert (plural(1, "run"), plural(0, "run")) == ("1 run", "0 runs")

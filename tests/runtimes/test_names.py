"""Session names as folders and arguments."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio._sansio.encoded_names import encode_name
from concorde_trio.errors import InvalidName
from concorde_trio.records import check_name

FROM_HELL = [
    "../../x",
    "..",
    ".",
    "-rf",
    "--help",
    "/etc/passwd",
    "a/b",
    "a b",
    " ",
    "~",
    "$HOME",
    "ann",
    "Ann",
    "ANN",
    "=41nn",
    "a.",
    "a",
    "con",
    "日本語",
    "e\u0301",
    "é",
    "\u2028",
    "x" * 200,
    "X" * 200,
    "x" * 199 + "y",
    "\U0001f600" * 200,
    "{session}",
    "run_01HZ",
]

names = st.text(min_size=1, max_size=200).filter(
    lambda name: (
        all(ord(c) >= 32 and not 127 <= ord(c) < 160 for c in name)
        and name.isascii() | (not any(0xD800 <= ord(c) < 0xE000 for c in name))
    )
)


def test_names_from_hell_are_all_different_folders() -> None:
    """CLM-7: even on a file system that takes capitals for small letters."""
    encoded = [encode_name(name) for name in FROM_HELL]
    assert len({one.lower() for one in encoded}) == len(FROM_HELL)
    assert encoded == [one.lower() for one in encoded]
    for one in encoded:
        assert re.fullmatch(r"[a-z0-9_=][a-z0-9_.=-]{0,199}", one)
        assert not one.endswith(".")


def test_ordinary_names_stay_readable() -> None:
    """CLM-7: an operator finds the folder of a session."""
    assert encode_name("user_ann-2.eu") == "user_ann-2.eu"
    assert encode_name("Ann") == "=41nn"
    assert encode_name("../x") == "=2e.=2fx"


@given(names, names)
def test_distinct_names_never_collide(one: str, other: str) -> None:
    """CLM-7: nobody gets into another's session."""
    assert (encode_name(one) == encode_name(other)) == (one == other)
    assert len(encode_name(one)) <= 200


@given(names)
def test_a_short_encoding_can_be_read_back(name: str) -> None:
    """CLM-7: so that two names with one encoding cannot be."""
    encoded = encode_name(name)
    if "=." not in encoded:
        back = re.sub(rb"=([0-9a-f]{2})", lambda match: bytes.fromhex(match[1].decode()), encoded.encode()).decode()
        assert back == name


@pytest.mark.parametrize("name", ["", "a\0", "x" * 201, "\ud800", 7])
def test_what_is_no_name_is_refused(name: str) -> None:
    """CLM-7: 1 to 200 characters without control characters."""
    with pytest.raises(InvalidName):
        encode_name(name)
    with pytest.raises(InvalidName):
        check_name(name, "session")

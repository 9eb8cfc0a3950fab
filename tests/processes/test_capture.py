"""What is kept of a program's output."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio.errors import UsageError
from concorde_trio.processes.capture import Capture


@given(pieces=st.lists(st.binary(max_size=9), max_size=20), head=st.integers(0, 12), tail=st.integers(0, 12))
def test_a_capture_keeps_beginning_and_end_however_the_bytes_were_split(
    pieces: list[bytes], head: int, tail: int
) -> None:
    """REC-6: output is bounded, and what is missing is counted."""
    capture = Capture(head, tail)
    for piece in pieces:
        capture.feed(piece)
    whole = b"".join(pieces)
    rest = whole[head:]
    assert capture.head == whole[:head]
    assert capture.tail == (rest[-tail:] if tail else b"")
    assert capture.total == len(whole)
    assert capture.cut == len(whole) - len(capture.head) - len(capture.tail)


def test_a_cut_text_says_how_much_is_missing() -> None:
    """REC-6: nobody takes a part for the whole."""
    capture = Capture(3, 3)
    capture.feed(b"abc" + b"-" * 1234 + b"xyz")
    assert capture.text() == "abc\n[... 1,234 bytes left out ...]\nxyz"
    assert len(capture._tail) <= 6


def test_a_capture_of_less_than_nothing_is_refused() -> None:
    """Misuse is loud at once."""
    with pytest.raises(UsageError, match="at least 0"):
        Capture(-1, 0)

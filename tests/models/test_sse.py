"""Server-sent events, whatever the split and the line ends."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio.models import sse
from concorde_trio.models.sse import COMMENT, ServerSentEvent, SseDecoder, TooLong

STREAM = "event: a\ndata: {\ndata: é}\nid: 7\n\n: keepalive\n\ndata:x\n\nevent: lost\n\nretry: 5\ndata\n\ndata: half\n"
EVENTS = [ServerSentEvent("{\né}", "a"), COMMENT, ServerSentEvent("x"), ServerSentEvent("")]


@given(
    cuts=st.lists(st.integers(0, 140)), end=st.sampled_from(["\n", "\r\n", "\r"]), mark=st.sampled_from(["", "\ufeff"])
)
def test_where_a_stream_is_cut_means_nothing(cuts: list[int], end: str, mark: str) -> None:
    """SES-2: events, comments and what no blank line has closed."""
    data = (mark + STREAM).replace("\n", end).encode()
    decoder, found = SseDecoder(), []
    places = [0, *sorted(cuts), len(data)]
    for start, stop in pairwise(places):
        found += decoder.feed(data[start:stop])
    assert found == EVENTS


def test_an_event_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """SES-2: a server cannot fill the memory, in one line or in many."""
    monkeypatch.setattr(sse, "LIMIT", 1_000)
    for piece in (b"x" * 300, b"data: " + b"x" * 300 + b"\n", b"data:\n" * 300):
        decoder = SseDecoder()
        with pytest.raises(TooLong):
            for _ in range(10):
                decoder.feed(piece)
    decoder = SseDecoder()
    for _ in range(10):
        assert len(decoder.feed(b"data: " + b"x" * 300 + b"\n\n")) == 1

"""A text in pieces is masked as the whole would be, and nothing of a tag gets out before it is known to be none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio._sansio.masked_stream import MaskedStream
from concorde_trio._sansio.run_tags import MASK, RunTags

PLAIN, ODD, LONG = "tag-of-ann-0123456789", 'tag-"with\\odd/signs%<&>', '"' * 128
TAGS = (PLAIN, ODD, LONG)
BREAKS = (" ", ", ", "\n", "家")
WORDS = (*TAGS, *(json.dumps(tag)[1:-1] for tag in TAGS), PLAIN[:15], ODD[:-1], "word", "x" * 300, *BREAKS)


def masks() -> RunTags[str]:
    """Three tags that are expected."""
    tags: RunTags[str] = RunTags()
    for tag in TAGS:
        tags.expect(tag)
    return tags


@given(st.lists(st.sampled_from(WORDS), max_size=12).map("".join), st.lists(st.integers(1, 40), min_size=1))
def test_a_text_in_pieces_is_masked_as_the_whole_is(text: str, sizes: list[int]) -> None:
    """TAG-4: however it is cut."""
    tags = masks()
    stream, shown, at = MaskedStream(tags.mask), "", 0
    while at < len(text):
        size = sizes[at % len(sizes)]
        shown += stream.feed(text[at : at + size])
        at += size
    assert shown + stream.end() == tags.mask(text)


@given(st.sampled_from(WORDS), st.sampled_from(TAGS), st.integers(1, 127), st.sampled_from(WORDS))
def test_the_beginning_of_a_tag_is_held_back(before: str, tag: str, cut: int, after: str) -> None:
    """TAG-4: whoever reads the first half now and the second half then has it all."""
    stream = MaskedStream(masks().mask)
    first = stream.feed(before + tag[:cut])
    assert first == (before if before in BREAKS else "")
    shown = first + stream.feed(tag[cut:] + " " + after) + stream.end()
    assert tag not in shown


def test_what_can_be_no_tag_any_more_is_shown_at_once() -> None:
    """SES-12a: a watcher reads word by word; what a space or another script follows is not held back."""
    stream = MaskedStream(masks().mask)
    assert stream.feed("Hello, wor") == "Hello, "
    assert stream.feed("ld! ") == "world! "
    assert stream.feed("家庭") == "家庭"
    assert stream.feed("end") == "" and stream.end() == "end"
    assert stream.feed("again ") == "again "


@pytest.mark.parametrize("tag", TAGS)
def test_a_text_without_a_break_is_not_held_back_for_ever(tag: str) -> None:
    """TAG-4, SES-12a: of a long one, no more is held back than a tag can have; and a tag across the cut is found."""
    stream, shown, sent = MaskedStream(masks().mask), "", 0
    for piece in ["y" * 100] * 20 + [tag] + ["z" * 7] * 300:
        shown += stream.feed(piece)
        sent += len(piece)
        assert sent - len(shown) < 1500
    assert shown + stream.end() == "y" * 2000 + MASK + "z" * 2100

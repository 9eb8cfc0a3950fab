"""What the second opinion on transcripts calls wrong."""

from __future__ import annotations

import pytest

from concorde_trio._sansio.message_shape import message_shape
from concorde_trio.messages import Message, Role, ToolCall
from concorde_trio.testing import check_message_shape


def said(seq: int, role: Role = Role.USER, *calls: ToolCall, call_id: str | None = None) -> Message:
    return Message(seq=seq, role=role, text="x", at=0.0, calls=calls, call_id=call_id)


def asks(seq: int, *ids: str, arguments: str = "{}") -> Message:
    return said(seq, Role.ASSISTANT, *(ToolCall(id=each, name="t", arguments=arguments) for each in ids))


def answers(seq: int, call_id: str) -> Message:
    return said(seq, Role.TOOL, call_id=call_id)


def test_a_good_transcript_is_good() -> None:
    """SES-9: results in call order, an id used again, one twice in a reply, a summary before what it keeps."""
    good = [
        said(9, Role.SUMMARY),
        said(1),
        asks(2, "a", "b"),
        answers(3, "a"),
        answers(4, "b"),
        asks(5, "a", "a"),
        answers(6, "a"),
        answers(7, "a"),
        said(8, Role.ASSISTANT),
        said(10),
    ]
    assert message_shape(good) is None
    assert message_shape([]) is None
    check_message_shape(good)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([asks(1, "a")], "end before the result of 'a'"),
        ([asks(1, "a", "b"), answers(2, "a")], "end before the result of 'b'"),
        ([asks(1, "a"), said(2), answers(3, "a")], "message 2 (user) stands before the result of 'a'"),
        ([asks(1, "a"), said(2, Role.ASSISTANT)], "message 2 (assistant)"),
        ([asks(1, "a", "b"), answers(2, "b"), answers(3, "a")], "message 2 is a result for 'b' where that of 'a'"),
        ([asks(1, "a"), answers(2, "a"), answers(3, "a")], "message 3 is a result for 'a', after message 1"),
        ([answers(1, "a")], "no message with calls"),
        ([said(1), said(2, Role.ASSISTANT), answers(3, "a")], "message 3 is a result"),
        ([asks(1, "a"), answers(2, "x")], "message 2 is a result for 'x'"),
        ([said(2), said(2)], "message 2 stands after message 2"),
        ([said(2), said(1)], "message 1 stands after message 2"),
        ([asks(1, "a", arguments="[]"), answers(2, "a")], "no object"),
        ([asks(1, "a", arguments='{"x":'), answers(2, "a")], "no object"),
        ([asks(1, "a", arguments='{"x":NaN}'), answers(2, "a")], "no object"),
        ([asks(1, "a", arguments="["*100_000), answers(2, "a")], "no object"),
        ([asks(1, ""), answers(2, "")], "has no id"),
        ([said(1, Role.USER, ToolCall(id="a", name="t"))], "has calls"),
    ],
)  # fmt: skip
def test_a_wrong_transcript_is_named(messages: list[Message], words: str) -> None:
    """SES-9, F-15, F-17: one sentence says which message, and why."""
    assert words in (message_shape(messages) or "")
    with pytest.raises(AssertionError, match="SES-9"):
        check_message_shape(messages)

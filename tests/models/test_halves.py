"""A character that a stream cut in two is one again, for whoever watches, in the transcript, and when it is sent back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from concorde_trio import AnthropicModel, OpenAIModel
from concorde_trio._sansio.model_events import CallDelta, CallStarted, ReasoningDelta, ReplyEnd, TextDelta
from concorde_trio._sansio.reply import ReplyBuilder
from concorde_trio.models.halves import Halves
from concorde_trio.records import storable_text
from concorde_trio.testing.model_dialects import sse
from tests.models.talking import body_of, chunk, conversation, heard_of, reply, user

FACE = "\U0001f600"
FIRST, SECOND = "\ud83d", "\ude00"


def texts(told: list[Any]) -> list[str]:
    """What was told of each, but pings."""
    return [getattr(each, "text", getattr(each, "arguments", "")) for each in told]


@pytest.mark.parametrize("kind", [TextDelta, ReasoningDelta, lambda text: CallDelta(3, text)])
def test_halves_are_told_as_one_character(kind: Any) -> None:
    """LSE-3: what comes between them of other texts changes nothing, and no piece ends with half of one."""
    told: list[Any] = []
    feed = Halves(told.append)
    for event in (kind(f"a{FIRST}"), CallDelta(4, "{}"), kind(f"{SECOND}b"), kind(f"{FIRST}"), kind("c"), ReplyEnd()):
        feed(event)
    whole = "".join(texts([each for each in told if type(each) is type(kind("")) and getattr(each, "index", 3) == 3]))
    assert whole == f"a{FACE}b\ufffdc"
    assert not any(FIRST in text or SECOND in text for text in texts(told))


def test_half_a_character_at_the_end_stands_for_itself() -> None:
    """SES-13: nothing is lost silently, and nothing is told that no store can hold."""
    told: list[Any] = []
    feed = Halves(told.append)
    for event in (CallStarted(0, "a", "t", f'{{"x":"{FIRST}'), TextDelta(FIRST), ReplyEnd()):
        feed(event)
    builder = ReplyBuilder()
    for each in told:
        builder.feed(each)
    assert builder.reply().text == "\ufffd" and (builder.reply().calls[0].raw or "").endswith("\ufffd")


def test_a_model_of_ones_own_may_cut_characters_too() -> None:
    """SES-9: what is stored has them whole; a half that is alone becomes U+FFFD."""
    builder = ReplyBuilder()
    for event in (TextDelta(f"a{FIRST}"), TextDelta(f"{SECOND}b{SECOND}"), ReplyEnd()):
        builder.feed(event)
    assert builder.reply().text == f"a{FACE}b\ufffd"
    assert storable_text(f"{FIRST}{FIRST}{SECOND}\0") == f"\ufffd{FACE}\ufffd"


async def test_openai_halves_are_joined() -> None:
    """SES-9: in text, reasoning and arguments, which a server sends as escapes."""
    pieces = [
        chunk({"reasoning_content": f"r{FIRST}"}),
        chunk({"reasoning_content": SECOND}),
        chunk({"content": f"a{FIRST}"}),
        chunk({"content": f"{SECOND}b"}),
        chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "t", "arguments": f'{{"x":"{FIRST}'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": f'{SECOND}"}}'}}]}),
        chunk({}, "tool_calls"),
    ]
    heard = await heard_of(OpenAIModel, pieces)
    assert heard.reasoning == f"r{FACE}" and heard.reply.text == f"a{FACE}b"
    assert json.loads(heard.reply.calls[0].arguments) == {"x": FACE}


async def test_anthropic_halves_are_joined_and_the_places_of_texts_stay_right() -> None:
    """SES-9: the text is split where its blocks were when it goes back with its reasoning."""
    stream = [
        sse(each, each["type"])
        for each in (
            {"type": "message_start", "message": {"usage": {"input_tokens": 1}}},
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "thinking", "thinking": "", "signature": ""},
            },
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": f"t{FIRST}"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": SECOND}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "SIG"}},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": f"a{FIRST}"}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": f"{SECOND}b"}},
            {
                "type": "content_block_start",
                "index": 2,
                "content_block": {"type": "thinking", "thinking": "u", "signature": ""},
            },
            {"type": "content_block_start", "index": 3, "content_block": {"type": "text", "text": "c"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        )
    ]
    heard = await heard_of(AnthropicModel, stream)
    given = heard.reply
    assert given.text == f"a{FACE}bc" and heard.reasoning.startswith(f"t{FACE}")
    said = reply(2, given.text, provider=given.provider, model="model-1")
    body = await body_of(AnthropicModel, conversation(user(1), said, user(3)))
    assert [each.get("text") or each.get("thinking") for each in body["messages"][1]["content"]] == [
        f"t{FACE}",
        f"a{FACE}b",
        "u",
        "c",
    ]


def test_the_halves_of_a_long_text_cost_nothing_that_grows() -> None:
    """LSE-3: what is held is one character."""
    told: list[Any] = []
    feed = Halves(told.append)
    for _ in range(1000):
        feed(TextDelta(f"{SECOND}x{FIRST}"))
    assert len(told) == 1000 and max(map(len, texts(told))) == 2

"""What AnthropicModel sends, and what it makes of the parts of a stream that only this API has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from concorde_trio import AnthropicModel
from concorde_trio._sansio.model_events import UsageReport
from concorde_trio.messages import CallOutcome, Message, Role, ToolCall
from concorde_trio.records import Usage
from concorde_trio.testing.model_dialects import sse
from concorde_trio.testing.model_server import ServerAnswer, whole
from tests.models.talking import body_of, conversation, heard_of, reply, result, tool, user


def said(*events: dict[str, Any]) -> list[bytes]:
    return [sse(event, event["type"]) for event in events]


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


async def test_user_and_assistant_take_turns_with_results_first() -> None:
    """SES-9: results are the user's, before what the person says next; messages of one role become one."""
    body = await body_of(
        AnthropicModel,
        conversation(
            Message(seq=20, role=Role.SUMMARY, text="Hello was said.", at=0.0, covers=19),
            user(11, "look"),
            reply(12, "I look.", ToolCall(id="a", name="read", arguments='{"p":1}'), ToolCall(id="b", name="read")),
            result(13, "a", "one"),
            result(14, "b", "", CallOutcome.ERROR),
            user(15, "and?"),
            reply(16, "Was", interrupted=True),
            reply(17, "Done."),
            user(18, "thanks"),
            tools=(tool("read"),),
            system="Be brief.",
        ),
        prompt_caching=False,
        options={"temperature": 0.5},
    )
    assert body["system"] == [text("Be brief.")]
    assert (body["max_tokens"], body["temperature"], body["stream"]) == (8192, 0.5, True)
    assert body["tools"][0]["input_schema"] == {"type": "object", "properties": {}}
    summary = body["messages"][0]["content"].pop(0)["text"]
    assert summary.endswith("\nHello was said.")
    assert body["messages"] == [
        {"role": "user", "content": [text("look")]},
        {
            "role": "assistant",
            "content": [
                text("I look."),
                {"type": "tool_use", "id": "a", "name": "read", "input": {"p": 1}},
                {"type": "tool_use", "id": "b", "name": "read", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                {"type": "tool_result", "tool_use_id": "b", "content": "(no output)", "is_error": True},
                text("and?"),
            ],
        },
        {
            "role": "assistant",
            "content": [text("Was\n[The user interrupted this reply here.]"), text("Done.")],
        },
        {"role": "user", "content": [text("thanks")]},
    ]


async def test_a_conversation_begins_and_ends_with_the_user() -> None:
    """SES-9: as this API wants it."""
    body = await body_of(AnthropicModel, conversation(reply(1, "Hello."), reply(2, "")))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert [message["role"] for message in (await body_of(AnthropicModel, conversation()))["messages"]] == ["user"]


async def test_calls_without_tools_are_sent_with_tools_that_cannot_be_called() -> None:
    """SES-15: a compaction offers no tools, and its transcript has calls."""
    messages = (user(1), reply(2, "", ToolCall(id="a", name="read")), result(3, "a"))
    body = await body_of(AnthropicModel, conversation(*messages))
    assert [each["name"] for each in body["tools"]] == ["read"]
    assert body["tool_choice"] == {"type": "none"}


async def test_instructions_and_conversation_are_marked_for_the_cache() -> None:
    """SES-16: so that the next request reads them from it."""
    body = await body_of(AnthropicModel, conversation(user(1), reply(2, "x"), user(3), system="Be brief."))
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert body["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in json.dumps(body["messages"][:-1])


async def test_images_stand_before_the_text() -> None:
    """F-22: base64, with their type."""
    image = {"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo="}
    body = await body_of(AnthropicModel, conversation(user(1, "", image)), prompt_caching=False)
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    assert body["messages"] == [{"role": "user", "content": [{"type": "image", "source": source}]}]


THINKING = said(
    {"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Let me "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "see."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "SIG"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "XX"}},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "I look."}},
    {"type": "content_block_start", "index": 3, "content_block": {"type": "thinking", "thinking": "Hm."}},
    {"type": "content_block_start", "index": 4, "content_block": {"type": "tool_use", "id": "a", "name": "read"}},
    {"type": "content_block_delta", "index": 4, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
    {"type": "content_block_start", "index": 5, "content_block": {"type": "text", "text": " So."}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
)


async def test_signed_reasoning_goes_back_to_the_model_that_signed_it() -> None:
    """SES-9: in its old place, what was said after a call before it; and to no other model."""
    heard = await heard_of(AnthropicModel, THINKING)
    given = heard.reply
    assert heard.reasoning.startswith("Let me see.")
    assert given.text == "I look. So."
    json.dumps(given.provider)
    blocks: dict[str, Any] = {}
    for model in ("model-1", "model-2"):
        message = reply(2, given.text, *given.calls, provider=given.provider, model=model)
        body = await body_of(AnthropicModel, conversation(user(1), message, result(3, "a")))
        blocks[model] = body["messages"][1]["content"]
    call = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
    assert blocks["model-1"] == [
        {"type": "thinking", "thinking": "Let me see.", "signature": "SIG"},
        {"type": "redacted_thinking", "data": "XX"},
        text("I look."),
        {"type": "thinking", "thinking": "Hm.", "signature": ""},
        text(" So."),
        call,
    ]
    assert blocks["model-2"] == [text("I look. So."), call]


async def test_usage_adds_up_over_the_stream_and_counts_the_cache() -> None:
    """SES-16: input is all of it; writing the cache costs a quarter more."""
    first = {"input_tokens": 10, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 20, "output_tokens": 1}
    pieces = said(
        {"type": "message_start", "message": {"usage": first}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    )
    heard = await heard_of(AnthropicModel, pieces, prices=(1_000_000, 2_000_000, 100_000))
    reports = [event.usage for event in heard.events if isinstance(event, UsageReport)]
    assert [usage.output_tokens for usage in reports] == [1, 5]
    assert reports[-1] == Usage(input_tokens=60, output_tokens=5, cached_tokens=30, cost=10 + 25 + 3 + 10)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("overloaded_error", 529),
        ("rate_limit_error", 429),
        ("api_error", 500),
        ("invalid_request_error", 400),
        ("x", None),
    ],
)
async def test_an_error_event_has_the_status_it_stands_for(kind: str, status: int | None) -> None:
    """SES-11: the provider fails after it said 200."""
    heard = await heard_of(AnthropicModel, said({"type": "error", "error": {"type": kind, "message": "Overloaded"}}))
    assert heard.error.status == status
    assert str(heard.error).endswith("Overloaded")


async def test_events_of_unknown_kinds_are_passed_over() -> None:
    """LSE-3: they show that the connection lives, and no more."""
    odd = said(
        {"type": "vertex_event"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "id": "s"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{"}},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "nowhere"}},
        {"type": "content_block_delta", "index": None, "delta": None},
        {"type": "content_block_start", "index": 1, "content_block": None},
        {"type": "message_delta", "delta": None, "usage": None},
        {"type": "message_stop"},
    )
    heard = await heard_of(AnthropicModel, odd)
    assert heard.reply.text == ""
    assert heard.reply.calls == ()
    assert heard.pings == 7


async def test_a_server_may_not_stream_at_all() -> None:
    """SES-2: the whole reply as one document."""
    content = [text("It is."), {"type": "tool_use", "id": "a", "name": "t", "input": {"x": 1}}]
    document = {"type": "message", "content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 3}}
    heard = await heard_of(AnthropicModel, ServerAnswer(pieces=(whole(200, json.dumps(document).encode()),)))
    assert heard.reply.text == "It is."
    assert heard.reply.calls == (ToolCall(id="a", name="t", arguments='{"x": 1}'),)
    assert heard.reply.usage == Usage(input_tokens=3)

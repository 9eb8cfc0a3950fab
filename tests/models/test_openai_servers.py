"""What OpenAIModel makes of servers that come near the format."""

from __future__ import annotations

import json

import pytest

from concorde_trio import OpenAIModel
from concorde_trio._sansio.model_events import CallDelta, CallStarted, StopReason, UsageReport
from concorde_trio.records import Usage
from concorde_trio.testing.model_dialects import sse
from concorde_trio.testing.model_server import ServerAnswer, whole
from tests.models.talking import chunk, heard_of


def call(**fields: object) -> dict[str, object]:
    return {"tool_calls": [fields]}


async def test_a_server_may_send_a_whole_call_at_once() -> None:
    """SES-13: id, name and all arguments in one chunk, and stop for a reason."""
    pieces = [
        chunk(call(index=0, id="a", function={"name": "t", "arguments": '{"x":1}'})),
        chunk(call(index=1, id="b", function={"name": "t", "arguments": {"x": 2}})),
        chunk({}, "stop"),
    ]
    reply = (await heard_of(OpenAIModel, pieces)).reply
    assert [(each.id, each.arguments) for each in reply.calls] == [("a", '{"x":1}'), ("b", '{"x": 2}')]
    assert reply.reason is StopReason.CALLS


@pytest.mark.parametrize(
    "pieces",
    [
        # No index.
        [
            call(id="a", function={"name": "t", "arguments": '{"x"'}),
            call(function={"arguments": ":1}"}),
            call(id="b", function={"name": "t", "arguments": '{"x":2}'}),
        ],
        # The same index for all.
        [
            call(index=0, id="a", function={"name": "t", "arguments": '{"x":1}'}),
            call(index=0, id="b", function={"name": "t", "arguments": '{"x":2}'}),
        ],
        # The id, and the name, again with every piece.
        [
            call(index=0, id="a", function={"name": "t", "arguments": '{"x"'}),
            call(index=0, id="a", function={"name": "t", "arguments": ":1}"}),
            call(index=1, id="b", function={"name": "t", "arguments": '{"x":2}'}),
        ],
        # Pieces of two calls in turn, null where there is nothing.
        [
            call(index=0, id="a", function={"name": "t", "arguments": None}),
            call(index=1, id="b", function={"name": "t", "arguments": ""}),
            call(index=1, id=None, function={"name": None, "arguments": '{"x":2}'}),
            call(index=0, id="", function={"arguments": '{"x":1}'}),
        ],
        # The name after the first arguments.
        [
            call(index=0, id="a", function={"arguments": '{"x"'}),
            call(index=0, function={"name": "t", "arguments": ":1}"}),
            call(index=1, id="b", function={"name": "t", "arguments": '{"x":2}'}),
        ],
    ],
    ids=["no index", "one index", "repeated ids", "in turn", "late name"],
)
async def test_calls_are_told_apart_however_a_server_numbers_them(pieces: list[dict[str, object]]) -> None:
    """SES-13: two calls with their own arguments."""
    reply = (await heard_of(OpenAIModel, [*map(chunk, pieces), chunk({}, "tool_calls")])).reply
    assert [(each.id, each.name, each.arguments) for each in reply.calls] == [
        ("a", "t", '{"x":1}'),
        ("b", "t", '{"x":2}'),
    ]


async def test_a_server_may_leave_out_ids() -> None:
    """SES-13: calls without ids are two calls, and get some."""
    pieces = [
        chunk({"tool_calls": [{"function": {"name": "t", "arguments": "{}"}}, {"function": {"name": "u"}}]}),
        chunk({}, "tool_calls"),
    ]
    reply = (await heard_of(OpenAIModel, pieces)).reply
    assert [each.name for each in reply.calls] == ["t", "u"]
    assert len({each.id for each in reply.calls} - {""}) == 2


async def test_a_server_may_not_stream_at_all() -> None:
    """SES-2: the whole reply as one document."""
    message = {
        "role": "assistant",
        "content": "It is.",
        "reasoning_content": "Hm.",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}],
    }
    document = {
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2},
    }
    heard = await heard_of(OpenAIModel, ServerAnswer(pieces=(whole(200, json.dumps(document).encode()),)))
    assert heard.reply.text == "It is."
    assert heard.reasoning == "Hm."
    assert heard.reply.calls[0].name == "t"
    assert heard.reply.usage == Usage(input_tokens=5, output_tokens=2)


async def test_reasoning_has_two_names_and_is_told_once() -> None:
    """LSE-3: reasoning_content and reasoning; tokens of reasoning are usage and no event of their own."""
    pieces = [
        chunk({"reasoning_content": "a"}),
        chunk({"reasoning": "b"}),
        chunk({"reasoning": "c", "reasoning_content": "c"}),
        chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "d"}]}]}),
        chunk({"content": [{"type": "text", "text": "answer"}]}),
        chunk({}, "stop"),
        sse({"choices": [], "usage": {"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 8}}}),
    ]
    heard = await heard_of(OpenAIModel, pieces)
    assert heard.reasoning == "abcd"
    assert heard.reply.text == "answer"
    assert heard.reply.usage == Usage(output_tokens=9)


async def test_a_refusal_is_told_with_its_words() -> None:
    """SES-13: whether it comes as words or as a filter."""
    heard = await heard_of(OpenAIModel, [chunk({"refusal": "I will "}), chunk({"refusal": "not."}), chunk({}, "stop")])
    assert heard.reply.text == "I will not."
    assert heard.reply.reason is StopReason.REFUSED
    heard = await heard_of(OpenAIModel, [chunk({"content": "x"}), chunk({}, "content_filter")])
    assert heard.reply.reason is StopReason.REFUSED


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"message": "m", "code": 429}, 429),
        ({"message": "m", "code": "503"}, 503),
        ({"message": "m", "type": "overloaded_error"}, 529),
        ({"message": "m", "type": "internal_server_error"}, 500),
        ({"message": "m", "type": "invalid_request_error"}, None),
        ("m", None),
    ],
)
async def test_an_error_in_the_stream_has_the_status_of_its_code(error: object, status: int | None) -> None:
    """SES-11: a code may be a number or a name."""
    heard = await heard_of(OpenAIModel, [chunk({"content": "x"}), sse({"error": error})])
    assert heard.error.status == status
    assert str(heard.error).endswith(": m")


async def test_a_reply_that_the_server_gave_up_is_no_reply() -> None:
    """SES-13: some servers say so by a finish_reason."""
    for reason, status in (("error", 500), ("insufficient_system_resource", 503)):
        heard = await heard_of(OpenAIModel, [chunk({"content": "x"}), chunk({}, reason)])
        assert not heard.complete
        assert heard.error.status == status


async def test_done_without_a_finish_reason_is_no_end() -> None:
    """SES-13: the connection's end and [DONE] say nothing of the reply."""
    heard = await heard_of(OpenAIModel, [chunk({"content": "x"}), b"data: [DONE]\n\n"])
    assert not heard.complete
    assert heard.error.connection


async def test_a_cost_is_counted_if_there_are_prices() -> None:
    """SES-16: what was read from a cache has its own price; without prices there is no cost."""
    usage = {"prompt_tokens": 3_000_000, "completion_tokens": 1_000_000, "prompt_cache_hit_tokens": 1_000_000}
    pieces = [chunk({"content": "x"}), chunk({}, "stop"), sse({"choices": [], "usage": usage})]
    assert (await heard_of(OpenAIModel, pieces, prices=(2, 10, 0.5))).reply.usage == Usage(
        input_tokens=3_000_000, output_tokens=1_000_000, cached_tokens=1_000_000, cost=14.5
    )
    assert (await heard_of(OpenAIModel, pieces)).reply.usage.cost is None


async def test_fields_of_unknown_types_are_passed_over() -> None:
    """SES-2: nothing that a server sends is an error of ours."""
    odd = [
        {"choices": None},
        {"choices": [None, {"index": 1, "delta": {"content": "other choice"}}, {"delta": None}]},
        {"choices": [{"delta": {"content": 5, "tool_calls": [None, "x"], "reasoning": {}}}]},
        {"usage": "none"},
        {"usage": {"prompt_tokens": -5, "completion_tokens": True, "prompt_tokens_details": []}},
        {},
    ]
    heard = await heard_of(OpenAIModel, [*map(sse, odd), chunk({"content": "x"}), chunk({}, "stop")])
    assert heard.reply.text == "x"
    assert not [event for event in heard.events if isinstance(event, CallStarted | CallDelta)]
    assert [event for event in heard.events if isinstance(event, UsageReport)] == [UsageReport(Usage())]


async def test_numbers_that_no_store_holds_harm_no_session() -> None:
    """SES-2, SES-9: NaN where a server keeps what is its own, more tokens than there are, a code that is no number."""
    odd = call(
        index=0, id="a", function={"name": "t", "arguments": "{}"}, extra_content={"a": float("nan"), "b": [1.5]}
    )
    heard = await heard_of(OpenAIModel, [chunk(odd), chunk({}, "tool_calls", usage={"prompt_tokens": 10**4000})])
    assert heard.reply.provider == {"openai": {"calls": {"0": {"a": None, "b": [1.5]}}}}
    assert heard.reply.usage == Usage()
    for code in ("\u00b2", "5" * 5000):
        heard = await heard_of(OpenAIModel, [sse({"error": {"code": code, "message": "no"}})])
        assert (heard.error.status, "an error in the reply: no" in str(heard.error)) == (None, True)

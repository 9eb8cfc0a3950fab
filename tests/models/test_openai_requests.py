"""What OpenAIModel sends: the transcript as Chat Completions wants it."""

from __future__ import annotations

import json

import pytest

from concorde_trio import OpenAIModel
from concorde_trio._sansio.model_events import CallStarted, ReplyEnd, StopReason
from concorde_trio.messages import CallOutcome, Message, Role, ToolCall
from concorde_trio.testing.model_dialects import OpenAIDialect
from tests.models.talking import body_of, chunk, conversation, heard_of, reply, request_of, result, tool, user

IMAGE = {"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo="}


async def test_a_conversation_goes_out_in_the_order_in_which_it_was_said() -> None:
    """SES-9: results stand right after their calls, in call order."""
    body = await body_of(
        OpenAIModel,
        conversation(
            user(1, "look"),
            reply(2, "I look.", ToolCall(id="a", name="read", arguments='{"p":1}'), ToolCall(id="b", name="read")),
            result(3, "a", "one"),
            result(4, "b", ""),
            reply(5, "Done."),
            user(6, "thanks"),
            tools=(tool("read"),),
            system="Be brief.",
        ),
        max_output_tokens=77,
        options={"temperature": 0, "stream_options": None},
    )
    assert body == {
        "model": "model-1",
        "stream": True,
        "max_tokens": 77,
        "temperature": 0,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "x",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "look"},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "read", "arguments": '{"p":1}'}},
                    {"id": "b", "type": "function", "function": {"name": "read", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": "one"},
            {"role": "tool", "tool_call_id": "b", "content": "(no output)"},
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": "thanks"},
        ],
    }


async def test_images_go_along_and_other_attachments_send_no_request() -> None:
    """F-22: both images are in the turn; what is not known is refused, by name, before anything is sent."""
    body = await body_of(OpenAIModel, conversation(user(1, "what is this?", IMAGE, IMAGE)))
    kinds = [part["type"] for part in body["messages"][0]["content"]]
    assert kinds == ["image_url", "image_url", "text"]
    assert body["messages"][0]["content"][0]["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgo="
    for wrong, word in (({"type": "video"}, "video"), ("x", "str"), ({"type": "image", "data": 1}, "media_type")):
        heard = await heard_of(OpenAIModel, [], conversation(user(1, "x", wrong)))
        assert word in str(heard.error)
        assert "o request was sent" in str(heard.error)
        assert not heard.error.connection


async def test_what_says_nothing_is_left_out_and_what_was_cut_is_marked() -> None:
    """SES-5, SES-15: an empty reply, an interrupted one, a summary."""
    body = await body_of(
        OpenAIModel,
        conversation(
            Message(seq=9, role=Role.SUMMARY, text="They said hello.", at=0.0, covers=8),
            reply(10, " "),
            reply(11, "I was just ", interrupted=True),
            user(12, ""),
        ),
    )
    summary, interrupted, empty = body["messages"]
    assert summary["role"] == "user"
    assert "summary" in summary["content"].splitlines()[0]
    assert summary["content"].endswith("\nThey said hello.")
    assert interrupted == {"role": "assistant", "content": "I was just\n[The user interrupted this reply here.]"}
    assert empty == {"role": "user", "content": "(no text)"}


async def test_ids_that_come_again_are_made_new_with_their_results() -> None:
    """SES-13, F-14: an id of an earlier reply, one twice in a reply, ids that no pattern allows."""
    calls = [
        (ToolCall(id="call-1", name="t"),),
        (ToolCall(id="call-1", name="t"), ToolCall(id="call-1", name="t", refused="twice")),
        (
            ToolCall(id="functions.t:0", name="t"),
            ToolCall(id="functions/t/0", name="t"),
            ToolCall(id="x" * 99, name="t"),
        ),
    ]
    messages, seq = [], 0
    for group in calls:
        seq += 1
        messages.append(reply(seq, "", *group))
        for call in group:
            seq += 1
            messages.append(result(seq, call.id, f"result {seq}"))
    body = await body_of(OpenAIModel, conversation(*messages))
    sent = [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]
    assert sent == ["call-1", "call-1_2", "call-1_3", "functions_t_0", "functions_t_0_2", "x" * 40]
    answered = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    assert answered == sent
    # A longer transcript begins with the same bytes.
    shorter = await body_of(OpenAIModel, conversation(*messages[:5]))
    assert shorter["messages"] == body["messages"][: len(shorter["messages"])]


async def test_names_that_no_pattern_allows_are_mapped_both_ways() -> None:
    """SES-13: a call comes back under the name that its tool has here."""
    tools = (tool("files.read"), tool("files/read"), tool("files_read"), tool("ä" * 70))
    request = conversation(user(1), reply(2, "", ToolCall(id="a", name="gone.tool")), result(3, "a"), tools=tools)
    body = await body_of(OpenAIModel, request)
    names = [each["function"]["name"] for each in body["tools"]]
    assert names == ["files_read_2", "files_read_3", "files_read", "_" * 64]
    assert body["messages"][1]["tool_calls"][0]["function"]["name"] == "gone_tool"
    said = [CallStarted(0, "c", names[1]), CallStarted(1, "d", "made_up"), ReplyEnd(StopReason.CALLS)]
    heard = await heard_of(OpenAIModel, OpenAIDialect().stream(said), request)
    assert [call.name for call in heard.reply.calls] == ["files/read", "made_up"]


async def test_what_no_provider_can_hold_never_goes_out() -> None:
    """SIG-5: lone surrogates and NUL, in text, results, descriptions and instructions."""
    bad = "a\0b\ud800c"
    request = await request_of(
        OpenAIModel,
        conversation(
            user(1, bad),
            reply(2, bad, ToolCall(id=bad, name=bad)),
            result(3, bad, bad),
            tools=(tool(bad),),
            system=bad,
        ),
    )
    body = json.loads(request.body)
    assert body["tools"][0]["function"]["name"] == "a_b_c"
    texts = [message["content"] for message in body["messages"]]
    assert texts == ["a\ufffdb\ufffdc"] * 4


@pytest.mark.parametrize("outcome", [CallOutcome.ERROR, CallOutcome.TIMEOUT, CallOutcome.DENIED])
async def test_a_result_is_sent_whatever_its_outcome(outcome: CallOutcome) -> None:
    """SES-9: an error is a result too."""
    messages = conversation(user(1), reply(2, "", ToolCall(id="a", name="t")), result(3, "a", "no luck", outcome))
    body = await body_of(OpenAIModel, messages)
    assert body["messages"][-1] == {"role": "tool", "tool_call_id": "a", "content": "no luck"}


async def test_what_a_server_wants_back_with_a_call_goes_back_to_it_alone() -> None:
    """SES-9: such as the signature that some servers put on a call."""
    extra = {"google": {"thought_signature": "abc"}}
    call = {"index": 0, "id": "a", "function": {"name": "t", "arguments": "{}"}, "extra_content": extra}
    pieces = [chunk({"tool_calls": [call]}, "tool_calls")]
    provider = (await heard_of(OpenAIModel, pieces)).reply.provider
    for model, sent in (("model-1", extra), ("model-2", None)):
        said = reply(2, "", ToolCall(id="a", name="t"), provider=provider, model=model)
        body = await body_of(OpenAIModel, conversation(user(1), said, result(3, "a")))
        assert body["messages"][1]["tool_calls"][0].get("extra_content") == sent

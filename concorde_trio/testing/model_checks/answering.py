"""What a client makes of a good answer."""

from __future__ import annotations

from concorde_trio._sansio.model_events import (
    CallDelta,
    CallStarted,
    ModelEvent,
    Ping,
    ReasoningDelta,
    ReplyEnd,
    StopReason,
    TextDelta,
    UsageReport,
)
from concorde_trio.records import Usage
from concorde_trio.testing.model_checks.asking import KEY, MakeModel, asked, hear, same_reply, served
from concorde_trio.testing.model_dialects import Dialect
from concorde_trio.testing.model_server import ServerAnswer, event_stream

END = ReplyEnd()
CALLS = (
    TextDelta("I look. "),
    CallStarted(0, "call_a", "read"),
    CallDelta(0, '{"path":'),
    CallDelta(0, '"a"}'),
    CallStarted(1, "call_b", "write"),
    CallDelta(1, '{"path":"b","content":"é\\n"}'),
    ReplyEnd(StopReason.CALLS),
)


async def text_comes_out_as_it_was_sent(make_model: MakeModel, dialect: Dialect) -> None:
    """SES-2: every character, in order, and then the end."""
    events = (TextDelta("Grüß "), TextDelta("Gott, "), TextDelta("日本\n\n…\U0001f600"), END)
    async with served(make_model, dialect) as (server, model):
        server.answers(ServerAnswer(pieces=event_stream(dialect.stream(events))))
        heard = await hear(model)
        same_reply(heard, events, "SES-2")
        assert isinstance(heard.events[-1], ReplyEnd), f"SES-2: {heard.events[-1]} came after the end"
        assert heard.returned, "Model: stream did not return after ReplyEnd"


async def a_stream_may_come_byte_by_byte(make_model: MakeModel, dialect: Dialect) -> None:
    """SES-2: where the network splits a stream means nothing."""
    async with served(make_model, dialect) as (server, model):
        whole = b"".join(event_stream(dialect.stream(CALLS)))
        server.answers(ServerAnswer(pieces=tuple(whole[at : at + 1] for at in range(len(whole)))))
        same_reply(await hear(model), CALLS, "SES-2")


async def calls_keep_their_order_ids_names_and_arguments(make_model: MakeModel, dialect: Dialect) -> None:
    """SES-13: two calls in one reply, their arguments in pieces."""
    async with served(make_model, dialect) as (server, model):
        server.answers(ServerAnswer(pieces=event_stream(dialect.stream(CALLS))))
        same_reply(await hear(model), CALLS, "SES-13")


async def reasoning_is_told_and_is_no_text(make_model: MakeModel, dialect: Dialect) -> None:
    """LSE-3, F-05: reasoning shows that the model works, and is no part of the answer."""
    events = (ReasoningDelta("Let me "), ReasoningDelta("see."), TextDelta("42"), END)
    async with served(make_model, dialect) as (server, model):
        server.answers(ServerAnswer(pieces=event_stream(dialect.stream(events))))
        heard = await hear(model)
        assert heard.reply.text == "42", f"LSE-3: the text is {heard.reply.text!r}, and '42' was sent"
        assert heard.reasoning == "Let me see.", f"LSE-3: the reasoning is {heard.reasoning!r}"


async def pings_and_usage_are_told_as_such(make_model: MakeModel, dialect: Dialect) -> None:
    """LSE-3, F-03, F-04: what keeps a connection alive is a Ping, what counts is a UsageReport, and neither is progress."""
    usage = Usage(input_tokens=120, output_tokens=7, cached_tokens=20)
    quiet: tuple[ModelEvent, ...] = (Ping(), Ping(), UsageReport(usage), Ping(), UsageReport(usage))
    async with served(make_model, dialect) as (server, model):
        server.answers(ServerAnswer(pieces=event_stream(dialect.stream((*quiet, END)))))
        heard = await hear(model)
        same_reply(heard, (*quiet, END), "LSE-3")
        assert heard.pings >= 3, f"LSE-3: {heard.pings} pings were told of the 3 that were sent: {heard.events}"
        odd = [event for event in heard.events if not isinstance(event, Ping | UsageReport | ReplyEnd)]
        assert not odd, f"LSE-3: a stream of pings and usage was told as {odd}"


async def usage_counts_all_input_and_says_what_was_cached(make_model: MakeModel, dialect: Dialect) -> None:
    """SES-16: input tokens include those that were read from a cache; a server may say nothing of usage."""
    usage = Usage(input_tokens=120, output_tokens=7, cached_tokens=20)
    events = (TextDelta("x"), UsageReport(usage), END)
    async with served(make_model, dialect) as (server, model):
        server.answers(ServerAnswer(pieces=event_stream(dialect.stream(events))))
        same_reply(await hear(model), events, "SES-16")
        server.answers(ServerAnswer(pieces=event_stream(dialect.stream((TextDelta("x"), END)))))
        found = (await hear(model)).reply.usage
        assert found is None, f"SES-16: the server told of no usage, and the client of {found}"


async def every_reason_to_stop_comes_out(make_model: MakeModel, dialect: Dialect) -> None:
    """SES-13: a reply that was cut off or refused is told from one that is over."""
    async with served(make_model, dialect) as (server, model):
        for reason in StopReason:
            said: tuple[ModelEvent, ...] = CALLS[:-1] if reason is StopReason.CALLS else (TextDelta("x"),)
            server.answers(ServerAnswer(pieces=event_stream(dialect.stream((*said, ReplyEnd(reason))))))
            found = (await hear(model)).reply.reason
            assert found is reason, f"SES-13: the reply ended with {reason}, and the client said {found}"


async def the_end_is_the_providers_word_and_not_the_connections(make_model: MakeModel, dialect: Dialect) -> None:
    """SES-2: after the provider's last word the client returns, whether or not the server hangs up."""
    events = (TextDelta("x"), END)
    async with served(make_model, dialect) as (server, model):
        server.answers(ServerAnswer(pieces=event_stream(dialect.stream(events))[:-1], then="stall"))
        same_reply(await hear(model), events, "SES-2")
        await server.exchanges[0].gone.wait()


async def a_request_says_what_was_asked_and_no_context(make_model: MakeModel, dialect: Dialect) -> None:
    """SES-2: the key goes into a header, the conversation into the body, and the context nowhere."""
    async with served(make_model, dialect) as (server, model):
        server.answers(ServerAnswer(pieces=event_stream(dialect.stream((END,)))))
        await hear(model, asked("what is the weather in Łódź?"))
        (request,) = server.requests
        body = request.body.decode()
        for part in ("weather in", "Be brief.", "Write a file.", model.name):
            assert part in body, f"Model: the request does not say {part!r}: {body}"
        assert "4711" not in body, f"SES-2: the request's context went to the provider: {body}"
        assert KEY in " ".join(request.headers.values()), f"Model: no header has the key: {sorted(request.headers)}"
        assert KEY not in body + request.path, "Model: the key stands in the body or the path of the request"

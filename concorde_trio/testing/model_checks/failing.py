"""What a client makes of a bad answer, and that no key is in it."""

from __future__ import annotations

import json
import traceback

import trio

from concorde_trio._sansio.model_events import CallDelta, CallStarted, ModelEvent, ReplyEnd, StopReason, TextDelta
from concorde_trio.errors import ModelError
from concorde_trio.testing.model_checks.asking import HOLDS, KEY, Heard, MakeModel, hear, same_reply, served
from concorde_trio.testing.model_dialects import Dialect
from concorde_trio.testing.model_server import HeardRequest, ServerAnswer, event_stream, whole

DATE = "Fri, 31 Dec 2027 23:59:59 GMT"


async def a_status_is_told_in_the_providers_words(make_model: MakeModel, dialect: Dialect) -> None:
    """SES-11: status and words come out, and nothing was tried a second time."""
    async with served(make_model, dialect) as (server, model):
        for status in (400, 401, 403, 404, 413, 422, 429, 500, 502, 503, 504, 529):
            before = len(server.exchanges)
            words = f"the words of {status}"
            server.answers(ServerAnswer(pieces=(whole(status, dialect.error_body(status, words)),)))
            error = _error(await hear(model))
            assert error.status == status, f"SES-11: the server said {status}, and the client {error.status}"
            assert words in str(error), f"SES-11: the message does not have the provider's words {words!r}: {error}"
            assert error.retry_after is None, (
                f"SES-11: there was no Retry-After, and the client says {error.retry_after}"
            )
            requests = len(server.exchanges) - before
            assert requests == 1, (
                f"SES-11: {requests} requests were sent where one was asked for; retries are not its own"
            )


async def retry_after_comes_out_as_it_stood(make_model: MakeModel, dialect: Dialect) -> None:
    """SES-11, F-33: what the header means is decided elsewhere."""
    async with served(make_model, dialect) as (server, model):
        for value in ("7", "18000", "0", "-3", "soon", DATE):
            body = dialect.error_body(429, "slow down")
            server.answers(ServerAnswer(pieces=(whole(429, body, {"Retry-After": value}),)))
            found = _error(await hear(model)).retry_after
            assert found == value, f"SES-11: Retry-After was {value!r}, and the client says {found!r}"


async def an_error_in_the_stream_has_the_status_it_stands_for(make_model: MakeModel, dialect: Dialect) -> None:
    """SES-11: a provider that fails after it said 200."""
    async with served(make_model, dialect) as (server, model):
        for status in (429, 500, 529):
            pieces = [*dialect.stream([TextDelta("x")]), dialect.error_in_stream(status, "busy now")]
            server.answers(ServerAnswer(pieces=event_stream(pieces)))
            heard = await hear(model)
            error = _error(heard)
            assert error.status == status, f"SES-11: the error stands for {status}, and the client says {error.status}"
            assert "busy now" in str(error), f"SES-11: the message has no words of the provider: {error}"


async def no_connection_and_no_answer_are_told_apart_from_refusals(make_model: MakeModel, dialect: Dialect) -> None:
    """SES-11: a connection that fails may be tried again, and says so."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    model = make_model(f"http://127.0.0.1:{port}{dialect.base_path}", KEY)
    assert _error(await hear(model)).connection, "SES-11: a refused connection is a failed connection"
    async with served(make_model, dialect) as (server, model):
        for answer in (ServerAnswer(then="close"), ServerAnswer(then="reset")):
            server.answers(answer)
            found = _error(await hear(model)).connection
            assert found, f"SES-11: {answer.then} before an answer is a failed connection"


async def a_reply_that_is_cut_at_any_byte_is_no_reply(make_model: MakeModel, dialect: Dialect) -> None:
    """SES-13, F-18: half of a reply never ends well, however much of it came and whatever way it broke off."""
    arguments = '{"path":"a","content":"xyz"}'
    said: tuple[ModelEvent, ...] = (
        CallStarted(0, "c", "write"),
        *(CallDelta(0, arguments[at : at + 14]) for at in range(0, len(arguments), 14)),
    )
    events = (*said, ReplyEnd(StopReason.CALLS))
    pieces = dialect.stream(events)
    async with served(make_model, dialect, 20 * HOLDS) as (server, model):
        for chunked in (True, False):
            answer = event_stream(pieces, chunked=chunked)
            data = b"".join(answer)
            enough = len(b"".join(answer[: len(said) + 1]))
            # Without chunks the head is the same, and a body that is cut looks like one that is over: enough to see that.
            for cut in range(len(data)) if chunked else range(len(answer[0]), len(data), 5):
                server.answers(ServerAnswer(pieces=(data[:cut],), then="reset" if cut % 8 == 7 else "close"))
                heard = await hear(model)
                if heard.complete and cut > enough:
                    same_reply(heard, events, "SES-13")
                    continue
                assert not heard.complete, (
                    f"SES-13: cut after {cut} bytes, the client still told of an end: {data[:cut]!r}"
                )
                assert _error(heard).connection, (
                    f"SES-11: cut after {cut} bytes, and no failed connection: {heard.error}"
                )
        server.answers(ServerAnswer(pieces=event_stream(pieces)))
        same_reply(await hear(model), events, "SES-13")


async def an_answer_that_is_none_is_an_error(make_model: MakeModel, dialect: Dialect) -> None:
    """SES-11: nonsense, an empty body, a page: a ModelError each, and no end."""
    nonsense: tuple[tuple[bytes, ...], ...] = (
        event_stream([b"data: {not json\n\n"]),
        event_stream([b"data: [1, 2]\n\n"]),
        event_stream([b"data: \xff\xfe\n\n"]),
        event_stream([]),
        event_stream([b"\0" * 100]),
        (whole(200, b"<html>Welcome</html>", {"content-type": "text/html"}),),
        (whole(200, b""),),
        (whole(200, b"[]"),),
        (whole(200, b"{}"),),
        (whole(204, b""),),
        (b"SSH-2.0-OpenSSH_9.2\r\n",),
    )
    async with served(make_model, dialect) as (server, model):
        for pieces in nonsense:
            server.answers(ServerAnswer(pieces=pieces))
            _error(await hear(model))


async def no_key_is_ever_in_a_message(make_model: MakeModel, dialect: Dialect) -> None:
    """Keys: a server that echoes headers, in a body, a header or a stream, gives nothing away, nor does a repr."""

    def echoes(request: HeardRequest) -> str:
        return json.dumps(dict(request.headers))

    def as_status(request: HeardRequest) -> ServerAnswer:
        body = dialect.error_body(401, echoes(request))
        return ServerAnswer(pieces=(whole(401, body, {"Retry-After": KEY, "X-Echo": KEY}),))

    def as_text(request: HeardRequest) -> ServerAnswer:
        return ServerAnswer(pieces=(whole(500, echoes(request).encode(), {"content-type": "text/plain"}),))

    def as_error(request: HeardRequest) -> ServerAnswer:
        return ServerAnswer(pieces=event_stream([dialect.error_in_stream(500, echoes(request))]))

    def as_nonsense(request: HeardRequest) -> ServerAnswer:
        return ServerAnswer(pieces=event_stream([b"data: " + KEY.encode() + b"\n\n"]))

    def as_long_nonsense(request: HeardRequest) -> ServerAnswer:
        return ServerAnswer(pieces=event_stream([b"data: " + (b"x" * 80 + KEY.encode()) * 100 + b"\n\n"]))

    def as_redirect(request: HeardRequest) -> ServerAnswer:
        return ServerAnswer(pieces=(whole(307, b"", {"location": f"http://127.0.0.1:9/?key={KEY}"}),))

    async with served(make_model, dialect) as (server, model):
        for answer in (as_status, as_text, as_error, as_nonsense, as_long_nonsense, as_redirect):
            server.answers(answer)
            error = _error(await hear(model))
            shown = [str(error), repr(error), str(error.retry_after), *traceback.format_exception(error)]
            seen: BaseException | None = error
            while seen is not None:
                shown.append(f"{seen} {vars(seen)}")
                seen = seen.__cause__ or seen.__context__
            assert not any(KEY[:12] in text for text in shown), f"Keys: {answer.__name__}: an error has the key in it"
        assert KEY not in f"{model!r} {model}", "Keys: the repr of the client has the key in it"


def _error(heard: Heard) -> ModelError:
    assert not heard.complete, f"SES-13: the request failed, and an end was told: {heard.events}"
    assert heard.error is not None, f"Model: no ModelError was raised; what came was {heard.events}"
    assert str(heard.error).strip(), "Model: the error has no words"
    return heard.error

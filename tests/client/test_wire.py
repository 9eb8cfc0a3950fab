"""What a Client makes of a server that answers badly, slowly, or not at all."""

from __future__ import annotations

import gc
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

from concorde_trio import Client
from concorde_trio.client import wire
from concorde_trio.errors import RequestRefused, ServerGone, ServerSilent, UsageError

pytestmark = pytest.mark.slow

Answer = Callable[[trio.SocketStream], Awaitable[None]]


@asynccontextmanager
async def listening(answer: Answer) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that reads the head of a request and then does what ``answer`` does with the connection."""
    heard: list[bytes] = []

    async def handle(stream: trio.SocketStream) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = await stream.receive_some(65536)
            if not piece:
                return
            head += piece
        heard.append(head)
        try:
            await answer(stream)
        except trio.BrokenResourceError:
            pass
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, handle, 0, host="127.0.0.1"))
        yield f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}", heard
        nursery.cancel_scope.cancel()


def saying(data: bytes) -> Answer:
    """An answer that is these bytes, and the end of the connection."""

    async def answer(stream: trio.SocketStream) -> None:
        await stream.send_all(data)

    return answer


def http(status: int, body: object, kind: str = "application/json") -> bytes:
    """A whole answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n\r\n"
    return head.encode() + data


@pytest.mark.parametrize("kept", [0, 10, 70, 90])
async def test_an_answer_that_breaks_off_says_whether_it_can_be_asked_again(kept: int) -> None:
    """SIG-1: a look has changed nothing; a change may have been taken."""
    whole = http(200, {"id": "x", "signals": [], "next": None})
    async with listening(saying(whole[:kept])) as (url, _), Client(url) as client:
        with pytest.raises(ServerGone) as look:
            await client.signals().first(1)
        with pytest.raises(ServerGone) as change:
            await client.emit("k")
    assert (look.value.unheard, change.value.unheard) == (True, False)
    assert url in str(look.value) and "went away" in str(look.value)


async def test_where_nobody_listens_nothing_was_heard() -> None:
    """SIG-1: so that it can be done in another way."""
    async with listening(saying(b"")) as (url, _):
        pass
    async with Client(url) as client:
        with pytest.raises(ServerGone, match="cannot reach the server at http") as caught:
            await client.emit("k")
    assert caught.value.unheard


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    """SRV-5: after the time that the client was given."""

    async def silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with listening(silent) as (url, _), Client(url, timeout=0.05) as client:
        with pytest.raises(ServerSilent, match="has not answered for 0.05 seconds"):
            await client.ready()


@pytest.mark.parametrize(
    "said",
    [
        http(200, b"<html>", "text/html"),
        http(200, b""),
        http(200, []),
        http(200, {"other": 1}),
        http(500, b"<html>", "text/html"),
        http(302, b""),
        http(204, b""),
    ],
)
async def test_a_stranger_on_the_port_is_told_of_in_a_sentence(said: bytes) -> None:
    """SRV-5: what answers may be anything; no redirect is followed."""
    async with listening(saying(said)) as (url, heard), Client(url) as client:
        with pytest.raises(RequestRefused) as caught:
            await client.signals().first(1)
    assert url in str(caught.value) and caught.value.problem in (None, {})
    assert len(heard) == 1


async def test_an_answer_without_end_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-5: bounded, and nothing of it is left open."""
    monkeypatch.setattr(wire, "LARGEST_ANSWER", 1_000_000)

    async def pour(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
        while True:
            await stream.send_all(b" " * 65536)

    async with listening(pour) as (url, _), Client(url) as client:
        with pytest.raises(RequestRefused, match="larger than 1,000,000 bytes"):
            await client.ready()
        gc.collect()


async def test_no_proxy_and_no_login_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-6: the token goes to the server alone."""
    async with listening(saying(http(500, {}))) as (proxy, at_proxy):
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy)
        token = "operator-token-0123456789"
        async with (
            listening(saying(http(200, {"status": "ready"}))) as (url, heard),
            Client(url, token=token) as client,
        ):
            await client.ready()
    assert at_proxy == []
    assert b"authorization: bearer operator-token-0123456789\r\n" in heard[0].lower()


@pytest.mark.parametrize(
    ("said", "end"),
    [(b"event: a\ndata: 1\n\n", False), (b"event: a\ndata: 1\n\nevent: b\ndata: ", False), (b"0\r\n\r\n", True)],
)
async def test_a_stream_that_breaks_off_is_no_end_of_it(said: bytes, end: bool) -> None:
    """SRV-4: only what the server ended has ended."""

    async def stream_events(stream: trio.SocketStream) -> None:
        await stream.send_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        await stream.send_all(said if end else b"%x\r\n%s\r\n" % (len(said), said))

    async with listening(stream_events) as (url, _), Client(url) as client, client.watch("ann") as events:
        if end:
            assert [event async for event in events] == []
        else:
            assert (await anext(events)).data == 1
            with pytest.raises(ServerGone):
                await anext(events)


async def test_a_refused_stream_is_a_refusal() -> None:
    """SRV-5: with the server's sentence."""
    problem = {"status": 409, "title": "Conflict", "detail": "this server keeps no sessions"}
    async with listening(saying(http(409, problem, "application/problem+json"))) as (url, _), Client(url) as client:
        with pytest.raises(RequestRefused, match="keeps no sessions"):
            async with client.watch("ann"):
                raise AssertionError("it was entered")


async def test_what_is_left_or_cancelled_in_the_middle_leaves_nothing_open() -> None:
    """SRV-4: a break, an exception or a cancel ends the reading as a whole; warnings are errors here."""

    async def drip(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        while True:
            await stream.send_all(b"event: a\ndata: 1\n\n" * 100)
            await trio.sleep(0.001)

    async with listening(drip) as (url, _), Client(url) as client:
        for _ in range(3):
            async with client.watch("ann") as events:
                async for event in events:
                    assert event.name == "a"
                    break
            with trio.move_on_after(0.05) as scope:
                async with client.watch("ann") as events:
                    async for _event in events:
                        pass
            assert scope.cancelled_caught
        gc.collect()
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:80",
        "http://[::1",
        "http://127.0.0.1:99999",
        "ftp://localhost",
        "http://",
        "http://localhost/?a=1",
        "http://h#x",
        "",
    ],
)
async def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    """SRV-5: with what one looks like."""
    with pytest.raises(UsageError, match="http://HOST:PORT"):
        Client(url)


def test_an_address_with_a_login_is_refused_without_repeating_it() -> None:
    """SRV-6: nothing secret in an error."""
    with pytest.raises(UsageError, match="no login") as caught:
        Client("http://ann:secret@127.0.0.1:1")
    assert "secret" not in str(caught.value)


async def test_what_no_request_can_carry_is_refused_before_anything_is_sent() -> None:
    """SRV-5, SRV-6: it is no server that went away, and the sentence has no token."""
    for token in ("secret\ntoken", "secret ", "\ud800secret"):
        with pytest.raises(UsageError, match="authorization header") as caught:
            Client("http://127.0.0.1:1", token=token)
        assert "secret" not in str(caught.value)
    async with Client("http://127.0.0.1:1") as client:
        for key in ("a\nb", " a", "\ud800"):
            with pytest.raises(UsageError, match="idempotency-key header"):
                await client.emit("kind", key=key)
        with pytest.raises(UsageError, match="concorde-run-tag header"):
            await client.current_run("a\rb")
        with pytest.raises(UsageError, match="must be JSON"):
            await client.emit("kind", object())


async def test_a_client_is_used_while_it_is_entered() -> None:
    """SRV-5: a sentence, not a fault of a library."""
    client = Client("http://localhost:1")
    with pytest.raises(UsageError, match="async with Client"):
        await client.ready()
    async with client:
        with pytest.raises(UsageError, match="once"):
            await client.__aenter__()
    with pytest.raises((UsageError, ServerGone)):
        await client.ready()
    async with Client("http://localhost:1") as other:
        with pytest.raises(UsageError, match="at least 1 character"):
            await other.signal("")

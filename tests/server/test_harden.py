"""The middleware by itself: what an app is told, and what a client gets, whatever server is around it."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio.server.harden import Harden
from concorde_trio.server.heads import RequestLimits, check_head

SCOPE = {"type": "http", "http_version": "1.1", "raw_path": b"/", "path": "/", "query_string": b"", "headers": []}
DISCONNECT = {"type": "http.disconnect"}


def body(data: bytes, *, more: bool = False) -> dict[str, Any]:
    """A piece of a request's body."""
    return {"type": "http.request", "body": data, "more_body": more}


class Outside:
    """The server's side of one request."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.into, self._out = trio.open_memory_channel[dict[str, Any]](100)
        for message in messages:
            self.into.send_nowait(message)
        self.sent: list[dict[str, Any]] = []
        self.closing = trio.Event()

    async def send(self, message: dict[str, Any]) -> None:
        """What the client gets. As in Hypercorn, the end of an answer is told as a disconnect."""
        self.sent.append(dict(message))
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.into.send_nowait(DISCONNECT)

    async def serve(self, app: Any, **limits: Any) -> None:
        """Answer the request by ``app``."""
        harden = Harden(app, closing=self.closing, limits=RequestLimits(**limits))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(harden.watch)
            await harden(dict(SCOPE), self._out.receive, self.send)
            nursery.cancel_scope.cancel()

    @property
    def status(self) -> int:
        """The status of the answer."""
        (start,) = (message for message in self.sent if message["type"] == "http.response.start")
        return int(start["status"])


async def start(send: Any, status: int = 200, **headers: str) -> None:
    """Begin an answer."""
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})


async def test_an_app_that_has_answered_is_not_told_that_its_client_is_gone() -> None:
    """SRV-5: Quart-Trio would cancel what the server still does with the connection."""
    heard: list[str] = []
    finished = trio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def listen() -> None:
            while True:
                heard.append((await receive())["type"])
                if heard[-1] == "http.disconnect":
                    nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            await trio.testing.wait_all_tasks_blocked()
            await start(send)
            await send({"type": "http.response.body", "body": b"done"})
            await trio.testing.wait_all_tasks_blocked()
            finished.set()
            nursery.cancel_scope.cancel()

    await Outside(body(b"hello")).serve(app)
    assert heard == ["http.request"]
    assert finished.is_set()


async def test_an_app_that_has_not_answered_is_told_that_its_client_is_gone() -> None:
    """SRV-1: so that Quart cancels the handler; and nothing is sent to nobody."""
    heard: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while not heard or heard[-1] != "http.disconnect":
            heard.append((await receive())["type"])

    outside = Outside(body(b"half", more=True), DISCONNECT)
    await outside.serve(app)
    assert heard == ["http.request", "http.disconnect"]
    assert outside.sent == []


async def test_an_app_never_takes_a_cut_body_for_the_whole() -> None:
    """SRV-5: once it has begun to answer it can't be a 413 any more, so that its client is gone for it."""
    got = b""
    ended = None

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal got, ended
        await start(send)
        while ended is None:
            message = await receive()
            got += message.get("body", b"")
            if not message.get("more_body"):
                ended = message["type"]

    await Outside(body(b"x" * 60, more=True), body(b"x" * 60)).serve(app, max_body=100)
    assert ended == "http.disconnect"
    assert len(got) == 60


async def test_a_body_in_many_small_pieces_is_counted_as_a_whole() -> None:
    """SRV-5: a 413 with a problem document, and the app is cancelled."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while True:
            await receive()

    outside = Outside(*[body(b"x" * 20, more=True)] * 10, body(b""))
    await outside.serve(app, max_body=100)
    assert outside.status == 413
    assert b"application/problem+json" in dict(outside.sent[0]["headers"]).values()


@pytest.mark.parametrize("begins", [False, True])
async def test_an_app_that_fails_is_a_500_or_a_cut_answer(begins: bool, caplog: pytest.LogCaptureFixture) -> None:
    """SRV-5: what it said of itself is in no answer and no log."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if begins:
            await start(send)
        raise ValueError("secret")

    outside = Outside(body(b""))
    await outside.serve(app)
    assert "secret" not in str(outside.sent)
    assert "secret" not in caplog.text
    assert "ValueError at" in caplog.text
    assert outside.status == (200 if begins else 500)
    assert len(outside.sent) == (1 if begins else 2)


async def test_an_app_that_says_nothing_is_a_500() -> None:
    """SRV-5: a request gets an answer of its own."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()

    outside = Outside(body(b""))
    await outside.serve(app)
    assert outside.status == 500


@pytest.mark.parametrize(
    ("content_type", "ends"),
    [("text/event-stream", True), ("text/event-stream; charset=utf-8", True), ("text/html", False)],
)
async def test_at_the_stop_event_streams_end_and_others_are_cut(
    content_type: str, ends: bool, autojump_clock: trio.testing.MockClock
) -> None:
    """SRV-4: a cut page must not look like a whole one."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await start(send, content_type=content_type)
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        outside.closing.set()
        await trio.sleep_forever()

    outside = Outside(body(b""))
    await outside.serve(app, grace=0.4)
    assert trio.current_time() == pytest.approx(0.4)
    assert (outside.sent[-1] == {"type": "http.response.body", "body": b""}) == ends


async def test_an_unread_body_is_waited_for_in_bounded_time(autojump_clock: trio.testing.MockClock) -> None:
    """SRV-5: the answer is given at once, its end when the body has ended or time is up."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await start(send)
        await send({"type": "http.response.body", "body": b"enough"})

    outside = Outside(body(b"half", more=True))
    await outside.serve(app, drain_time=5)
    assert trio.current_time() == pytest.approx(5)
    assert [message.get("body") for message in outside.sent] == [None, b"enough", b""]


async def test_a_tag_is_masked_in_what_the_middleware_itself_says() -> None:
    """TAG-4: its problem documents are answers, too."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise NotImplementedError

    outside = Outside(body(b""))
    harden = Harden(app, closing=outside.closing, mask=lambda text: text.replace("slash", "[masked]"))
    await harden({**SCOPE, "raw_path": b"no-slash"}, outside._out.receive, outside.send)
    assert outside.status == 400
    assert b"starts with a [masked]" in outside.sent[1]["body"]


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"http://localhost/a%20b", "/a b"),
        (b"HTTPS://localhost", "/"),
        (b"http://[::1/x", "/x"),
        (b"http:///x", "/x"),
        (b"http://user@host:1/x//y", "/x//y"),
    ],
)
def test_a_target_in_absolute_form_is_its_path(target: bytes, path: str) -> None:
    """SRV-5: HTTP asks servers to take it."""
    scope: dict[str, Any] = {**SCOPE, "raw_path": target, "path": target.decode()}
    assert check_head(scope, RequestLimits()) is None
    assert scope["path"] == path

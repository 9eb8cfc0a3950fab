"""The server stops in about a second, whatever its clients do; and what was started is stopped."""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import AsyncIterator
from functools import partial

import pytest
import trio
from quart import Response, websocket
from quart_trio import QuartTrio

from concorde_trio.errors import CannotServe
from concorde_trio.server.app import server_closing
from concorde_trio.server.connection import ConnectionLimits
from concorde_trio.server.serving import ServerLimits, listen, serve
from tests.server.house import Wire, request, wire

pytestmark = pytest.mark.slow

HANDSHAKE = request(
    "/talk",
    "connection: upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
)

ABOUT_A_SECOND = 3.0
"""The bound is 1 s by design (0.4 for requests, 0.5 for writes); a busy machine may take its time."""


class Served:
    """An app of the test's on a free port."""

    def __init__(self) -> None:
        self.app = QuartTrio("theirs")
        self.app.config["RESPONSE_TIMEOUT"] = None
        self.closing = trio.Event()
        self.stopped: list[str] = []
        self.cancelled: list[str] = []
        self.url = ""

        @self.app.after_serving
        async def after() -> None:
            self.stopped.append("after_serving")

        @self.app.get("/")
        async def root() -> str:
            return "hello"

        @self.app.get("/slow")
        async def slow() -> str:
            try:
                await trio.sleep(0.2)
            except trio.Cancelled:
                self.cancelled.append("slow")
                raise
            return "slow but sure"

        @self.app.route("/never", methods=["GET", "POST"])
        async def never() -> str:
            await trio.sleep_forever()
            raise AssertionError

        @self.app.get("/flood")
        async def flood() -> Response:
            async def pour() -> AsyncIterator[bytes]:
                while True:
                    yield b"x" * 65536

            return Response(pour(), mimetype="application/octet-stream")

        @self.app.get("/events")
        async def events() -> Response:
            async def stream() -> AsyncIterator[bytes]:
                for number in range(1_000_000):
                    yield b"data: %d\n\n" % number
                    await trio.sleep(0.05)

            return Response(stream(), mimetype="text/event-stream")

        @self.app.get("/polite")
        async def polite() -> Response:
            closing = server_closing()

            async def stream() -> AsyncIterator[bytes]:
                yield b"data: hello\n\n"
                await closing.wait()
                yield b"data: bye\n\n"

            return Response(stream(), mimetype="text/event-stream")

        @self.app.websocket("/talk")
        async def talk() -> None:
            while True:
                await websocket.send(await websocket.receive())

    async def run(self, nursery: trio.Nursery, **how: object) -> None:
        """Start serving in ``nursery``."""
        self.app.extensions["concorde_trio"] = self.closing
        self.url = await nursery.start(partial(serve, self.app, closing=self.closing, **how))  # type: ignore[arg-type]


async def stop(served: Served, over: trio.Event) -> float:
    """Stop, and how long it took; ``over`` is set by who waits for the server."""
    began = trio.current_time()
    served.closing.set()
    with trio.fail_after(ABOUT_A_SECOND):
        await over.wait()
    assert served.stopped == ["after_serving"]
    return trio.current_time() - began


@pytest.fixture
async def stage() -> AsyncIterator[tuple[Served, trio.Event]]:
    """A served app, and an event for its end."""
    served, over = Served(), trio.Event()
    async with trio.open_nursery() as outer:
        ready = trio.Event()

        async def live() -> None:
            async with trio.open_nursery() as nursery:
                # So late an end by force helps nobody here: each bound has to do its own work.
                await served.run(nursery, limits=ServerLimits(stop=30))
                ready.set()
            over.set()

        outer.start_soon(live)
        await ready.wait()
        yield served, over
        served.closing.set()


Stage = tuple[Served, trio.Event]


async def opened(connection: Wire, data: bytes, until: bytes = b"") -> None:
    """Send ``data`` and read until ``until`` has come."""
    await connection.send(data)
    got = b""
    while until not in got:
        got += await connection.stream.receive_some(65536)


async def test_a_server_nobody_talks_to_stops_at_once(stage: Stage) -> None:
    """SRV-1: after_serving runs."""
    assert await stop(*stage) < ABOUT_A_SECOND


async def test_idle_connections_do_not_hold_up_a_stop(stage: Stage) -> None:
    """SRV-1: neither fresh ones nor kept-alive ones."""
    served, _ = stage
    async with wire(served.url) as fresh, wire(served.url) as kept:
        await opened(kept, request("/"), b"hello")
        await stop(*stage)
        assert await fresh.answer() is None
        assert await kept.answer() is None


@pytest.mark.parametrize("cut", [1, 20, 45])
async def test_half_sent_heads_do_not_hold_up_a_stop(stage: Stage, cut: int) -> None:
    """SRV-1: a request of which only a part has come."""
    served, _ = stage
    async with wire(served.url) as connection:
        await connection.send(request("/")[:cut])
        await stop(*stage)


async def test_a_half_sent_body_is_answered_that_the_server_stops(stage: Stage) -> None:
    """SRV-5: 503, and never a 500."""
    served, _ = stage
    async with wire(served.url) as connection:
        await opened(
            connection, request("/never", "content-length: 100", "expect: 100-continue", method="POST"), b"100"
        )
        await connection.send(b"half")
        await stop(*stage)
        answer = await connection.answer()
        assert answer is not None
        assert (answer.status, answer.headers["content-type"]) == (503, "application/problem+json")
        assert answer.headers["retry-after"]


async def test_a_request_in_flight_is_answered_before_the_stop(stage: Stage) -> None:
    """SRV-1: what ends soon may end."""
    served, _ = stage
    async with wire(served.url) as connection:
        await connection.send(request("/slow"))
        await trio.sleep(0.05)
        await stop(*stage)
        answer = await connection.answer()
        assert answer is not None
        assert answer.body == b"slow but sure"


async def test_a_handler_that_never_ends_is_cancelled(stage: Stage) -> None:
    """SRV-5: its client gets a 503."""
    served, _ = stage
    async with wire(served.url) as connection:
        await opened(connection, request("/never", "expect: 100-continue", "content-length: 1"), b"100")
        await stop(*stage)
        answer = await connection.answer()
        assert answer is not None
        assert answer.status == 503


@pytest.mark.parametrize("clients", [1, 20])
async def test_clients_that_stop_reading_do_not_hold_up_a_stop(stage: Stage, clients: int) -> None:
    """SRV-1: at stop, writes have half a second, then the socket is aborted."""
    served, _ = stage
    async with trio.open_nursery() as nursery:
        ready = [trio.Event() for _ in range(clients)]

        async def hang(mine: trio.Event) -> None:
            async with wire(served.url) as connection:
                await opened(connection, request("/flood"), b"xxx")
                mine.set()
                await trio.sleep_forever()

        for one in ready:
            nursery.start_soon(hang, one)
        for one in ready:
            await one.wait()
        await trio.sleep(0.2)
        await stop(*stage)
        nursery.cancel_scope.cancel()


async def test_an_event_stream_ends_as_a_whole(stage: Stage) -> None:
    """SRV-4: its client sees the end of a stream, not a broken connection."""
    served, _ = stage
    async with wire(served.url) as connection, trio.open_nursery() as nursery:
        await connection.send(request("/events"))
        await trio.sleep(0.2)
        nursery.start_soon(stop, *stage)
        answer = await connection.answer()
        assert answer is not None
        assert answer.body.startswith(b"data: 0\n\n")
        assert await connection.rest() == b""


async def test_a_stream_that_watches_the_stop_says_its_last_word(stage: Stage) -> None:
    """SRV-4: server_closing() is set when the stop begins."""
    served, _ = stage
    async with wire(served.url) as connection, trio.open_nursery() as nursery:
        await connection.send(request("/polite"))
        await trio.sleep(0.1)
        nursery.start_soon(stop, *stage)
        answer = await connection.answer()
        assert answer is not None
        assert answer.body == b"data: hello\n\ndata: bye\n\n"


async def test_a_websocket_is_told_that_the_server_goes_away(stage: Stage) -> None:
    """SRV-1: close code 1001."""
    served, _ = stage
    async with wire(served.url) as connection:
        await opened(connection, HANDSHAKE, b"\r\n\r\n")
        await stop(*stage)
        assert (1001).to_bytes(2, "big") in await connection.rest()


async def test_an_upload_that_goes_on_and_on_does_not_hold_up_a_stop(stage: Stage) -> None:
    """SRV-1: a client that keeps sending to a handler that does not read."""
    served, _ = stage
    async with wire(served.url) as connection, trio.open_nursery() as nursery:
        await connection.send(request("/never", "transfer-encoding: chunked", method="POST"))

        async def drip() -> None:
            while True:
                await connection.send(b"1\r\nx\r\n")
                await trio.sleep(0.01)

        nursery.start_soon(drip)
        await trio.sleep(0.1)
        await stop(*stage)
        nursery.cancel_scope.cancel()


async def test_what_keeps_to_no_bound_is_aborted() -> None:
    """SRV-1: the last resort of a stop, here for writes that were given far too long."""
    served = Served()
    limits = ServerLimits(stop=0.2, connection=ConnectionLimits(stop_write=60))
    with trio.fail_after(ABOUT_A_SECOND):
        async with trio.open_nursery() as nursery:
            await served.run(nursery, limits=limits)
            async with wire(served.url) as connection:
                await opened(connection, request("/flood"), b"xxx")
                await trio.sleep(0.1)
                served.closing.set()
                await trio.sleep(0.5)
    assert served.stopped == ["after_serving"]


async def test_a_cancelled_server_stops_its_app_too() -> None:
    """SRV-1: after_serving runs when the nursery around the server is cancelled."""
    served = Served()
    with trio.fail_after(ABOUT_A_SECOND):
        async with trio.open_nursery() as nursery:
            await served.run(nursery)
            async with wire(served.url) as connection:
                await opened(connection, request("/flood"), b"xxx")
                await trio.sleep(0.1)
                nursery.cancel_scope.cancel()
    assert served.stopped == ["after_serving"]
    assert served.closing.is_set()


async def test_nobody_is_accepted_once_the_stop_began(stage: Stage) -> None:
    """SRV-1: the port is free again."""
    served, _ = stage
    await stop(*stage)
    host, port = served.url.removeprefix("http://").split(":")
    with pytest.raises(OSError, match="."):
        await trio.open_tcp_stream(host, int(port))
    again = await listen(host, int(port))
    await again.aclose()


async def test_a_kept_alive_connection_is_closed_when_it_was_idle_for_long() -> None:
    """SRV-5: idle connections do not pile up."""
    served = Served()
    async with trio.open_nursery() as nursery:
        await served.run(nursery, limits=ServerLimits(connection=ConnectionLimits(idle=0.1)))
        async with wire(served.url) as kept, wire(served.url) as half:
            await half.send(b"GET / HT")
            await opened(kept, request("/"), b"hello")
            with trio.fail_after(ABOUT_A_SECOND):
                assert await kept.answer() is None
                assert await half.answer() is None
        served.closing.set()


async def test_a_client_that_reads_nothing_is_cut_off_while_serving() -> None:
    """SRV-5: a write has its bound; others are served meanwhile."""
    served = Served()
    async with trio.open_nursery() as nursery:
        await served.run(nursery, limits=ServerLimits(connection=ConnectionLimits(write=0.2)))
        async with wire(served.url) as deaf, wire(served.url) as other:
            await opened(deaf, request("/flood"), b"xxx")
            await trio.sleep(0.6)
            await opened(other, request("/"), b"hello")
            with trio.fail_after(10):
                rest = await deaf.rest()
            assert len(rest) < 100_000_000
        served.closing.set()


async def test_a_handler_is_cancelled_when_its_client_hangs_up() -> None:
    """SRV-1: nobody waits for the answer any more."""
    served = Served()
    started, cancelled = trio.Event(), trio.Event()

    @served.app.get("/watched")
    async def watched() -> str:
        started.set()
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    async with trio.open_nursery() as nursery:
        await served.run(nursery)
        async with wire(served.url) as connection:
            await connection.send(request("/watched"))
            await started.wait()
        with trio.fail_after(ABOUT_A_SECOND):
            await cancelled.wait()
        served.closing.set()


async def test_a_websocket_handler_that_never_listens_is_cancelled_when_its_client_is_gone() -> None:
    """SRV-1: although the news of it has no place in its full inbox."""
    served = Served()
    cancelled = trio.Event()

    @served.app.websocket("/pour")
    async def pour() -> None:
        try:
            while True:
                await websocket.send("x" * 1000)
                await trio.sleep(0.01)
        finally:
            cancelled.set()

    async with trio.open_nursery() as nursery:
        await served.run(nursery)
        async with wire(served.url) as connection:
            await connection.send(HANDSHAKE.replace(b"/talk", b"/pour"))
            await connection.until(b"xxx")
            frame = b"\x81\x82\x00\x00\x00\x00hi"
            with trio.move_on_after(1):
                await connection.send(frame * 10_000)
            connection.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with trio.fail_after(ABOUT_A_SECOND):
            await cancelled.wait()
        served.closing.set()


async def test_an_app_that_cannot_start_is_one_clear_error() -> None:
    """SRV-1: with what its before_serving function said; the port is free again."""
    app = QuartTrio("theirs")

    @app.before_serving
    async def before() -> None:
        raise ValueError("no money left")

    with pytest.raises(ExceptionGroup) as caught:
        await serve(app)
    (error,) = caught.value.exceptions
    assert isinstance(error, CannotServe)
    assert "no money left" in str(error)


async def test_a_task_of_the_app_that_fails_stops_the_server_loudly() -> None:
    """SRV-1: it is not only logged, and after_serving runs."""
    served = Served()

    @served.app.before_serving
    async def before() -> None:
        async def fail() -> None:
            await trio.sleep(0.05)
            raise ValueError("the app's own task")

        served.app.nursery.start_soon(fail)

    with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="own task"), flatten_subgroups=True):
        async with trio.open_nursery() as nursery:
            await served.run(nursery)
    assert served.stopped == ["after_serving"]


async def test_after_serving_that_hangs_is_bounded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """SRV-1: a stop ends, and the log says what did not."""
    from concorde_trio.server import serving

    monkeypatch.setattr(serving, "Lifespan", partial(serving.Lifespan, stop_time=0.1))
    served = Served()
    served.app.after_serving(trio.sleep_forever)
    with caplog.at_level(logging.ERROR), trio.fail_after(ABOUT_A_SECOND):
        async with trio.open_nursery() as nursery:
            await served.run(nursery)
            served.closing.set()
    assert "after_serving functions or tasks hang" in caplog.text

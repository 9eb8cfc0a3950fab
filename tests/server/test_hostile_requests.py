"""What no HTTP library would send: it is answered or cut off, never with a 500, and the next client is served."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from quart import Response
from quart_trio import QuartTrio

from concorde_trio.signals.store import SignalStore
from concorde_trio.stores.memory import MemoryStore
from concorde_trio.stores.sqlite import SqliteStore
from tests.server.house import OPERATOR, Answer, House, ask, open_house, request, wire

pytestmark = pytest.mark.slow

AUTH = f"authorization: Bearer {OPERATOR}"


@pytest.fixture
async def server(house: House, caplog: pytest.LogCaptureFixture) -> AsyncIterator[str]:
    """The URL of a server that, after the test, still serves and has logged no fault of its own."""
    yield house.url
    assert (await house.agent.get("/healthz")).status_code == 200
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def checked(answer: Answer | None) -> int | None:
    """The status; an error must be a problem document."""
    if answer is None:
        return None
    assert answer.status < 500 or answer.status in (501, 505)
    if answer.status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json["status"] == answer.status
        assert answer.json["detail"]
    return answer.status


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x00\x01\x02\x03\r\n\r\n", 400),
        (b"hello\r\n\r\n", 400),
        (b"GET /healthz\r\n\r\n", 400),
        (b"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n", 505),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n: no name\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\ncontent-length: -1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
        (b"POST /signals HTTP/1.1\r\nHost: localhost\r\ntransfer-encoding: gzip\r\n\r\n", 501),
        (b"GET ?x HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET x:y HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost:1\r\n\r\n", 400),
        (b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        (b"GET http://localhost HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        (b"GET http://[::1/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        (b"GET /healthz HTTP/1.0\r\n\r\n", 200),
        (b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n", 200),
        (b"HEAD /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n", 200),
        (b"BREW /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"GET /%00%ff%ed%a0%80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET //healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        (b"GET /healthz HTTP/1.1\r\nHost: ..\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: " + b"a" * 64 + b"\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: local host\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: localh\xf6st\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: [localhost\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: xn--\r\n\r\n", 421),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost:99999\r\n\r\n", 200),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\ncookie: \xff\xfe=;;=\r\n\r\n", 200),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nrange: bytes=x\r\nif-modified-since: x\r\n\r\n", 200),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nexpect: 200-ok\r\n\r\n", 200),
    ],
)
async def test_a_strange_head_gets_its_status(server: str, data: bytes, status: int) -> None:
    """SRV-5: nothing a client sends gives a 500."""
    answer = await ask(server, data)
    assert answer is not None
    assert checked(answer) == status


@pytest.mark.parametrize(
    "upgrade",
    [
        ("connection: upgrade, http2-settings", "upgrade: h2c", "http2-settings: AAMAAABkAAQAAP__"),
        ("connection: upgrade", "upgrade: h2c", "http2-settings: !!not base64!!"),
        ("connection: upgrade", "upgrade: h2c"),
        ("connection: upgrade", "upgrade: something/9"),
    ],
)
async def test_an_upgrade_that_is_not_taken_up_is_answered_in_http_1(server: str, upgrade: tuple[str, ...]) -> None:
    """SRV-5: a client that offers HTTP/2, as Java's does at first, gets its answer."""
    answer = await ask(server, request("/healthz", *upgrade))
    assert answer is not None
    assert answer.status == 200


@pytest.mark.parametrize(
    "lines",
    [
        ("sec-websocket-key: x",),
        ("sec-websocket-version: 13", "sec-websocket-key: x", "sec-websocket-extensions: \xff\xff"),
        ("sec-websocket-version: 13", "sec-websocket-key: x", "sec-websocket-protocol: \xff"),
        ("sec-websocket-version: 13", "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA=="),
        ("sec-websocket-version: 13", "sec-websocket-key: x", "content-length: 5"),
    ],
)
async def test_a_websocket_that_nobody_serves_is_refused(server: str, lines: tuple[str, ...]) -> None:
    """SRV-5: a bad handshake, or one for a path without a websocket, gets a client error."""
    data = request("/healthz", "connection: upgrade", "upgrade: websocket", *lines)
    answer = await ask(server, data)
    assert answer is not None
    assert 400 <= answer.status < 500


@pytest.mark.parametrize("size", [20_000, 40_000, 200_000])
async def test_a_head_beyond_its_bound_is_refused_and_one_below_it_is_not(server: str, size: int) -> None:
    """SRV-5: 32 KiB of head, whether they come in one piece or not."""
    for pieces in (1, 20):
        data = request("/healthz", "x-large: " + "x" * size)
        async with wire(server) as connection:
            for start in range(0, len(data), len(data) // pieces + 1):
                await connection.send(data[start : start + len(data) // pieces + 1])
                await trio.lowlevel.checkpoint()
            assert checked(await connection.answer()) == (200 if size < 32_000 else 431)


async def test_many_headers_are_bounded_as_one_large_one_is(server: str) -> None:
    """SRV-5: the bound is on the whole head."""
    assert checked(await ask(server, request("/healthz", *[f"x-{n}: y" for n in range(5000)]))) == 431


async def test_a_body_beyond_the_bound_is_refused_whether_announced_or_not(server: str) -> None:
    """SRV-5: 413 by Content-Length before the body, and by counting when it comes in chunks."""
    announced = request("/signals", AUTH, "content-type: application/json", "content-length: 200000000", method="POST")
    assert checked(await ask(server, announced)) == 413
    chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    chunked = request("/signals", AUTH, "content-type: application/json", "transfer-encoding: chunked", method="POST")
    async with wire(server) as connection, trio.open_nursery() as nursery:

        async def pour() -> None:
            await connection.send(chunked)
            for _ in range(2000):
                await connection.send(chunk)

        nursery.start_soon(pour)
        answer = await connection.answer()
        assert checked(answer) == 413
        assert answer is not None
        assert answer.headers["connection"] == "close"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "data",
    [
        request("/signals", AUTH, "content-length: 6000000", method="POST", body=b"x" * 6_000_000),
        request("/signals", AUTH, "content-length: 30000000", method="POST", body=b"x" * 30_000_000),
        request("/signals", "content-length: 30000000", method="POST", body=b"x" * 30_000_000),
        b"garbage\r\n\r\n" + b"x" * 3_000_000,
        request("/healthz", "connection: close") + b"x" * 3_000_000,
    ],
    ids=["drained", "too much to drain", "without a token", "garbage", "after the last request"],
)
async def test_a_client_that_sent_too_much_can_still_read_its_answer(server: str, data: bytes) -> None:
    """SRV-5: the connection is not reset under an answer that was not read yet."""
    async with wire(server) as connection:
        await connection.stream.send_all(data)
        assert checked(await connection.answer()) in (200, 400, 401, 413)


async def test_a_body_that_passes_its_bound_during_the_answer_ends_the_connection() -> None:
    """SRV-5: it is too late for a 413, and nobody waits for anybody."""

    def prepare(app: QuartTrio) -> None:
        @app.post("/talk")
        async def talk() -> Response:
            async def answer() -> AsyncIterator[bytes]:
                yield b"hello"
                try:
                    await trio.sleep_forever()
                finally:
                    # Meanwhile more comes than anybody's queue can hold.
                    with trio.CancelScope(shield=True):
                        await trio.sleep(0.3)

            return Response(answer())

    async with open_house(prepare=prepare) as house, wire(house.url) as connection, trio.open_nursery() as nursery:
        await connection.send(request("/talk", "transfer-encoding: chunked", method="POST"))
        await connection.until(b"hello")

        async def pour() -> None:
            while True:
                await connection.stream.send_all(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")

        async def until_closed() -> None:
            with trio.fail_after(10), pytest.raises((trio.BrokenResourceError, ExceptionGroup)):
                await pour()

        nursery.start_soon(until_closed)
        with trio.fail_after(10):
            assert b"0\r\n\r\n" not in await connection.rest()


async def test_a_body_whose_end_is_said_twice_is_refused_and_ends_its_connection(server: str) -> None:
    """SRV-5: whoever stands between could take what follows for another request than we do."""
    both = request("/signals", AUTH, "content-length: 6", "transfer-encoding: chunked", method="POST")
    hidden = request("/healthz")
    async with wire(server) as connection:
        await connection.send(both + b"0\r\n\r\n" + hidden)
        assert checked(await connection.answer()) == 400
        assert await connection.answer() is None


@pytest.mark.parametrize("size", [1, 300_000, 1_500_000])
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_that_nobody_reads_leaves_the_connection_usable_or_closed(
    server: str, size: int, chunked: bool
) -> None:
    """SRV-5: an answer before the body was read (401) wedges nothing."""
    framing = "transfer-encoding: chunked" if chunked else f"content-length: {size}"
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (size, b"x" * size) if chunked else b"x" * size
    for _ in range(5):
        async with wire(server) as connection:
            await connection.send(request("/signals", framing, method="POST", body=body))
            answer = await connection.answer()
            assert checked(answer) == 401
            assert answer is not None
            await connection.send(request("/healthz"))
            second = await connection.answer()
            if answer.headers.get("connection") == "close":
                assert second is None
            else:
                assert checked(second) == 200


@pytest.mark.parametrize(
    "body",
    [b"zz\r\n", b"5\r\nhelloX\r\n", b"ffffffffffffffffffffff\r\n", b"-5\r\nx\r\n", b"5;" + b"e" * 40_000],
)
async def test_broken_chunks_end_the_request(server: str, body: bytes) -> None:
    """SRV-5: a body that is none is a bad request, or a closed connection."""
    head = request("/signals", AUTH, "content-type: application/json", "transfer-encoding: chunked", method="POST")
    assert checked(await ask(server, head + body)) in (400, 431, None)


@pytest.mark.parametrize("cut", [1, 10, 40, 90, 120])
async def test_a_client_that_hangs_up_in_the_middle_is_forgotten(server: str, cut: int) -> None:
    """SRV-5: wherever a request breaks off, in its head or its body."""
    data = request("/signals", AUTH, "content-type: application/json", "content-length: 100", method="POST")
    async with wire(server) as connection:
        await connection.send((data + b"{" * 50)[:cut])
        await connection.stream.send_eof()
        answer = await connection.answer()
        assert answer is None or answer.status < 500


async def test_pipelined_requests_are_answered_in_order_up_to_the_first_close(server: str) -> None:
    """SRV-5: and what comes after a request that closes is not answered."""
    async with wire(server) as connection:
        await connection.send(
            request("/healthz") + request("/nothing") + request("/healthz", "connection: close") + request("/healthz")
        )
        statuses = []
        while (answer := await connection.answer()) is not None:
            statuses.append(answer.status)
        assert statuses == [200, 404, 200]


async def test_random_bytes_and_mutated_requests_never_harm_the_server(server: str) -> None:
    """SRV-5: 300 connections of garbage, from a fixed seed."""
    chance = random.Random(4711)
    good = [
        request("/runs/current", "concorde-run-tag: x", "connection: close"),
        request("/signals?limit=5", AUTH, "connection: close"),
        request(
            "/signals",
            AUTH,
            "content-type: application/json",
            "content-length: 12",
            method="POST",
            body=b'{"kind":"k"}',
        ),
    ]
    for _ in range(300):
        data = bytearray(chance.choice(good))
        for _ in range(chance.randrange(1, 8)):
            at = chance.randrange(len(data))
            match chance.randrange(3):
                case 0:
                    data[at] = chance.randrange(256)
                case 1:
                    del data[at : at + chance.randrange(1, 9)]
                case 2:
                    data[at:at] = chance.randbytes(chance.randrange(1, 9))
            if not data:
                data = bytearray(b"x")
        async with wire(server) as connection:
            await connection.send(bytes(data))
            await connection.stream.send_eof()
            with trio.fail_after(10):
                answer = await connection.answer()
            assert answer is None or answer.status < 500 or answer.status in (501, 505), bytes(data)


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(path=st.binary(max_size=60), query=st.binary(max_size=60), value=st.binary(max_size=60))
def test_no_path_query_or_header_gives_a_500(path: bytes, query: bytes, value: bytes) -> None:
    """SRV-5: every byte that HTTP lets through, in every place, with the operator's token."""

    def visible(data: bytes) -> str:
        return "".join(chr(33 + byte % 94) for byte in data)

    async def main(store: SignalStore) -> None:
        async with open_house(store=store) as house:
            header = "".join(chr(byte) for byte in value if byte >= 32 and byte != 127)
            for start in ("/", "/signals/", "/runs/", "/signals?", "/runs?", "/locks?"):
                target = f"{start}{visible(path)}?{visible(query)}"
                for method in ("GET", "POST"):
                    lines = (AUTH, f"content-type: {header}", f"idempotency-key: {header}", "connection: close")
                    answer = await ask(house.url, request(target, *lines, method=method))
                    assert answer is not None
                    assert answer.status < 500, (target, header)

    with TemporaryDirectory() as folder:
        for store in (MemoryStore(), SqliteStore(Path(folder) / "queue.db")):
            trio.run(main, store)

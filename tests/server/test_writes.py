"""How answers leave: in few writes, whole, in order, and without holding up anybody else."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import AsyncIterator
from functools import partial
from urllib.parse import urlsplit

import pytest
import trio
from quart import Response
from quart_trio import QuartTrio

from concorde_trio.server.serving import serve
from tests.server.event_reader import plain
from tests.server.house import request, wire

pytestmark = pytest.mark.slow

LARGE = 4_000_000
PIECES: list[bytes] = []


def pattern(size: int) -> bytes:
    """Bytes of which no two places look alike."""
    return b"".join(number.to_bytes(4, "big") for number in range(size // 4))


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """A served app."""
    app, closing = QuartTrio("theirs"), trio.Event()

    @app.get("/small/<word>")
    async def small(word: str) -> str:
        return word

    @app.get("/large")
    async def large() -> Response:
        return Response(pattern(LARGE), mimetype="application/octet-stream")

    @app.get("/pieces")
    async def pieces() -> Response:
        async def body() -> AsyncIterator[bytes]:
            data = pattern(LARGE)
            for at in range(0, len(data), 100_003):
                yield data[at : at + 100_003]

        return Response(body(), mimetype="application/octet-stream")

    @app.get("/endless")
    async def endless() -> Response:
        async def body() -> AsyncIterator[bytes]:
            while True:
                PIECES.append(b"x" * 100)
                yield PIECES[-1]  # and waits for nothing

        return Response(body(), mimetype="application/octet-stream")

    async with trio.open_nursery() as nursery:
        where: str = await nursery.start(partial(serve, app, closing=closing))
        yield where
        closing.set()


async def test_a_small_answer_is_one_write(url: str) -> None:
    """SRV-1: head and body, so that a client is woken once."""
    async with wire(url) as connection:
        for word in ("one", "two", "three"):
            await connection.send(request(f"/small/{word}"))
            got = await connection.stream.receive_some(65536)
            assert got.startswith(b"HTTP/1.1 200") and got.endswith(b"\r\n\r\n" + word.encode())


async def test_the_answer_to_a_head_request_is_its_head(url: str) -> None:
    """SRV-1: although there is no body for it to go with."""
    async with wire(url) as connection:
        await connection.send(request("/small/word", method="HEAD"))
        got = await connection.stream.receive_some(65536)
        assert got.startswith(b"HTTP/1.1 200") and got.endswith(b"\r\n\r\n")
        await connection.send(request("/small/next"))
        answer = await connection.answer()
        assert answer is not None and answer.body == b"next"


@pytest.mark.parametrize("path", ["/large", "/pieces"])
async def test_a_large_answer_to_a_slow_reader_is_whole(url: str, path: str) -> None:
    """SRV-1: whatever part of each write the system took at once."""
    async with plain(url, 10_000) as connection:
        await connection.send(request(path))
        await trio.sleep(0.1)
        answer = await connection.answer()
        assert answer is not None
        assert hashlib.sha256(answer.body).digest() == hashlib.sha256(pattern(LARGE)).digest()
        await connection.send(request("/small/after"))
        answer = await connection.answer()
        assert answer is not None and answer.body == b"after"


async def test_answers_to_requests_that_came_together_are_in_their_order(url: str) -> None:
    """SRV-1: HTTP pipelining."""
    async with wire(url) as connection:
        await connection.send(b"".join(request(f"/small/{number}") for number in range(50)))
        for number in range(50):
            answer = await connection.answer()
            assert answer is not None and answer.body == str(number).encode()


async def test_an_answer_without_end_to_a_fast_reader_leaves_others_their_turn(url: str) -> None:
    """SRV-1: an app that waits for nothing does not keep the event loop to itself, though its client takes all at once."""
    parts = urlsplit(url)
    greedy = socket.create_connection((parts.hostname, parts.port))
    greedy.sendall(request("/endless"))
    over = False

    def read_on() -> None:  # in a thread: a task of this loop could not read while the loop is kept
        with greedy:
            while not over and greedy.recv(1_000_000):
                pass

    async with wire(url) as other, trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, read_on)
        for number in range(20):
            await other.send(request(f"/small/{number}"))
            answer = await other.answer()
            assert answer is not None and answer.body == str(number).encode()
        over = True
    assert len(PIECES) < 20 * 1_000  # a few for each turn of the others; without turns it would be millions

"""What the agent server costs: the rate of a route of the user's, and how late an event reaches who reads.

Servers are processes of their own (``server_side``); the load is this one, plain sockets without an HTTP library, so that what
is measured is the server. Rounds of ours and of what stands beside it take turns.
"""

from __future__ import annotations

import gc
import json
import re
import selectors
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

from benchmarks.figures import Figure, Goal, percentile, rounds
from benchmarks.server_side import TAG, TOKEN

CONNECTIONS = 8
"""Clients that ask one after another, each as soon as it was answered."""
READERS = 100
RATE = 1_000
"""Events a second."""

_NUMBER = re.compile(rb'"at": ([0-9.]+)')


def suite(quick: bool) -> list[Figure]:
    """All of it."""
    return [_requests(6 if quick else 20), *_fan_out(2 if quick else 5, 3.0 if quick else 6.0)]


@contextmanager
def _serving(*role: str) -> Iterator[tuple[str, int]]:
    """A server in a process of its own: its host and port."""
    command = [sys.executable, "-m", "benchmarks.server_side", *role]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        try:
            found = urlsplit(json.loads(process.stdout.readline())["url"])
            assert found.hostname and found.port
            yield found.hostname, found.port
        finally:
            process.stdin.close()


# --- requests ---------------------------------------------------------------------------------------------------


def _requests(count: int) -> Figure:
    lost: list[float] = []
    ours: list[float] = []
    bare: list[float] = []
    with _serving("bare") as bare_at, _serving("ours") as ours_at:
        for at in (bare_at, ours_at):
            _rate(at, 0.5)
        for number in rounds(count, "server: requests"):
            # Which is first in a round alternates, so that no drift of the machine counts for one of them.
            pair = [(bare, bare_at), (ours, ours_at)]
            for found, at in pair if number % 2 else reversed(pair):
                found.append(_rate(at, 1.0))
            lost.append(100 * (1 - ours[-1] / bare[-1]))
    return Figure(
        name="requests a second of a route, in an app with the agent server",
        unit="/s",
        value=statistics.median(ours),
        beside=(("plain Quart-Trio under Hypercorn", statistics.median(bare)),),
        goal=Goal(says="% of the bare rate lost", value=statistics.median(lost), bound=10.0, at_least=False),
    )


def _rate(at: tuple[str, int], seconds: float) -> float:
    """Answered requests a second."""
    request = (
        f"GET /ping HTTP/1.1\r\nHost: {at[0]}:{at[1]}\r\nconcorde-run-tag: {TAG}\r\naccept: application/json\r\n\r\n"
    ).encode()
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for _ in range(CONNECTIONS):
            sock = stack.enter_context(socket.create_connection(at))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(sock, selectors.EVENT_READ, bytearray())
            sock.sendall(request)
        answered, begun = 0, time.perf_counter()
        while (now := time.perf_counter()) < begun + seconds:
            for key, _ in selector.select(1.0):
                sock, buffer = key.fileobj, key.data
                assert isinstance(sock, socket.socket)
                buffer += sock.recv(65536)
                if not buffer.endswith(b'pong"}\n') and not buffer.endswith(b'pong"}'):
                    continue
                assert buffer.startswith(b"HTTP/1.1 200"), bytes(buffer)
                buffer.clear()
                answered += 1
                sock.sendall(request)
        return answered / (now - begun)


# --- events -----------------------------------------------------------------------------------------------------


def _fan_out(count: int, seconds: float) -> list[Figure]:
    ours: list[list[float]] = []
    bare: list[list[float]] = []
    for number in rounds(count, "server: events"):
        pair: list[tuple[list[list[float]], str]] = [(bare, "broadcast"), (ours, "events")]
        for found, role in pair if number % 2 else reversed(pair):
            with _serving(role, str(RATE)) as at:
                found.append(_lateness(at, seconds))
    figures = []
    for share, name in ((0.5, "p50"), (0.99, "p99")):
        value, beside = (statistics.median(percentile(each, share) for each in found) for found in (ours, bare))
        figures.append(
            Figure(
                name=f"an event until it is read, {RATE:,} a second, {READERS} readers, {name}",
                unit="ms",
                value=value,
                beside=(("bare Trio: written to plain sockets every 5 ms", beside),),
                goal=Goal(says="ms", value=value, bound=20.0, at_least=False) if name == "p99" else None,
            )
        )
    return figures


def _lateness(at: tuple[str, int], seconds: float) -> list[float]:
    """How many milliseconds after it happened each event was read, by each reader. All must get all."""
    request = f"GET /events HTTP/1.1\r\nHost: {at[0]}:{at[1]}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    heard: list[list[tuple[float, bytes]]] = [[] for _ in range(READERS)]
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for each in heard:
            sock = stack.enter_context(socket.create_connection(at))
            sock.sendall(request)
            selector.register(sock, selectors.EVENT_READ, each)
        begun = time.monotonic()
        gc.disable()  # what is kept here is no garbage, and to look through it would be counted as lateness
        try:
            while time.monotonic() < begun + 1.0 + seconds:
                for key, _ in selector.select(1.0):
                    data = key.fileobj.recv(262144)  # type: ignore[union-attr]
                    assert data, "the server ended a stream"
                    key.data.append((time.monotonic(), data))
        finally:
            gc.enable()
    return [late for each in heard for late in _late(each, begun + 1.0, begun + seconds)]


def _late(heard: list[tuple[float, bytes]], first: float, last: float) -> Iterator[float]:
    """Of the events that happened between these two moments."""
    text = b"".join(data for _, data in heard)
    place, moment, ends = 0, 0.0, iter(heard)
    happened: list[float] = []
    for match in _NUMBER.finditer(text):
        while place < match.end():
            moment, data = next(ends)
            place += len(data)
        if first <= (at := float(match[1])) <= last:
            happened.append(at)
            yield (moment - at) * 1e3
    assert len(happened) >= 0.9 * RATE * (last - first), f"a reader got {len(happened)} events only"
    assert happened == sorted(happened)

"""What the agent server costs: the rate of a route of the user's, with and without attribution, and how late an event is read.

Servers are processes of their own (``server_side``); the load is this one, plain sockets without an HTTP library, so that what
is measured is the server. Rounds of ours and of what stands beside it take turns.
"""

from __future__ import annotations

import gc
import json
import re
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from urllib.parse import urlsplit

from benchmarks.bench import Bench, Skipped, turn
from benchmarks.figures import Beside, Figure, Goal
from benchmarks.samples import Sample, percentile
from benchmarks.server_side import TAG, TOKEN

CONNECTIONS = 8
"""Clients that ask one after another, each as soon as it was answered."""
READERS = 100
RATE = 1_000
"""Events a second."""

_NUMBER = re.compile(rb'"at": ([0-9.]+)')


def suite(bench: Bench) -> Iterator[Figure]:
    """All of it."""
    yield from _requests(bench)
    yield from _fan_out(bench, bench.times(4, 2), 2.5 if bench.quick else 4.0)


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


def _requests(bench: Bench) -> Iterator[Figure]:
    with _serving("bare") as bare, _serving("ours") as ours:
        for at in (bare, ours):
            _rate(at, 0.5, TAG)
        contenders = {
            "bare": partial(_rate, bare, 0.7, TAG),
            "tag": partial(_rate, ours, 0.7, TAG),
            "no tag": partial(_rate, ours, 0.7, None),
        }
        found = bench.in_turns("requests", contenders, bench.times(15, 5))
    plain = Beside(what="plain Quart-Trio under Hypercorn", sample=found["bare"], kind="limit")
    lost = found["tag"].with_each(found["bare"], lambda ours, bare: 100 * (1 - ours / bare))
    yield Figure(
        name="requests of a route in an app with the agent server, attributed to a run",
        unit="/s",
        sample=found["tag"],
        beside=(plain, Beside(what="the same without a tag", sample=found["no tag"])),
        goal=Goal(says="% of the bare rate lost", sample=lost, bound=10.0, at_least=False),
    )
    yield Figure(name="the same without a tag", unit="/s", sample=found["no tag"], beside=(plain,))


def _rate(at: tuple[str, int], seconds: float, tag: str | None) -> float:
    """Answered requests a second."""
    header = "" if tag is None else f"concorde-run-tag: {tag}\r\n"
    request = f"GET /ping HTTP/1.1\r\nHost: {at[0]}:{at[1]}\r\n{header}accept: application/json\r\n\r\n".encode()
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


def _fan_out(bench: Bench, count: int, seconds: float) -> Iterator[Figure]:
    late: dict[str, list[list[float]]] = {"events": [], "broadcast": []}
    for number in bench.rounds("events", count + 1):
        for role in turn(list(late), number):
            with _serving(role, str(RATE)) as at:
                late[role].append(_lateness(at, seconds))
    for share, name in ((0.5, "median"), (0.99, "p99")):
        ours, bare = (Sample(percentile(each, share) for each in late[role][1:]) for role in ("events", "broadcast"))
        goal = Goal(says="under 20 ms", sample=ours, bound=20.0, at_least=False, absolute=True)
        yield Figure(
            name=f"an event until it is read, {RATE:,} a second, {READERS} readers, {name}",
            unit="ms",
            better="lower",
            sample=ours,
            beside=(Beside(what="bare Trio: written to plain sockets every 5 ms", sample=bare, kind="limit"),),
            goal=goal if name == "p99" else None,
        )


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
    if len(happened) < 0.9 * RATE * (last - first):
        raise Skipped(
            f"events: this machine is too busy now; a reader got {len(happened)} of {RATE * (last - first):.0f}"
        )
    assert happened == sorted(happened)

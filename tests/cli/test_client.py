"""What a command makes of a gateway that answers badly, slowly, or not at all."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import click
import pytest

from concorde_trio.cli import client as client_module
from concorde_trio.cli.client import ask
from concorde_trio.cli.sources import Either, Served, Source
from concorde_trio.errors import ConcordeError, RequestRefused, ServerGone, UnknownId, UsageError, WrongState
from concorde_trio.server.endpoint import Endpoint

TOKEN = "operator-token-0123456789"


@contextmanager
def _listening(answer: Callable[[bytes], bytes | None]) -> Iterator[tuple[Endpoint, list[bytes]]]:
    """A server of one connection after another that answers with what ``answer`` gives; None closes at once."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    request = connection.recv(65536)
                    heard.append(request)
                    said = answer(request)
                    if said is not None:
                        connection.sendall(said)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield _endpoint(listener.getsockname()[1]), heard
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _endpoint(port: int) -> Endpoint:
    return Endpoint(url=f"http://127.0.0.1:{port}", token=TOKEN, pid=1, started=0.0)


def _http(status: int, body: object) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"HTTP/1.1 %d X\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s" % (status, len(data), data)


def test_a_request_bears_the_token_and_encodes_what_it_names() -> None:
    """SRV-6, CLM-7: names are used as written, so they are encoded."""
    with _listening(lambda request: _http(200, {"id": "x", "signals": [], "next": None})) as (endpoint, heard):
        served = Served(endpoint)
        served.signal("../ä?b#/c")
        served.signals(kind="a&b=c", state=None, limit=9)
        served.emit("k", "ü", "schlüssel")
    assert heard[0].startswith(b"GET /signals/..%2F%C3%A4%3Fb%23%2Fc HTTP/1.1\r\n")
    assert b"\r\nauthorization: bearer " + TOKEN.encode() in heard[0].lower()
    assert heard[1].startswith(b"GET /signals?kind=a%26b%3Dc&limit=9 HTTP/1.1\r\n")
    assert heard[2].startswith(b"POST /signals HTTP/1.1\r\n")
    assert b"\r\nidempotency-key: " + "schlüssel".encode() in heard[2].lower()


def test_a_proxy_in_the_environment_never_sees_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-6: the operator's token goes to the gateway alone."""
    with _listening(lambda request: _http(500, {})) as (proxy, at_proxy):
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("no_proxy", "")
        with _listening(lambda request: _http(200, {"locks": [], "next": None})) as (endpoint, _):
            Served(endpoint).locks()
    assert at_proxy == []


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, UsageError),
        (404, UnknownId),
        (409, WrongState),
        (413, UsageError),
        (401, RequestRefused),
        (500, RequestRefused),
        (503, RequestRefused),
        (302, RequestRefused),
    ],
)
def test_a_problem_document_becomes_the_error_it_is_about(status: int, expected: type[Exception]) -> None:
    """SRV-5: a message a person can act on."""
    problem = {"title": "No", "status": status, "detail": "do this instead"}
    with (
        _listening(lambda request: _http(status, problem)) as (endpoint, _),
        pytest.raises(expected, match="do this instead"),
    ):
        Served(endpoint).run("x")


@pytest.mark.parametrize("body", [b"<html>", b"\xff", b"{", b""])
def test_a_stranger_on_the_port_is_a_failure_and_no_traceback(body: bytes) -> None:
    """SRV-5: what answers may be anything."""
    for status in (200, 500):
        with _listening(lambda request, status=status: _http(status, body)) as (endpoint, _):  # type: ignore[misc]
            with pytest.raises(ConcordeError) as caught:
                Served(endpoint).locks()
            assert endpoint.url in str(caught.value) or "gateway" in str(caught.value)


def test_a_worker_that_is_gone_is_replaced_by_its_database() -> None:
    """REC-1: what was read from the file may be over by now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    source = Either(Served(_endpoint(port)), lambda: _Fixed())
    assert source.locks() == {"locks": []}
    assert source.emit("k", None, None) == "stored"


@pytest.mark.parametrize("kept", [0, 5])
def test_a_worker_that_is_killed_in_its_answer_is_replaced_by_its_database(kept: int) -> None:
    """REC-1: head and body of an answer are sent apart, and a kill can come between."""
    whole = _http(200, {"locks": ["a"], "next": None})
    head, _, body = whole.partition(b"\r\n\r\n")
    with _listening(lambda request: head + b"\r\n\r\n" + body[:kept]) as (endpoint, _):
        assert Either(Served(endpoint), lambda: _Fixed()).locks() == {"locks": []}


def test_a_look_that_was_cut_off_is_made_again_and_a_change_is_not() -> None:
    """SIG-1, SIG-7: a signal that was perhaps taken is not emitted twice."""
    with _listening(lambda request: None) as (endpoint, heard):
        source = Either(Served(endpoint), lambda: _Fixed())
        assert source.locks() == {"locks": []}
        with pytest.raises(click.ClickException, match="may have taken the request or not"):
            source.emit("k", None, None)
    assert len(heard) == 2


def test_a_worker_that_does_not_answer_is_named_with_a_way_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """SES-12a: somebody who looks why nothing moves must not be stopped by what does not move."""
    monkeypatch.setattr(client_module, "PATIENCE", 0.05)
    done = threading.Event()

    def silent(request: bytes) -> None:
        done.wait(10)

    with _listening(silent) as (endpoint, _):
        with pytest.raises(click.ClickException, match=r"process 1\) has not answered .*--direct"):
            Served(endpoint).locks()
        done.set()


@pytest.mark.parametrize("url", ["https://127.0.0.1:1", "file:///etc/passwd", "127.0.0.1", "http://"])
def test_an_endpoint_that_is_no_http_address_is_refused(url: str) -> None:
    """SRV-6: the file is read from a folder that others may write."""
    with pytest.raises(click.ClickException, match="http://HOST:PORT"):
        Served(Endpoint(url=url, token="t", pid=1, started=0.0)).locks()


def test_a_refused_connection_was_not_heard() -> None:
    """SIG-1: it can be made in another way."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ServerGone) as caught:
        ask(_endpoint(port), lambda client: client.emit("k"))
    assert caught.value.unheard


def test_every_page_of_the_lock_table_is_asked_for() -> None:
    """LCK-7: the answer about a lock must not depend on where it stands."""
    pages = {None: (["a", "b"], "session:b"), "session:b": (["c"], "resource:c"), "resource:c": (["d"], None)}

    def answer(request: bytes) -> bytes:
        asked = parse_qs(urlsplit(request.split()[1].decode()).query)
        assert asked["limit"] == ["200"]
        locks, following = pages[asked.get("after", [None])[0]]
        return _http(200, {"locks": locks, "next": following})

    with _listening(answer) as (endpoint, _):
        assert Served(endpoint).locks() == {"locks": ["a", "b", "c", "d"], "next": None}


def test_a_page_that_ends_before_its_limit_is_gone_on_from() -> None:
    """SRV-2: large documents make a short page; a worker and its database must show the same runs."""
    pages = {None: (["a", "b"], "7"), "7": (["c"], "3"), "3": (["d"], None)}
    asked_for: list[str] = []

    def answer(request: bytes) -> bytes:
        asked = parse_qs(urlsplit(request.split()[1].decode()).query)
        asked_for.append(asked["limit"][0])
        runs, following = pages[asked.get("before", [None])[0]]
        return _http(200, {"runs": runs, "next": following})

    with _listening(answer) as (endpoint, _):
        served = Served(endpoint)
        everything = served.runs(signal=None, session=None, resource=None, state=None, limit=50)
        assert everything == {"runs": ["a", "b", "c", "d"], "next": None}
        some = served.runs(signal=None, session=None, resource=None, state=None, limit=3)
        assert some == {"runs": ["a", "b", "c"], "next": "3"}
    assert asked_for == ["50", "48", "47", "3", "1"]


class _Fixed(Source):
    """A source that always says the same."""

    def locks(self) -> dict[str, object]:
        return {"locks": []}

    def emit(self, kind: str, payload: object, key: str | None) -> str:
        return "stored"

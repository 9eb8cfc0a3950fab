"""Every field of every declared route with what no HTTP library would send: refused by a status that is declared for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from concorde_trio.server.declarations import Operation, Place
from concorde_trio.server.openapi import declared_rules, refusals_of
from concorde_trio.stores.sqlite import SqliteStore
from tests.server.house import OPERATOR, request, wire
from tests.server.session_house import SessionHouse, open_session_house

pytestmark = pytest.mark.slow

AUTH = f"authorization: Bearer {OPERATOR}"
JSON = "content-type: application/json"

SEGMENTS = (
    *("%00", "%ff", "%ed%a0%80", "%", "%zz", "%2F", "%2e%2e", "..", ".", "a%0d%0aSet-Cookie:x", "\xff\xfe", "a;b=c"),
    *("~", "current", "x" * 5_000, "%F0%9F%98%80", "'--", "%25%32%46", "a%20b", "%3Cscript%3E"),
)
VALUES = (
    *(
        "",
        "%00",
        "%ff",
        "\xff",
        "%ed%a0%80",
        "1" * 5_000,
        "-1",
        "1e9",
        "NaN",
        "0x10",
        "%D9%A1",
        "+1",
        " 1",
        "1%0a",
        "~",
    ),
    *("~AAAAAAAAAAAAAAAAAAAAAAAAAA", "~A", "a,b", ",", "true", "%5B%5D", "session:%00", "1:%00", "1:" + "x" * 300, "%"),
)
QUERIES = (
    "=",
    "&&&",
    "a",
    "a=1&a=2",
    "%00=1",
    "\xff=\xff",
    "a[]=1",
    "limit=1;limit=2",
    "limit=1&limit=2",
    "?",
    "x=" * 2_000,
)
BODIES = (
    *(b"", b"null", b"[]", b"{", b'"', b"\xff", b"\xef\xbb\xbf{}", b'{"a":1,"a":2}', b"NaN", b"{}" * 2, b"[" * 100_000),
    *(b'{"kind": {}, "payload": 1, "text": [], "allow": "yes", "token": 5}', b'{"text": "\\ud800"}', b'{"id": 1e400}'),
    *(
        b'{"__proto__": 1}',
        b'{"": ""}',
        b'{"text": "x", "attachments": [[]]}',
        b'{"text": "x", "attachments": [{"type": []}]}',
    ),
)


def path_of(rule: str, segment: str) -> str:
    """The path with this in place of every field."""
    return re.sub(r"<(?:\w+:)?\w+>", lambda _: segment, rule)


def asked(rule: str, operation: Operation) -> Iterator[bytes]:
    """What nobody should send to one route."""

    def sent(target: str, *lines: str, body: bytes = b"", method: str = operation.method) -> bytes:
        length = () if method == "GET" and not body else (f"content-length: {len(body)}",)
        return request(target, AUTH, *lines, *length, method=method, body=body)

    def fields(place: Place) -> tuple[str, ...]:
        return tuple(field.name for field in operation.of(place))

    plain = path_of(rule, "x")
    if fields("path"):
        yield from (sent(path_of(rule, segment), JSON, body=b"{}") for segment in SEGMENTS)
    yield from (sent(f"{plain}?{query}", JSON, body=b"{}") for query in QUERIES)
    yield from (sent(f"{plain}?{name}={value}") for name in fields("query") for value in VALUES)
    for name in fields("header"):
        yield sent(plain, JSON, f"{name}: a", f"{name}: b", body=b'{"kind": "k"}')
        yield from (
            sent(plain, JSON, f"{name}: {value}", body=b'{"kind": "k"}') for value in ("", "\xff", "x" * 300, "\x7f")
        )
    yield from (sent(plain, JSON, body=body) for body in BODIES)
    for kind in (
        "",
        "application/json; charset=utf-7",
        "text/plain",
        "multipart/form-data",
        "\xff",
        "application/json;;=",
    ):
        yield sent(plain, f"content-type: {kind}", body=b"{}")
    yield sent(plain, JSON, "content-encoding: gzip", body=b"{}")
    yield sent(plain, JSON, "content-type: text/plain", body=b"{}")


async def status_of(house: SessionHouse, data: bytes) -> tuple[int, dict[str, str]] | None:
    """The head of the answer, for a stream has no end; None if the connection was closed instead."""
    async with wire(house.url) as connection:
        await connection.send(data)
        head = await connection.piece(b"\r\n\r\n")
    if head is None:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split(" ")[1]), headers


async def test_no_field_of_any_route_gives_what_its_declaration_does_not_tell_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """SRV-5: no 500, no traceback, no status that is not declared; and the next client is served."""
    made = 0
    async with open_session_house(store=SqliteStore(tmp_path / "queue.db")) as house:
        app = house.app
        for rule, operation in declared_rules(app):
            told = {answer.status for answer in operation.answers} | refusals_of(operation).keys()
            for data in asked(rule, operation):
                made += 1
                found = await status_of(house, data)
                if found is None:
                    continue
                status, headers = found
                # A path that leads elsewhere is none of this route's.
                assert status < 500 and (status in told or status in (404, 405)), (operation.name, status, data[:200])
                assert status < 400 or headers["content-type"] in (
                    "application/problem+json",
                    "text/html; charset=utf-8",
                )
                assert "set-cookie" not in headers or operation.tag == "Login"
        assert (await house.agent.get("/healthz")).status_code == 200
    assert made > 2_000
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []

"""Routes that only live runs may ask, in the user's own app."""

from __future__ import annotations

import re
from typing import Any

import pytest
import trio
from quart import Blueprint, Response, websocket
from quart_trio import QuartTrio

from concorde_trio import current_run, require_run
from concorde_trio.errors import OutsideRequest, UsageError
from concorde_trio.records import RunInfo
from tests.server.house import House, open_house, request, wire

pytestmark = pytest.mark.slow

ANN, BOB, ENDED = "tag-of-ann-0123456789", "tag-of-bob-0123456789", "tag-that-ended-012345"


def session_of_run() -> str:
    """Whose request this is."""
    run = current_run()
    assert isinstance(run, RunInfo)
    return run.session


def theirs() -> QuartTrio:
    """Routes of every kind, in an app that answers errors in its own way."""
    app, nested = QuartTrio("theirs"), Blueprint("nested", __name__)

    @app.errorhandler(Exception)
    async def broken(error: Exception) -> tuple[str, int]:
        return "their error", 500

    @app.post("/async")
    @require_run
    async def async_view() -> str:
        return session_of_run()

    @app.post("/plain")
    @require_run
    def plain_view() -> str:
        return session_of_run()

    @app.post("/ann")
    @require_run(session="ann")
    async def of_ann() -> str:
        return session_of_run()

    @nested.post("/notes/<name>")
    @require_run(session=lambda name: name)
    async def notes(name: str) -> str:
        return f"notes of {name}"

    @app.get("/stream")
    @require_run
    async def stream() -> Response:
        async def pieces() -> Any:
            for _ in range(3):
                yield f"{session_of_run()} "
                await trio.lowlevel.checkpoint()

        return Response(pieces())

    @app.websocket("/talk")
    @require_run(session="ann")
    async def talk() -> None:
        await websocket.send(session_of_run())

    app.register_blueprint(nested, url_prefix="/nested")
    return app


async def start_all(house: House) -> None:
    """ann's and bob's runs are in flight, eve's has ended."""
    await house.start(session="eve", tag=ENDED)
    await house.end("eve")
    await house.start(session="ann", tag=ANN)
    await house.start(session="bob", tag=BOB)


@pytest.mark.parametrize(
    ("method", "path", "ann", "bob"),
    [
        ("POST", "/async", "ann", "bob"),
        ("POST", "/plain", "ann", "bob"),
        ("POST", "/ann", "ann", None),
        ("POST", "/nested/notes/ann", "notes of ann", None),
        ("POST", "/nested/notes/bob", None, "notes of bob"),
        ("GET", "/stream", "ann ann ann ", "bob bob bob "),
    ],
)
async def test_a_route_that_requires_a_run_lets_in_the_runs_it_is_for(
    method: str, path: str, ann: str | None, bob: str | None
) -> None:
    """SRV-8, TAG-3: no tag, unknown, ended, twice: 403; and so for a run of another session where one is asked for."""
    async with open_house(app=theirs()) as house:
        await start_all(house)
        asked: list[tuple[list[tuple[str, str]], str | None]] = [
            ([("concorde-run-tag", ANN)], ann),
            ([("concorde-run-tag", BOB)], bob),
            ([], None),
            ([("concorde-run-tag", "unknown-tag-0123456789")], None),
            ([("concorde-run-tag", ENDED)], None),
            ([("concorde-run-tag", ANN), ("concorde-run-tag", ANN)], None),
        ]
        for headers, expected in asked:
            answer = await house.agent.request(method, path, headers=headers)
            if expected is not None:
                assert (answer.status_code, answer.text) == (200, expected)
                continue
            assert answer.status_code == 403
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["detail"].startswith("only a run ")
            assert not re.search(rf"{ANN}|{BOB}|\b(ann|bob)\b", answer.text)


@pytest.mark.parametrize(("tag", "status"), [(ANN, b"101"), (BOB, b"403"), (None, b"403")])
async def test_a_websocket_that_requires_a_run_is_refused_at_its_handshake(tag: str | None, status: bytes) -> None:
    """SRV-8: before it is accepted, with the same status."""
    handshake = request(
        "/talk",
        "connection: upgrade",
        "upgrade: websocket",
        "sec-websocket-version: 13",
        "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
        *([] if tag is None else [f"concorde-run-tag: {tag}"]),
    )
    async with open_house(app=theirs()) as house:
        await start_all(house)
        async with wire(house.url) as connection:
            await connection.send(handshake)
            assert (await connection.rest()).startswith(b"HTTP/1.1 " + status)


def test_what_is_no_route_is_refused_where_it_is_decorated() -> None:
    """SRV-8: a mistake is told at once; and outside a request there is no answer at all."""
    with pytest.raises(UsageError, match="session="):
        require_run("ann")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="session is"):
        require_run(session=7)(session_of_run)  # type: ignore[call-overload]
    with pytest.raises(OutsideRequest):
        require_run(session_of_run)()

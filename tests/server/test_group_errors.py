"""What the framework would drop of a request's errors, and streams that it would cut, in our app and in the user's own."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest
import trio
from quart import Response, abort
from quart_trio import QuartTrio

from tests.server.house import open_house, request, wire

pytestmark = pytest.mark.slow

TAG = "tag-of-ann-0123456789"


async def fail_with(error: Exception) -> None:
    """One of several tasks of a handler."""
    raise error


def add_routes(app: QuartTrio) -> None:
    """Handlers that fail in several ways at once."""

    @app.get("/both")
    async def both() -> str:
        async with trio.open_nursery() as outer, trio.open_nursery() as inner:
            inner.start_soon(fail_with, ValueError(f"the first fault, {TAG}"))
            outer.start_soon(fail_with, KeyError("the second fault"))
        return "never"

    @app.get("/answered")
    async def answered() -> str:
        cleaning = trio.Event()

        async def clean_up() -> None:
            try:
                cleaning.set()
                await trio.sleep_forever()
            finally:
                raise ValueError("the vanished fault")

        async def lost() -> None:
            await cleaning.wait()
            abort(404, "not here")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(clean_up)
            nursery.start_soon(lost)
        return "never"

    @app.get("/one")
    async def one() -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail_with, ValueError("the only fault"))
        return "never"


def said(caplog: pytest.LogCaptureFixture, *names: str) -> str:
    """What these loggers said."""
    return "\n".join(record.getMessage() for record in caplog.records if record.name in names)


@pytest.mark.parametrize("own_app", [False, True])
async def test_every_error_of_a_request_is_heard_of_though_one_is_answered(
    own_app: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """SRV-5, TAG-4: also beside an answer such as 404, in a nursery within a nursery; once each, with the place, masked."""
    theirs = QuartTrio("theirs") if own_app else None
    async with open_house(app=theirs, prepare=add_routes) as house:
        await house.start(session="ann", tag=TAG)
        assert (await house.agent.get("/answered")).status_code == 404
        assert said(caplog, "concorde_trio.server").count("ValueError: the vanished fault") == 1
        caplog.clear()
        assert (await house.agent.get("/both")).status_code == 500
        heard = said(caplog, "concorde_trio.server")
        assert "a request raised 2 errors" in heard
        assert heard.count("a request raised") == 1
        assert "the second fault" in heard
        assert "the first fault" in heard
        assert TAG not in heard
        caplog.clear()
        assert (await house.agent.get("/one")).status_code == 500
        assert "a request raised" not in said(caplog, "concorde_trio.server")


async def test_an_error_beside_the_end_of_its_client_is_heard_of(caplog: pytest.LogCaptureFixture) -> None:
    """SRV-5: clean-up that fails in a nursery that is cancelled because the client left."""
    app = QuartTrio("theirs")
    begun, over = trio.Event(), trio.Event()

    @app.get("/cleanup")
    async def cleanup() -> str:
        async def work() -> None:
            try:
                begun.set()
                await trio.sleep_forever()
            finally:
                raise ValueError("the clean-up failed")

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(work)
                await trio.sleep_forever()
        finally:
            over.set()
        return "never"

    async with open_house(app=app) as house:
        async with wire(house.url) as connection:
            await connection.send(request("/cleanup"))
            await begun.wait()
        await over.wait()
    assert said(caplog, "concorde_trio.server").count("ValueError: the clean-up failed") == 1


async def test_a_handler_that_blocks_the_event_loop_is_named_by_its_route() -> None:
    """F-28: by its rule, which holds nothing that a client sent."""
    app = QuartTrio("theirs")
    log = logging.getLogger("concorde_trio.watchdog")
    barked = threading.Event()
    said: list[str] = []

    class Barks(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())
            barked.set()

    @app.get("/rude/<name>")
    async def rude(name: str) -> str:
        return str(barked.wait(50))

    barks = Barks()
    log.addHandler(barks)
    try:
        async with open_house(app=app) as house:
            assert (await house.agent.get("/rude/secret")).text == "True"
    finally:
        log.removeHandler(barks)
    assert "held up by the handler of /rude/<name>" in said[0]
    assert "secret" not in said[0].partition("It stands at")[0]


async def test_our_event_streams_outlast_the_response_timeout_of_the_users_app() -> None:
    """SRV-4: by its default the framework cuts a stream after a minute, and the client takes it for an error."""
    app = QuartTrio("theirs")
    app.config["RESPONSE_TIMEOUT"] = 0.05
    seen: dict[str, Any] = {}

    @app.after_request
    async def note(response: Response) -> Response:
        seen[str(response.mimetype)] = response.timeout
        return response

    async with open_house(app=app) as house:
        async with house.operator.stream("GET", "/events") as answer:
            assert answer.status_code == 200
        assert seen["text/event-stream"] is None
        assert (await house.operator.get("/runs")).status_code == 200
        assert seen["application/json"] is not None

"""The built-in routes in the user's own app: ours answer as always, theirs as they like."""

from __future__ import annotations

import pytest
from quart import Blueprint, Quart, Response
from quart_trio import QuartTrio

from concorde_trio.errors import CannotServe, UsageError
from concorde_trio.server.access import Access
from concorde_trio.server.app import agent_server, install
from concorde_trio.server.attribution import current_run
from tests.server.house import OPERATOR, House, open_house

pytestmark = pytest.mark.slow

TAG = "tag-of-ann-0123456789"


def theirs() -> QuartTrio:
    """An app with error handling of its own."""
    app = QuartTrio("theirs")

    @app.errorhandler(404)
    async def lost(error: Exception) -> tuple[str, int]:
        return "their 404", 404

    @app.errorhandler(405)
    async def wrong(error: Exception) -> tuple[str, int]:
        return "their 405", 405

    @app.errorhandler(Exception)
    async def broken(error: Exception) -> tuple[str, int]:
        return f"their {type(error).__name__}", 500

    @app.get("/mine")
    async def mine() -> str:
        run = current_run()
        return "nobody" if run is None else run.session

    @app.get("/fail")
    async def fail() -> Response:
        raise ZeroDivisionError

    return app


async def test_their_routes_keep_their_error_handling_and_see_the_run() -> None:
    """SRV-1, SRV-8: our handlers are for our blueprint."""
    async with open_house(app=theirs()) as house:
        await house.start(session="ann", tag=TAG)
        assert (await house.agent.get("/mine")).text == "nobody"
        assert (await house.agent.get("/mine", headers={"concorde-run-tag": TAG})).text == "ann"
        assert (await house.agent.get("/nothing")).text == "their 404"
        assert (await house.agent.post("/mine")).text == "their 405"
        assert (await house.agent.get("/fail")).text == "their ZeroDivisionError"
        assert "cache-control" not in (await house.agent.get("/mine")).headers


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/signals/unknown", 404),
        ("DELETE", "/signals", 405),
        ("GET", "/signals?x=1", 400),
        ("POST", "/signals", 415),
        ("GET", "/runs/current", 404),
    ],
)
async def test_our_routes_answer_with_problem_documents_in_their_app(method: str, path: str, status: int) -> None:
    """SRV-5: although the app has handlers for everything."""
    async with open_house(app=theirs()) as house:
        answer = await house.operator.request(method, path)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["cache-control"] == "no-store"
        assert ("allow" in answer.headers) == (status == 405)


async def test_a_fault_in_our_routes_is_not_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-5: a problem document, too."""
    async with open_house(app=theirs()) as house:
        monkeypatch.setattr(house.worker.store, "signals", lambda where: 1 / 0)
        answer = await house.operator.get("/signals")
        assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")


async def test_the_routes_can_be_below_a_prefix(house: House) -> None:
    """SRV-1: a blueprint for the user's own app, with their own /signals beside it."""
    app = QuartTrio("theirs")
    app.add_url_rule("/signals", "theirs", lambda: "their signals")
    access = Access.on("127.0.0.1", operator_token=OPERATOR)
    app.register_blueprint(agent_server(house.worker, access), url_prefix="/agents")
    client = app.test_client()
    headers = {"authorization": f"Bearer {OPERATOR}", "host": "localhost"}
    answer = await client.post("/agents/signals", json={"kind": "k"}, headers=headers)
    assert answer.status_code == 201
    assert answer.headers["location"].startswith("/agents/signals/")
    assert (await client.delete("/agents/runs", headers=headers)).status_code == 405
    assert (await client.get("/signals")).status_code == 200
    assert (await (await client.get("/signals")).get_data()) == b"their signals"


async def test_rebinding_reaches_our_routes_in_their_app_neither() -> None:
    """SRV-6: their own routes are theirs to guard, unless they say whole_app."""
    for whole_app, expected in ((False, 200), (True, 421)):
        async with open_house(app=theirs(), whole_app=whole_app) as house:
            foreign = {"host": "evil.example"}
            assert (await house.operator.get("/signals", headers=foreign)).status_code == 421
            assert (await house.agent.get("/mine", headers=foreign)).status_code == expected


async def test_a_route_of_theirs_that_would_hide_one_of_ours_is_refused(house: House) -> None:
    """SRV-1: nobody would notice which of the two answers; below a prefix both do, and / is theirs."""
    app = QuartTrio("theirs")
    app.add_url_rule("/", "home", lambda: "their home")
    app.add_url_rule("/login", "log_in", lambda: "their login", methods=["POST"])
    with pytest.raises(UsageError, match="POST /login"):
        install(app, house.worker)
    other = QuartTrio("theirs")
    other.add_url_rule("/", "home", lambda: "their home")
    other.add_url_rule("/login", "log_in", lambda: "their login", methods=["DELETE"])
    install(other, house.worker)
    assert await (await other.test_client().get("/", headers={"host": "localhost"})).get_data() == b"their home"


async def test_a_route_of_theirs_hides_ours_whatever_its_segments_are_called(house: House) -> None:
    """SRV-1: /runs/<anything> takes every run from us."""
    for path in ("/runs/<run>", "/sessions/<int:number>"):
        app = QuartTrio("theirs")
        app.add_url_rule(path, "theirs", lambda **segments: "theirs")
        with pytest.raises(UsageError, match=f"GET {path}"):
            install(app, house.worker)


async def test_a_route_of_theirs_that_ours_would_hide_keeps_the_app_from_being_served() -> None:
    """SRV-1: added after ours it would never be asked, and nobody would say so."""

    def add(app: QuartTrio) -> None:
        app.add_url_rule("/metrics", "theirs", lambda: "their metrics")

    with pytest.RaisesGroup(pytest.RaisesExc(CannotServe, match="GET /metrics"), flatten_subgroups=True):
        async with open_house(prepare=add):
            pytest.fail("it is served")


async def test_an_app_without_trio_is_refused_at_once(house: House) -> None:
    """SRV-1: it would answer every request with an error."""
    for app in (Quart("theirs"), "theirs"):
        with pytest.raises(UsageError, match="must be a QuartTrio"):
            install(app, house.worker)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="must be a QuartTrio"):
        Quart("theirs").register_blueprint(agent_server(house.worker, Access.on("127.0.0.1")))


async def test_the_routes_can_be_nested_in_a_blueprint_of_theirs(house: House) -> None:
    """SRV-1, SRV-5: and answer wrong methods there, too."""
    app, api = QuartTrio("theirs"), Blueprint("api", __name__)
    access = Access.on("127.0.0.1", operator_token=OPERATOR)
    api.register_blueprint(agent_server(house.worker, access), url_prefix="/agents")
    app.register_blueprint(api, url_prefix="/api")
    headers = {"authorization": f"Bearer {OPERATOR}", "host": "localhost"}
    assert (await app.test_client().get("/api/agents/signals", headers=headers)).status_code == 200
    refused = await app.test_client().delete("/api/agents/signals", headers=headers)
    assert (refused.status_code, refused.content_type) == (405, "application/problem+json")


async def test_an_app_has_one_agent_server(house: House) -> None:
    """SRV-8: with two, a request could come from two runs."""
    with pytest.raises(UsageError, match="install it once"):
        install(house.app, house.worker, url_prefix="/again")

"""Tokens, hosts and origins: who may ask what (SRV-6)."""

from __future__ import annotations

import pytest
from quart_trio import QuartTrio

from concorde_trio.errors import UsageError
from concorde_trio.server.access import Access, is_loopback
from concorde_trio.server.problems import Problem
from tests.server.house import OPERATOR, House, ask, open_house, request

AGENT = "agent-token-of-the-tests"


def bearing(*values: str) -> list[tuple[bytes, bytes]]:
    """Headers with these Authorization values."""
    return [(b"host", b"localhost"), *((b"authorization", value.encode("latin-1")) for value in values)]


def refusal(access: Access, *values: str, agent: bool = False) -> int | None:
    """The status with which a request is refused, None if it is not."""
    try:
        (access.check_agent if agent else access.check_operator)(bearing(*values))
    except Problem as problem:
        assert problem.document.headers["www-authenticate"].startswith("Bearer ")
        assert OPERATOR not in problem.document.detail
        return problem.document.status
    return None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "::1", "[::1]"])
def test_on_loopback_agents_need_no_token_and_operators_a_random_one(host: str) -> None:
    """SRV-6: the operator token is random at each start unless set."""
    first, second = Access.on(host), Access.on(host)
    assert first.operator_token != second.operator_token
    assert len(first.operator_token) >= 40
    assert first.agent_token is None
    assert refusal(first, agent=True) is None
    assert refusal(first, f"Bearer {second.operator_token}") == 401


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org"])
def test_beyond_loopback_both_tokens_must_be_set(host: str) -> None:
    """SRV-6: binding beyond loopback requires a set token for both scopes."""
    assert not is_loopback(host)
    for tokens in ({}, {"operator_token": OPERATOR}, {"agent_token": AGENT}):
        with pytest.raises(UsageError, match="set both operator_token and agent_token"):
            Access.on(host, **tokens)
    access = Access.on(host, operator_token=OPERATOR, agent_token=AGENT)
    assert refusal(access, agent=True) == 401
    assert refusal(access, f"Bearer {AGENT}", agent=True) is None
    assert refusal(access, f"Bearer {OPERATOR}", agent=True) is None
    assert refusal(access, f"Bearer {AGENT}") == 401


@pytest.mark.parametrize("token", ["", "short", "with spaces in the middle", "ümlaute-in-the-token", "x" * 15])
def test_a_token_that_is_none_is_refused_where_it_is_written(token: str) -> None:
    """SRV-6: a guessable or unsendable token is a mistake."""
    with pytest.raises(UsageError, match="operator_token must be"):
        Access.on("127.0.0.1", operator_token=token)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_agents_have_another_token_than_operators(host: str) -> None:
    """SRV-6: with the same one there would be one scope, and nobody would see it."""
    with pytest.raises(UsageError, match="are the same") as caught:
        Access.on(host, operator_token=OPERATOR, agent_token=OPERATOR)
    assert OPERATOR not in str(caught.value)


def test_a_token_is_not_in_what_is_printed_of_its_access() -> None:
    """SRV-6: a token in a log is no secret."""
    access = Access.on("0.0.0.0", operator_token=OPERATOR, agent_token=AGENT)
    assert OPERATOR not in repr(access)
    assert AGENT not in repr(access)


@pytest.mark.parametrize(
    "values",
    [
        (),
        ("",),
        ("Bearer",),
        ("Bearer ",),
        (f"Basic {OPERATOR}",),
        (OPERATOR,),
        (f"Bearer {OPERATOR}x",),
        (f"Bearer {OPERATOR[:-1]}",),
        (f"Bearer {OPERATOR.upper()}",),
        (f"Bearer {OPERATOR}, Bearer {OPERATOR}",),
        (f"Bearer {OPERATOR}", f"Bearer {OPERATOR}"),
        ("Bearer \xff\xfe",),
    ],
)
def test_anything_but_one_right_token_is_refused(values: tuple[str, ...]) -> None:
    """SRV-6: 401, with a challenge."""
    assert refusal(Access.on("127.0.0.1", operator_token=OPERATOR), *values) == 401


def test_the_scheme_is_written_as_one_likes() -> None:
    """SRV-6: HTTP compares schemes without case."""
    access = Access.on("127.0.0.1", operator_token=OPERATOR)
    assert refusal(access, f"bEARER   {OPERATOR} ") is None


def site(access: Access, method: str, **headers: str) -> int | None:
    """The status with which ``check_origin`` refuses, None if it does not."""
    given = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    try:
        access.check_origin(method, given)
    except Problem as problem:
        return problem.document.status
    return None


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "LOCALHOST", "127.0.0.1:1", "[::1]:80", "[::1]"])
def test_names_of_this_machine_are_its_own(host: str) -> None:
    """SRV-6: on loopback, the Host header names it."""
    assert site(Access.on("127.0.0.1"), "GET", host=host) is None


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "192.0.2.7", "localhost, localhost"]
)
def test_a_name_that_was_bound_to_loopback_elsewhere_is_refused(host: str) -> None:
    """SRV-6: against DNS rebinding, for reading too."""
    for method in ("GET", "POST"):
        assert site(Access.on("127.0.0.1"), method, host=host) == 421
    assert site(Access.on("127.0.0.1", hosts=[host.partition(":")[0]]), "GET", host=host) in (None, 421)


def test_beyond_loopback_any_name_is_right_unless_names_were_set() -> None:
    """SRV-6: there a token guards, and the server does not know its names."""
    tokens = {"operator_token": OPERATOR, "agent_token": AGENT}
    assert site(Access.on("0.0.0.0", **tokens), "POST", host="agents.example", origin="https://x.example") is None
    named = Access.on("0.0.0.0", **tokens, hosts=["agents.example"])
    assert site(named, "GET", host="agents.example:9") is None
    assert site(named, "GET", host="evil.example") == 421


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, None),
        ({"origin": "http://localhost:8000"}, None),
        ({"origin": "http://LOCALHOST:8000"}, None),
        ({"sec_fetch_site": "same-origin"}, None),
        ({"sec_fetch_site": "none"}, None),
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "http://localhost"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"origin": "http://[bad"}, 403),
        ({"origin": "file://localhost:8000"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
    ],
)
def test_another_sites_page_changes_nothing(headers: dict[str, str], status: int | None) -> None:
    """SRV-6: a browser sends such a POST for any page, without asking its user."""
    access = Access.on("127.0.0.1")
    assert site(access, "POST", host="localhost:8000", **headers) == status
    assert site(access, "GET", host="localhost:8000", **headers) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/signals"),
        ("GET", "/signals/x"),
        ("GET", "/runs"),
        ("GET", "/runs/x"),
        ("GET", "/locks"),
        ("POST", "/signals"),
        ("POST", "/signals/x/retry"),
        ("POST", "/signals/x/cancel"),
        ("POST", "/runs/x/cancel"),
    ],
)
async def test_operator_routes_ask_for_the_token_before_anything_else(house: House, method: str, path: str) -> None:
    """SRV-6: whatever shows payloads or prompts, or changes something."""
    answer = await house.agent.request(method, path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.headers["content-type"] == "application/problem+json"
    assert (await house.operator.request(method, path)).status_code not in (401, 403)


@pytest.mark.slow
async def test_agent_routes_are_open_on_loopback(house: House) -> None:
    """SRV-6: /runs/current and health."""
    statuses = [(await house.agent.get(path)).status_code for path in ("/healthz", "/readyz", "/runs/current")]
    assert statuses == [200, 200, 404]


@pytest.mark.slow
async def test_beyond_loopback_every_route_needs_a_token() -> None:
    """SRV-6: the built-in agent routes, the user's own, and what does not exist."""
    access = Access.on("0.0.0.0", operator_token=OPERATOR, agent_token=AGENT)

    def prepare(app: QuartTrio) -> None:
        app.add_url_rule("/mine", "mine", lambda: "mine")

    async with open_house(access=access, prepare=prepare) as house:
        for path in ("/healthz", "/readyz", "/runs/current", "/mine", "/nothing"):
            assert (await house.agent.get(path)).status_code == 401
            allowed = await house.agent.get(path, headers={"authorization": f"Bearer {AGENT}"})
            assert allowed.status_code in (200, 404)
        assert (await house.operator.get("/signals")).status_code == 200
        denied = await house.agent.get("/signals", headers={"authorization": f"Bearer {AGENT}"})
        assert denied.status_code == 401


@pytest.mark.slow
async def test_rebinding_and_other_sites_reach_the_users_own_routes_neither() -> None:
    """SRV-6: the user's routes are agent routes, open on loopback, so they are guarded alike."""

    def prepare(app: QuartTrio) -> None:
        app.add_url_rule("/spend", "spend", lambda: "spent", methods=["GET", "POST"])

    async with open_house(prepare=prepare) as house:
        for path in ("/spend", "/healthz", "/nothing"):
            foreign = await ask(house.url, request(path).replace(b"Host: localhost", b"Host: evil.example"))
            assert foreign is not None
            assert foreign.status == 421
        assert (await house.agent.post("/spend")).text == "spent"
        assert (await house.agent.post("/spend", headers={"origin": "http://evil.example"})).status_code == 403
        assert (await house.operator.post("/signals", headers={"origin": "http://evil.example"})).status_code == 403

"""The login page and its cookie over real HTTP, and what every answer of ours says to a browser."""

from __future__ import annotations

import logging
import re
from typing import Any

import httpx2
import pytest
from quart_trio import QuartTrio

from concorde_trio.server.access import Access
from tests.server.house import OPERATOR, House, open_house

pytestmark = pytest.mark.slow

AGENT = "agent-token-of-the-tests"
FORM = {"content-type": "application/x-www-form-urlencoded"}


async def log_in(browser: httpx2.AsyncClient, token: str = OPERATOR) -> httpx2.Response:
    """As the page's script does."""
    origin = str(browser.base_url).rstrip("/")
    return await browser.post("/login", json={"token": token}, headers={"origin": origin})


async def test_a_browser_logs_in_acts_and_logs_out(house: House) -> None:
    """SRV-6: the token of the link becomes a cookie; with it and the own origin everything of an operator."""
    browser, own = house.agent, {"origin": house.url}
    assert (await browser.get("/runs")).status_code == 401
    answer = await log_in(browser)
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await browser.get("/runs")).status_code == 200
    emitted = {"kind": "prompts", "payload": []}
    assert (await browser.post("/signals", json=emitted)).status_code == 403
    assert (await browser.post("/signals", json=emitted, headers={"origin": "http://localhost:1"})).status_code == 403
    assert (await browser.post("/signals", json=emitted, headers=own)).status_code == 201
    kept = dict(browser.cookies)
    assert (await browser.post("/logout", headers={"origin": "http://localhost:1"})).status_code == 403
    assert (await browser.post("/logout")).status_code == 403
    assert (await browser.get("/runs")).status_code == 200
    assert (await browser.post("/logout", headers=own)).status_code == 204
    assert not dict(browser.cookies)
    assert (await browser.get("/runs")).status_code == 401
    copied = "; ".join(f"{name}={value}" for name, value in kept.items())
    assert (await browser.get("/runs", headers={"cookie": copied})).status_code == 401


async def test_a_browser_without_scripts_logs_in_by_the_form(house: House) -> None:
    """SRV-6: the same by a plain form, that leads to the page above; a wrong token to the page again."""
    browser, own = house.agent, {"origin": house.url, **FORM}
    wrong = await browser.post("/login", content=b"token=wrong-token-of-the-tests", headers=own)
    assert (wrong.status_code, wrong.headers["content-type"]) == (403, "text/html; charset=utf-8")
    assert "not the operator token" in wrong.text
    assert "wrong-token" not in wrong.text
    right = await browser.post("/login", content=f"token={OPERATOR}".encode(), headers=own)
    assert (right.status_code, right.headers["location"]) == (303, "dashboard")
    assert (await browser.get("/runs")).status_code == 200
    out = await browser.post("/logout", content=b"", headers=own)
    assert (out.status_code, out.headers["location"]) == (303, "login")
    assert (await browser.get("/runs")).status_code == 401


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ({"json": {"token": "wrong-token-of-the-tests"}}, 403),
        ({"json": {"token": 1}}, 400),
        ({"json": {}}, 400),
        ({"json": []}, 400),
        ({"json": {"token": OPERATOR, "more": 1}}, 400),
        ({"content": b"{", "headers": {"content-type": "application/json"}}, 400),
        ({"content": b"token", "headers": {"content-type": "text/plain"}}, 415),
        ({"content": b"x" * 20_000, "headers": FORM}, 413),
        ({"content": b"token=a&" * 20, "headers": FORM}, 403),
        ({"content": b"\xff=\xff&token=%ff", "headers": FORM}, 403),
        ({"json": {"token": OPERATOR}, "headers": {"origin": "http://evil.example"}}, 403),
        ({"json": {"token": OPERATOR}, "headers": {"host": "evil.example"}}, 421),
    ],
)
async def test_no_other_login_gives_a_cookie(house: House, how: dict[str, Any], status: int) -> None:
    """SRV-5, SRV-6: each refused as what it is."""
    answer = await house.agent.post("/login", **how)
    assert answer.status_code == status
    assert "set-cookie" not in answer.headers


async def test_a_token_in_an_address_is_refused_and_logs_nobody_in(house: House) -> None:
    """SRV-6: addresses stay in logs and histories."""
    answer = await house.agent.get(f"/login?token={OPERATOR}")
    assert answer.status_code == 400
    assert OPERATOR not in answer.text
    assert "set-cookie" not in answer.headers


async def test_a_login_and_its_token_are_in_no_log(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """SRV-6: neither the token nor the cookie, at any level."""
    with caplog.at_level(logging.DEBUG):
        cookie = (await log_in(house.agent)).headers["set-cookie"].partition(";")[0].partition("=")[2]
        await house.agent.get("/runs")
        await log_in(house.agent, "wrong-token-of-the-tests")
    ours = "\n".join(
        record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))
    )
    for secret in (OPERATOR, cookie, "wrong-token"):
        assert secret not in ours


async def test_the_login_page_needs_nothing_from_anywhere_and_holds_no_script(house: House) -> None:
    """SRV-6: its policy allows what this server has alone, so the page works with nothing else."""
    page = await house.agent.get("/login")
    policy = page.headers["content-security-policy"]
    assert re.findall(r"(\S+-src) ([^;]+)", policy) == [
        ("default-src", "'none'"),
        ("script-src", "'self'"),
        ("style-src", "'self'"),
        ("img-src", "'self' data:"),
        ("connect-src", "'self'"),
    ]
    for directive in ("base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"):
        assert directive in policy
    assert not re.search(r"<style|<script>|\son\w+=|style=|https?://", page.text)
    for place, kind in (("login/page.js", "text/javascript"), ("login/page.css", "text/css")):
        assert place in page.text
        assert (await house.agent.get(f"/{place}")).headers["content-type"] == f"{kind}; charset=utf-8"


@pytest.mark.parametrize("own_app", [False, True])
async def test_every_answer_of_ours_tells_browsers_to_keep_and_lend_nothing(own_app: bool) -> None:
    """SRV-6: every route there is, whatever it answers; and none of the user's own where ours are a part of it."""
    theirs = QuartTrio("theirs")
    theirs.add_url_rule("/mine", "mine", lambda: "mine")
    async with open_house(app=theirs if own_app else None) as house:
        routes = [rule for rule in house.app.url_map.iter_rules() if rule.endpoint.startswith("concorde_trio")]
        assert len(routes) > 20
        for rule in routes:
            path = re.sub(r"<[^>]*>", "x", rule.rule)
            for method in (rule.methods or set()) - {"OPTIONS", "HEAD"}:
                # Never an endless stream: nobody is asked for by that name.
                for client in (house.agent, house.operator):
                    async with client.stream(method, path) as answer:
                        headers = answer.headers
                    assert headers["cache-control"] == "no-store", path
                    assert headers["x-content-type-options"] == "nosniff", path
                    assert "default-src 'none'" in headers["content-security-policy"], path
                    assert "frame-ancestors 'none'" in headers["content-security-policy"], path
                    assert headers["cross-origin-resource-policy"] == "same-origin", path
                    assert headers["referrer-policy"] in ("no-referrer", "same-origin"), path
        if own_app:
            mine = (await house.agent.get("/mine")).headers
            assert not {"content-security-policy", "cache-control", "referrer-policy"} & set(mine)


async def test_a_logged_in_browser_may_open_the_users_own_pages_beyond_loopback() -> None:
    """SRV-6: they are agent routes, and whoever is an operator is let in there too."""
    app = QuartTrio("theirs")
    app.add_url_rule("/mine", "mine", lambda: "mine")
    access = Access.on("0.0.0.0", operator_token=OPERATOR, agent_token=AGENT)
    async with open_house(app=app, access=access, whole_app=True) as house:
        assert (await house.agent.get("/mine")).status_code == 401
        assert (await house.agent.get("/login")).status_code == 200
        assert (await log_in(house.agent)).status_code == 204
        assert (await house.agent.get("/mine")).text == "mine"

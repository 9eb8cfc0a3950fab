"""What nobody should send to the routes of sessions: refused by what was expected, never a 500 (SRV-5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.server.house import OPERATOR, ask, request
from tests.server.session_house import SessionHouse, open_session_house

pytestmark = pytest.mark.slow

AUTH = f"authorization: Bearer {OPERATOR}"


@pytest.fixture
async def house(caplog: pytest.LogCaptureFixture) -> AsyncIterator[SessionHouse]:
    """A served worker with a session, that logs no fault and still works after the test."""
    async with open_session_house() as opened:
        await opened.say("ann", "hello")
        await opened.model.answer("ann", "hi")
        await opened.until("ann", run=None, on="input")
        yield opened
        await opened.say("after", "hello")
        await opened.model.answer("after", "hi")
        await opened.until("after", run=None, on="input")
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, "text"),
        ({"text": ""}, "text"),
        ({"text": " \n"}, "text"),
        ({"text": None}, "text"),
        ({"text": 5}, "text"),
        ({"text": "a\0b"}, "text"),
        ({"text": "a", "id": ""}, "id"),
        ({"text": "a", "id": 5}, "id"),
        ({"text": "a", "id": "x" * 201}, "id"),
        ({"text": "a", "id": "a\nb"}, "id"),
        ({"text": "a", "id": "prompt_1-1"}, "id"),
        ({"text": "a", "sender": ["Ann"]}, "sender"),
        ({"text": "a", "attachments": {}}, "attachments"),
        ({"text": "a", "attachments": "x"}, "attachments"),
        ({"text": "a", "attachments": ["\0"]}, "attachment 0"),
        ({"text": "a", "more": 1}, "more"),
        ([], "body"),
    ],
)
async def test_a_wrong_input_is_refused_with_its_place(house: SessionHouse, body: Any, place: str) -> None:
    """SRV-5, SES-10: and nothing of it is left."""
    answer = await house.operator.post("/sessions/bob/input", json=body)
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["place"].startswith(place)
    assert await house.harness.store.session("bob") is None


async def test_a_text_that_fits_no_signal_is_refused_before_it_is_accepted(house: SessionHouse) -> None:
    """SIG-5, SES-20: what could not become a signal is not half accepted."""
    answer = await house.operator.post("/sessions/bob/input", json={"text": "x" * 1_500_000, "id": "long"})
    assert answer.status_code == 400, answer.text
    assert await house.harness.store.input("long") is None


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/sessions?x=1", 400),
        ("GET", "/sessions?limit=0", 400),
        ("GET", "/sessions?limit=201", 400),
        ("GET", "/sessions?before=x", 400),
        ("GET", "/sessions?before=nan:a", 400),
        ("GET", "/sessions?before=1e999:a", 400),
        ("GET", "/sessions?before=1:%00", 400),
        ("GET", "/sessions?before=-1:", 200),
        ("GET", "/sessions?prefix=", 400),
        ("GET", "/sessions?prefix=a&prefix=b", 400),
        ("GET", "/sessions?prefix=%25", 200),
        ("GET", "/sessions/", 404),
        ("GET", "/sessions/nobody", 404),
        ("GET", "/sessions/nobody/messages", 404),
        ("GET", "/sessions/%00", 400),
        ("GET", "/sessions/%FF", 400),
        ("GET", "/sessions/%ED%A0%80", 400),
        ("GET", "/sessions/%zz", 404),
        ("GET", "/sessions/%", 404),
        ("GET", "/sessions/" + "x" * 201, 400),
        ("GET", "/sessions/%0Aann", 400),
        ("GET", "/sessions/ann/messages?after=-1", 400),
        ("GET", "/sessions/ann/messages?after=99999999999999999999", 400),
        ("GET", "/sessions/ann/messages?after=0&limit=x", 400),
        ("GET", "/sessions/ann/more", 404),
        ("GET", "/sessions/ann/input", 405),
        ("DELETE", "/sessions/ann", 405),
        ("POST", "/sessions", 405),
        ("POST", "/sessions/nobody/interrupt", 404),
        ("POST", "/sessions/nobody/resume", 404),
        ("POST", "/sessions/nobody/compact", 404),
        ("POST", "/sessions/%00/interrupt", 400),
        ("POST", "/sessions/ann/interrupt?force=1", 400),
        ("POST", "/sessions/ann/approvals/x", 415),
        ("POST", "/sessions/%FF/input", 400),
        ("POST", "/sessions/ann/input", 415),
        ("DELETE", "/sessions/ann/inputs/%00", 404),
        ("DELETE", "/sessions/ann/inputs/%F0", 400),
        ("DELETE", "/sessions/ann/inputs/x%2Fy", 404),
        ("GET", "/sessions/%00/live", 400),
        ("GET", "/sessions/ann/live?x=1", 400),
        ("HEAD", "/sessions/ann/live", 200),
        ("GET", "//sessions/ann%2Fb", 404),
        ("GET", "http://localhost/sessions/ann", 200),
    ],
)
async def test_a_wrong_request_is_answered_by_what_is_wrong(
    house: SessionHouse, method: str, target: str, status: int
) -> None:
    """SRV-5: whatever stands in the path and the query."""
    answer = await ask(house.url, request(target, AUTH, method=method))
    assert answer is not None
    assert answer.status == status, answer.body
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json["detail"]


@pytest.mark.parametrize("allow", [None, 1, "yes", [], {}])
async def test_an_answer_that_is_neither_yes_nor_no_is_refused(house: SessionHouse, allow: Any) -> None:
    """SES-18: nothing is allowed by a mistake."""
    answer = await house.operator.post("/sessions/ann/approvals/x", json={"allow": allow})
    assert answer.status_code == 400 and "true or false" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/sessions"),
        ("GET", "/sessions/ann"),
        ("GET", "/sessions/ann/messages"),
        ("GET", "/sessions/ann/live"),
        ("POST", "/sessions/ann/input"),
        ("POST", "/sessions/ann/interrupt"),
        ("POST", "/sessions/ann/approvals/x"),
        ("DELETE", "/sessions/ann/inputs/x"),
    ],
)
async def test_sessions_are_for_operators_alone(house: SessionHouse, method: str, path: str) -> None:
    """SRV-6: transcripts are shown, and sessions steered, with the token and not without."""
    answer = await house.agent.request(method, path)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    if method != "GET":
        foreign = await house.operator.request(method, path, headers={"origin": "https://evil.example"})
        assert foreign.status_code == 403

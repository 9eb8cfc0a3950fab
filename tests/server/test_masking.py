"""No live tag leaves the server, and no secret enters its log."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from quart import abort
from quart_trio import QuartTrio

from concorde_trio.errors import StoreBusy, StoreError
from tests.server.house import OPERATOR, House, ask, open_house, request

pytestmark = pytest.mark.slow

TAG = 'tag-"with\\odd/signs%<&>'
MASK = "[run tag]"
AUTH = f"authorization: Bearer {OPERATOR}"
PAYLOAD = "a-secret-of-the-payload"


async def start(house: House) -> str:
    """A run in flight whose tag stands wherever a tag can stand."""
    signal_id = await house.worker.emit(
        "prompts",
        [{"text": f"Send {TAG} along.", "session": "ann", "tag": TAG, "context": {TAG: [f"<{TAG}>"]}}],
        key=f"key {TAG}",
    )
    await house.runs.until_running("ann")
    return signal_id


def has_tag(text: bytes) -> bool:
    """Whether the tag stands in an answer, as it is or as JSON writes it."""
    return any(form.encode() in text for form in (TAG, json.dumps(TAG)[1:-1]))


async def test_a_live_tag_is_masked_in_everything_that_is_shown(house: House) -> None:
    """TAG-4: prompts, contexts, payloads, keys; as values and as names."""
    signal_id = await start(house)
    for path in ("/signals", f"/signals/{signal_id}", "/runs", f"/runs/{signal_id}-1", "/locks"):
        answer = await house.operator.get(path)
        assert answer.status_code == 200
        assert not has_tag(answer.content), path
    run = (await house.operator.get(f"/runs/{signal_id}-1")).json()
    assert run["prompt"] == f"Send {MASK} along."
    assert "tag" not in run
    mine = await ask(house.url, request("/runs/current", f"concorde-run-tag: {TAG}"))
    assert mine is not None
    assert mine.status == 200
    assert not has_tag(mine.body)
    assert mine.json["context"] == {MASK: [f"<{MASK}>"]}


async def test_the_tag_of_a_waiting_run_is_masked_before_it_is_live(house: House) -> None:
    """TAG-4: who reads it now could use it later."""
    await house.start(session="ann")
    await house.worker.emit("prompts", [{"text": f"Send {TAG}.", "session": "ann", "tag": TAG}])
    while not (runs := (await house.operator.get("/runs?state=pending")).json()["runs"]):
        pass
    assert runs[0]["prompt"] == f"Send {MASK}."


@pytest.mark.parametrize(
    ("target", "lines", "method"),
    [
        ("/TAG", (), "GET"),
        ("/signals/TAG", (), "GET"),
        ("/signals?TAG=1", (), "GET"),
        ("/signals?state=TAG", (), "GET"),
        ("/signals?kind=%00TAG", (), "GET"),
        ("/runs?limit=TAG", (), "GET"),
        ("/signals", ("content-type: TAG",), "POST"),
        ("/signals", ("content-type: application/json", "transfer-encoding: chunked"), "POST"),
        ("/signals", ("idempotency-key: TAG", "idempotency-key: x"), "POST"),
    ],
)
async def test_a_live_tag_is_masked_in_errors_that_repeat_what_was_sent(
    house: House, target: str, lines: tuple[str, ...], method: str
) -> None:
    """TAG-4: error text included."""
    await start(house)
    quoted = "".join(f"%{ord(character):02X}" for character in TAG)
    sent = [line.replace("TAG", TAG) for line in lines]
    body = json.dumps({"kind": "k", TAG: 1}).encode()
    chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if "chunked" in str(lines) else b""
    answer = await ask(house.url, request(target.replace("TAG", quoted), AUTH, *sent, method=method, body=chunk))
    assert answer is not None
    assert 400 <= answer.status < 500
    assert not has_tag(answer.body)


@pytest.mark.parametrize("error", [StoreError(f"disk full near {TAG}"), StoreBusy(f"busy with {TAG}")])
async def test_an_error_of_the_store_is_a_503_without_tags(
    house: House, monkeypatch: pytest.MonkeyPatch, error: StoreError
) -> None:
    """SRV-5, TAG-4: it says what happened, and whether trying again helps."""
    await start(house)

    async def fail(*_: Any) -> Any:
        raise error

    for name in ("signals", "emit", "last_position"):
        monkeypatch.setattr(house.worker.store, name, fail)
    for answer in (
        await house.operator.get("/signals"),
        await house.operator.post("/signals", json={"kind": "k"}),
        await house.agent.get("/readyz"),
    ):
        assert answer.status_code == 503
        assert answer.headers["content-type"] == "application/problem+json"
        assert MASK in answer.json()["detail"]
        assert not has_tag(answer.content)
    assert ("retry-after" in (await house.operator.get("/signals")).headers) == isinstance(error, StoreBusy)


async def test_a_fault_of_ours_is_a_500_that_says_nothing_and_a_log_line_that_says_where(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """SRV-5: no traceback for the client; no tag, token or payload for the log."""
    await start(house)

    async def fail(*_: Any) -> Any:
        raise ZeroDivisionError(f"{TAG} {OPERATOR} {PAYLOAD}")

    monkeypatch.setattr(house.worker.store, "emit", fail)
    answer = await house.operator.post("/signals", json={"kind": "k", "payload": PAYLOAD})
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "ZeroDivision" not in answer.text
    assert "ZeroDivisionError at" in caplog.text
    assert "/signals" in caplog.text
    for secret in (TAG, OPERATOR, PAYLOAD):
        assert secret not in caplog.text


async def test_nothing_that_a_client_sends_is_in_the_log(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """TAG-4: no tag, token or payload at any level of our log, whatever the answer."""
    with caplog.at_level(logging.DEBUG, logger="concorde_trio"), caplog.at_level(logging.DEBUG, logger="hypercorn"):
        await start(house)
        body = json.dumps({"kind": "k", "payload": PAYLOAD}).encode()
        framing = ("content-type: application/json", f"content-length: {len(body)}")
        quoted = "".join(f"%{ord(character):02X}" for character in TAG)
        for data in (
            request("/signals", AUTH, *framing, f"concorde-run-tag: {TAG}", method="POST", body=body),
            request("/signals", *framing, method="POST", body=body),
            request(f"/{quoted}?{PAYLOAD}", AUTH),
            request("/signals", AUTH, "content-type: application/json", "content-length: 9000000", method="POST"),
            f"GET /{PAYLOAD} HTTP/1.1\r\n{AUTH}\r\nconcorde-run-tag: {TAG}\r\n\r\n".encode(),
            f"{PAYLOAD} {OPERATOR} {TAG}\r\n\r\n".encode(),
        ):
            await ask(house.url, data)
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    for secret in (TAG, OPERATOR, PAYLOAD):
        assert secret not in "\n".join(ours)


async def test_a_route_of_the_users_that_fails_is_answered_and_logged_without_tags(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SRV-5, TAG-4: in an app of ours, with their traceback for them."""

    def prepare(app: QuartTrio) -> None:
        @app.get("/fail")
        async def fail() -> str:
            raise ValueError(f"their own fault, {TAG}")

        @app.get("/teapot")
        async def teapot() -> str:
            abort(418, f"short and stout, {TAG}")

    async with open_house(prepare=prepare) as house:
        await start(house)
        answer = await house.agent.get("/fail")
        assert answer.status_code == 500
        assert "their own fault" not in answer.text
        assert f"their own fault, {MASK}" in caplog.text
        assert TAG not in caplog.text
        teapot = await house.agent.get("/teapot")
        assert (teapot.status_code, teapot.json()["detail"]) == (418, f"short and stout, {MASK}")

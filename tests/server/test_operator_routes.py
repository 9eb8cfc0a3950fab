"""What operators see and do over HTTP, on a real worker."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from concorde_trio.records import RunState
from tests.server.house import OPERATOR, House, ask, request, wire

pytestmark = pytest.mark.slow


async def emit(house: House, *prompts: dict[str, Any], key: str | None = None, kind: str = "prompts") -> str:
    """POST /signals, and the id."""
    headers = {} if key is None else {"idempotency-key": key}
    body = {"kind": kind, "payload": [{"text": "do it", **prompt} for prompt in prompts]}
    answer = await house.operator.post("/signals", json=body, headers=headers)
    assert answer.status_code in (200, 201)
    assert answer.headers["location"] == f"/signals/{answer.json()['id']}"
    return str(answer.json()["id"])


async def get(house: House, path: str) -> Any:
    """A document; its headers are checked."""
    answer = await house.operator.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    return answer.json()


async def refused(house: House, status: int, method: str, path: str, **how: Any) -> Any:
    """A problem document, with the headers of all our answers."""
    answer = await house.operator.request(method, path, **how)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["title"]
    assert len(problem["detail"]) > 10
    return {**problem, "headers": answer.headers}


async def test_an_emitted_signal_becomes_runs_that_can_be_looked_at(house: House) -> None:
    """SRV-2, SRV-3: from POST /signals to /runs/{id}."""
    signal_id = await emit(house, {"session": "ann", "context": {"user": "ann"}}, {"session": "bob"})
    await house.runs.until_running("ann", "bob")
    signal = await get(house, f"/signals/{signal_id}")
    assert (signal["id"], signal["kind"], signal["state"]) == (signal_id, "prompts", "processing")
    assert [run["session"] for run in signal["runs"]] == ["ann", "bob"]
    run = await get(house, f"/runs/{signal['runs'][0]['id']}")
    assert (run["state"], run["prompt"], run["context"]) == ("running", "do it", {"user": "ann"})
    house.runs.let_all_go()
    await house.worker.wait_settled(signal_id)
    run = await get(house, f"/runs/{signal['runs'][0]['id']}")
    assert (run["state"], run["text"]) == ("done", "do it")


async def test_a_repeated_key_gives_the_first_signal(house: House) -> None:
    """SIG-7, SRV-3: 201, then 200 and the same id; another kind is another signal."""
    headers = {"idempotency-key": "telegram-4711 \u00e9".encode()}
    answers = [
        await house.operator.post("/signals", json={"kind": kind, "payload": payload}, headers=headers)
        for kind, payload in (("a", 1), ("a", 1), ("a", 2), ("b", 1))
    ]
    assert [answer.status_code for answer in answers] == [201, 200, 200, 201]
    ids = [answer.json()["id"] for answer in answers]
    assert ids[0] == ids[1] == ids[2] != ids[3]
    first = await get(house, f"/signals/{ids[0]}")
    assert (first["key"], first["payload"]) == ("telegram-4711 \u00e9", 1)


@pytest.mark.parametrize("payload", [None, True, 0, -1.5, "", "text \U0001f600", [], {}, [1, [2, {"a": None}]], 10**30])
async def test_a_payload_is_given_back_equal(house: House, payload: object) -> None:
    """SIG-5: any JSON value, null included."""
    answer = await house.operator.post("/signals", json={"kind": "other", "payload": payload})
    assert (await get(house, f"/signals/{answer.json()['id']}"))["payload"] == payload


async def test_a_payload_that_is_left_out_is_null(house: House) -> None:
    """SIG-5: a kind can say it all."""
    answer = await house.operator.post("/signals", json={"kind": "other"})
    assert (await get(house, f"/signals/{answer.json()['id']}"))["payload"] is None


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b"", "body"),
        (b"{", "line 1, column 2"),
        (b"[]", "body"),
        (b"null", "body"),
        (b"{}", "kind"),
        (b'{"kind": 1}', "kind"),
        (b'{"kind": null}', "kind"),
        (b'{"kind": ""}', None),
        (b'{"kind": "a\\u0000b"}', None),
        (b'{"kind": "a\\ud800"}', "body"),
        (b'{"kind": "' + b"k" * 201 + b'"}', None),
        (b'{"kind": "k", "key": "x"}', "key"),
        (b'{"kind": "k", "kind": "l"}', "the key 'kind'"),
        (b'{"kind": "k", "payload": {"a": 1, "a": 2}}', "the key 'a'"),
        (b'{"kind": "k", "payload": NaN}', "NaN"),
        (b'{"kind": "k", "payload": "\\ud800"}', "body"),
        (b'{"kind": "k", "payload": [{"a": "\\u0000"}]}', "payload[0].a"),
        (b'{"kind": "k", "payload": "' + b"x" * 1_000_001 + b'"}', "payload"),
        (b'{"kind": "k", "payload": ' + b"[" * 200 + b"]" * 200 + b"}", None),
        (b'{"kind": "k", "payload": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "body"),
    ],
)
async def test_a_body_that_is_wrong_is_refused_with_the_place(house: House, body: bytes, place: str | None) -> None:
    """SIG-5, SRV-5: 400; nothing is stored."""
    problem = await refused(house, 400, "POST", "/signals", content=body, headers={"content-type": "application/json"})
    assert place is None or problem["place"] == place
    assert (await get(house, "/signals"))["signals"] == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"content-type": "\u00e4".encode()},
    ],
)
async def test_another_content_type_is_refused(house: House, headers: dict[str, Any]) -> None:
    """SRV-5: 415."""
    await refused(house, 415, "POST", "/signals", content=b'{"kind": "k"}', headers=headers)


async def test_a_body_beyond_the_bound_is_refused(house: House) -> None:
    """SRV-5: 413."""
    headers = {"content-type": "application/json"}
    await refused(house, 413, "POST", "/signals", content=b" " * 2_000_001, headers=headers)


@pytest.mark.parametrize("key", ["", "k" * 201, "a\tb"])
async def test_a_key_that_is_no_name_is_refused(house: House, key: str) -> None:
    """SIG-7: a key is 1 to 200 characters, as names are."""
    await refused(house, 400, "POST", "/signals", json={"kind": "k"}, headers={"idempotency-key": key})


async def test_two_keys_and_bytes_that_are_no_text_are_refused(house: House) -> None:
    """SIG-7: one header, in UTF-8."""
    lines = ("content-type: application/json", "content-length: 12", f"authorization: Bearer {OPERATOR}")
    for keys in (("idempotency-key: a", "idempotency-key: b"), ("idempotency-key: \xff\xff",)):
        answer = await ask(house.url, request("/signals", *lines, *keys, method="POST", body=b'{"kind":"k"}'))
        assert answer is not None
        assert answer.status == 400
        assert answer.json["place"] == "Idempotency-Key"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/signals", "GET, HEAD, OPTIONS, POST"),
        ("PUT", "/signals/x", "GET, HEAD, OPTIONS"),
        ("GET", "/signals/x/cancel", "OPTIONS, POST"),
        ("POST", "/runs", "GET, HEAD, OPTIONS"),
        ("PATCH", "/runs/current", "GET, HEAD, OPTIONS"),
        ("POST", "/locks", "GET, HEAD, OPTIONS"),
        ("BREW", "/healthz", "GET, HEAD, OPTIONS"),
    ],
)
async def test_a_wrong_method_is_told_the_right_ones(house: House, method: str, path: str, allowed: str) -> None:
    """SRV-5: 405 with Allow."""
    problem = await refused(house, 405, method, path)
    assert problem["headers"]["allow"] == allowed


@pytest.mark.parametrize("given", ["nothing", "x" * 300, "%00", "%ff", "%2e%2e%2e", "a'b", "%F0%9F%98%80", "-1", "0"])
async def test_an_id_that_nothing_has_is_not_found(house: House, given: str) -> None:
    """SRV-5: malformed or unknown, 404."""
    for what in ("signals", "runs"):
        await refused(house, 404, "GET", f"/{what}/{given}")
        await refused(house, 404, "POST", f"/{what}/{given}/cancel")
    await refused(house, 404, "POST", f"/signals/{given}/retry")


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/signals?limit=0", "limit"),
        ("/signals?limit=201", "limit"),
        ("/signals?limit=-1", "limit"),
        ("/signals?limit=", "limit"),
        ("/signals?limit=1.0", "limit"),
        ("/signals?limit=%D9%A1", "limit"),
        ("/signals?limit=1&limit=1", "limit"),
        ("/signals?before=0", "before"),
        ("/signals?before=9223372036854775808", "before"),
        ("/signals?before=" + "9" * 5000, "before"),
        ("/signals?state=ended", "state"),
        ("/signals?kind=", "kind"),
        ("/signals?kind=%00", "kind"),
        ("/signals?session=ann", "session"),
        ("/signals?Limit=5", "Limit"),
        ("/signals/x?limit=5", "limit"),
        ("/runs?state=processing", "state"),
        ("/runs?resource=" + "x" * 201, "resource"),
        ("/runs?color=red", "color"),
        ("/runs/x?why", "why"),
        ("/locks?space=room", "space"),
        ("/locks?after=room:x", "after"),
        ("/locks?before=1", "before"),
        ("/runs/current?x=1", "x"),
    ],
)
async def test_a_parameter_that_is_unknown_or_out_of_range_is_refused(house: House, path: str, place: str) -> None:
    """SRV-2: refused by name, never clamped or ignored."""
    assert (await refused(house, 400, "GET", path))["place"] == place


async def test_pages_of_signals_lead_through_all_of_them(house: House) -> None:
    """SRV-2: newest first, with a cursor; filters hold over pages."""
    ids = [await emit(house, kind=f"kind{number % 2}") for number in range(7)]
    for signal_id in ids:
        await house.worker.wait_settled(signal_id)
    found: list[str] = []
    path = "/signals?limit=2"
    while True:
        page = await get(house, path)
        found += [signal["id"] for signal in page["signals"]]
        if page["next"] is None:
            break
        path = f"/signals?limit=2&before={page['next']}"
    assert found == ids[::-1]
    ones = await get(house, "/signals?kind=kind1&state=failed&limit=200")
    assert [signal["id"] for signal in ones["signals"]] == ids[1::2][::-1]
    assert (await get(house, "/signals?state=done"))["signals"] == []


async def test_runs_are_listed_by_signal_session_resource_and_state(house: House) -> None:
    """SRV-2: each filter, and all together."""
    first = await emit(house, {"session": "ann", "resources": ["budget"]}, {"session": "bob", "resources": ["car"]})
    await emit(house, {"session": "ann", "resources": ["car", "budget"]})
    await house.runs.until_running("ann", "bob")
    with trio.fail_after(5):
        while len((await get(house, "/runs"))["runs"]) < 3:
            await trio.sleep(0.01)
    for query, count in (
        ("", 3),
        (f"signal={first}", 2),
        ("signal=nothing", 0),
        ("signal=a%20b", 0),
        ("session=ann", 2),
        ("resource=budget", 2),
        ("resource=car", 2),
        ("state=running", 2),
        ("state=pending&session=ann&resource=car", 1),
        ("limit=1", 1),
    ):
        assert len((await get(house, f"/runs?{query}"))["runs"]) == count, query
    page = await get(house, "/runs?limit=2")
    rest = await get(house, f"/runs?limit=2&before={page['next']}")
    assert [run["position"] for run in page["runs"] + rest["runs"]] == [3, 2, 1]
    assert rest["next"] is None


async def test_a_waiting_run_says_for_whom_and_the_locks_say_it_too(house: House) -> None:
    """LCK-7: each missing lock, its holder, the position, the root."""
    first = await emit(house, {"session": "ann", "resources": ["budget"]})
    await house.runs.until_running("ann")
    second = await emit(house, {"session": "bob", "resources": ["budget"]})
    third = await emit(house, {"session": "bob"})
    with trio.fail_after(5):
        while len((await get(house, "/runs?state=pending"))["runs"]) < 2:
            await trio.sleep(0.01)
    why = (await get(house, f"/runs/{third}-1"))["waits_for"]
    assert [(edge["space"], edge["name"], edge["blocker"]["run_id"]) for edge in why["edges"]] == [
        ("session", "bob", f"{second}-1")
    ]
    assert why["root"]["run_id"] == f"{first}-1"
    assert (await get(house, f"/runs/{first}-1"))["waits_for"] is None
    locks = (await get(house, "/locks"))["locks"]
    assert [(lock["space"], lock["name"]) for lock in locks] == [
        ("session", "ann"),
        ("session", "bob"),
        ("resource", "budget"),
    ]
    assert [run["run_id"] for run in locks[2]["holders"]] == [f"{first}-1"]
    assert [run["run_id"] for run in locks[2]["waiting"]] == [f"{second}-1"]
    page = await get(house, "/locks?limit=2")
    assert [lock["name"] for lock in page["locks"]] == ["ann", "bob"]
    assert [lock["name"] for lock in (await get(house, f"/locks?after={page['next']}"))["locks"]] == ["budget"]
    assert [lock["name"] for lock in (await get(house, "/locks?space=session&name=bob"))["locks"]] == ["bob"]
    assert (await get(house, "/locks?limit=3"))["next"] is None


async def test_a_run_can_be_cancelled_once(house: House) -> None:
    """RUN-6: 202 when asked, 409 when it is over."""
    signal_id = await emit(house, {"session": "ann"})
    await house.runs.until_running("ann")
    answer = await house.operator.post(f"/runs/{signal_id}-1/cancel")
    assert answer.status_code == 202
    await house.worker.wait_settled(signal_id)
    run = await get(house, f"/runs/{signal_id}-1")
    assert run["state"] == RunState.CANCELLED
    await refused(house, 409, "POST", f"/runs/{signal_id}-1/cancel")


async def test_a_signal_can_be_cancelled_and_then_retried(house: House) -> None:
    """RUN-6, PST-5: retry is for settled signals, cancel for others."""
    signal_id = await emit(house, {"session": "ann"})
    await house.runs.until_running("ann")
    await refused(house, 409, "POST", f"/signals/{signal_id}/retry")
    assert (await house.operator.post(f"/signals/{signal_id}/cancel")).status_code == 202
    await house.worker.wait_settled(signal_id)
    await refused(house, 409, "POST", f"/signals/{signal_id}/cancel")
    answer = await house.operator.post(f"/signals/{signal_id}/retry")
    assert answer.status_code == 201
    again = await get(house, answer.headers["location"])
    assert (again["retry_of"], again["kind"]) == (signal_id, "prompts")


async def test_an_action_takes_no_body(house: House) -> None:
    """SRV-5: what would be ignored is refused."""
    signal_id = await emit(house)
    await house.worker.wait_settled(signal_id)
    await refused(house, 400, "POST", f"/signals/{signal_id}/retry", json={"payload": 2})
    assert (await house.operator.post(f"/signals/{signal_id}/retry", json={})).status_code == 201


async def test_a_page_of_large_documents_is_cut_and_can_be_continued(house: House) -> None:
    """SRV-5: what the server says is bounded, too."""
    for _ in range(6):
        await house.worker.emit("large", "x" * 900_000)
    first = await get(house, "/signals?limit=6")
    assert len(first["signals"]) == 4
    rest = await get(house, f"/signals?limit=6&before={first['next']}")
    assert [signal["seq"] for signal in first["signals"] + rest["signals"]] == [6, 5, 4, 3, 2, 1]
    assert rest["next"] is None


async def test_readiness_tells_a_running_worker_from_one_that_stops(house: House) -> None:
    """SRV-7: 200, then 503 that says why; health stays 200."""
    answer = await house.agent.get("/readyz")
    assert (answer.status_code, answer.json()["worker"], answer.json()["store"]) == (200, "running", "ok")
    await emit(house, {"session": "ann"})
    await house.runs.until_running("ann")
    house.worker.stop("drain")
    with trio.fail_after(5):
        while house.worker.status == "running":
            await trio.sleep(0.01)
    problem = await refused(house, 503, "GET", "/readyz")
    assert (problem["worker"], problem["store"]) == ("stopping", "ok")
    assert (await house.agent.get("/healthz")).status_code == 200
    house.runs.let_all_go()
    await house.worker.stopped.wait()
    assert (await refused(house, 503, "GET", "/readyz"))["worker"] == "stopped"
    await refused(house, 503, "POST", "/signals", json={"kind": "k"})


async def test_a_body_that_does_not_come_is_waited_for_in_bounded_time(house: House) -> None:
    """SRV-5: 408; a client that sends half a body holds nothing for ever."""
    house.app.config["BODY_TIMEOUT"] = 0.1
    head = request(
        "/signals",
        f"authorization: Bearer {OPERATOR}",
        "content-type: application/json",
        "content-length: 9",
        method="POST",
    )
    async with wire(house.url) as connection:
        await connection.send(head + b"{")
        answer = await connection.answer()
        assert answer is not None
        assert (answer.status, answer.headers["content-type"]) == (408, "application/problem+json")

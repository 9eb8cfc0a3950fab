"""Lists while they change: none twice, none missed; times to begin at; cursors that show nothing; every wrong field at once."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import attrs
import pytest
import trio

from concorde_trio.server.closing import NAME
from concorde_trio.server.declarations import Scope
from concorde_trio.server.openapi import declared_rules
from concorde_trio.stores.memory import MemoryStore
from tests.server.house import OPERATOR, House, open_house
from tests.server.session_house import SessionHouse

pytestmark = pytest.mark.slow

TAG = "tag-of-a-lock-0123456789"


async def get(house: House | SessionHouse, target: str, status: int = 200) -> Any:
    """A document."""
    answer = await house.operator.get(target)
    assert answer.status_code == status, answer.text
    return answer.json()


async def walk(house: House, target: str, name: str, cursor: str) -> list[Any]:
    """Every item of a list, page by page."""
    found: list[Any] = []
    page = await get(house, target)
    while True:
        found += page[name]
        if page["next"] is None:
            return found
        page = await get(house, f"{target}&{cursor}={quote(str(page['next']), safe='')}")


@pytest.mark.parametrize("name", ["signals", "runs"])
async def test_pages_stay_right_while_rows_arrive(house: House, name: str) -> None:
    """SRV-2: what was there at the start comes once, in its order, though there is more at every page."""
    for number in range(23):
        await house.worker.emit("prompts", [{"text": f"{number}", "session": f"s{number % 3}"}])
    before: list[Any] = []
    with trio.fail_after(10):
        while len(before) < 23:
            before = await walk(house, f"/{name}?limit=200", name, "before")
    pages = 0

    async def emit(stop: trio.CancelScope) -> None:
        with stop:
            while True:
                await house.worker.emit("prompts", [{"text": "more"}])
                await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        stop = trio.CancelScope()
        nursery.start_soon(emit, stop)
        found: list[Any] = []
        page = await get(house, f"/{name}?limit=4")
        while True:
            pages += 1
            found += page[name]
            if page["next"] is None:
                break
            page = await get(house, f"/{name}?limit=4&before={page['next']}")
        stop.cancel()
    house.runs.let_all_go()
    ids = [each["id"] for each in found]
    assert len(set(ids)) == len(ids)
    there = [each["id"] for each in before]
    assert [one for one in ids if one in set(there)] == there
    assert pages > 5


async def test_pages_of_locks_stay_right_while_locks_come_and_go(house: House) -> None:
    """SRV-2: a cursor is a place between names, not a row: the one it named may be gone."""
    names = [f"r{number:02}" for number in range(12)]
    first = await house.worker.emit(
        "prompts", [{"text": "x", "session": "holder", "resources": names[::2]}, {"text": "x", "session": "other"}]
    )
    await house.runs.until_running("holder", "other")
    page = await get(house, "/locks?space=resource&limit=3")
    assert [lock["name"] for lock in page["locks"]] == names[0:6:2]
    second = await house.worker.emit("prompts", [{"text": "x", "session": "late", "resources": names[1::2]}])
    await house.runs.until_running("late")
    await house.worker.cancel_run(f"{first}-1")
    with trio.fail_after(10):
        while True:
            if (await get(house, f"/runs/{first}-1"))["state"] == "cancelled":
                break
            await trio.sleep(0.01)
    page = await get(house, f"/locks?space=resource&limit=200&after={page['next']}")
    assert [lock["name"] for lock in page["locks"]] == [name for name in names[1::2] if name > names[4]]
    assert second


async def test_a_cursor_shows_no_tag_and_still_leads_on(house: House) -> None:
    """TAG-4, SRV-2: a lock whose name has a live tag in it is passed like any other."""
    names = [f"a {TAG}", f"b {TAG}", f"c {TAG} \u00e9", "d"]
    await house.worker.emit("prompts", [{"text": "x", "session": "ann", "tag": TAG, "resources": names}])
    await house.runs.until_running("ann")
    answer = await house.operator.get("/locks?space=resource&limit=1")
    seen = [answer.json()["locks"][0]["name"]]
    while answer.json()["next"] is not None:
        assert TAG not in answer.text
        target = f"/locks?space=resource&limit=1&after={quote(answer.json()['next'], safe='')}"
        answer = await house.operator.get(target)
        seen += [lock["name"] for lock in answer.json()["locks"]]
    assert seen == ["a [run tag]", "b [run tag]", "c [run tag] \u00e9", "d"]
    forged = "~" + "A" * 40
    assert "first page" in (await get(house, f"/locks?after={forged}", 409))["detail"]


class DatedStore(MemoryStore):
    """A store whose signals are emitted at times that a test says."""

    async def emit(self, signals: Any, *, tx: Any = None) -> list[str]:
        """Date each by its payload."""
        dated = [attrs.evolve(each, emitted_at=float(each.payload)) for each in signals]
        return await super().emit(dated, tx=tx)


@pytest.mark.parametrize(
    ("since", "seqs"),
    [
        ("1000000000", [4, 3, 2, 1]),
        ("1000000000.5", [4, 3, 2]),
        ("2001-09-09T01:46:41Z", [4, 3, 2]),
        ("2001-09-09T03:46:42%2B02:00", [4, 3]),
        ("2001-09-09t01:46:42.500z", [4]),
        ("20010909T014643Z", [4]),
        ("2001-09-09T01:46:44Z", []),
        ("9999-12-31T23:59:59-23:59", []),
        ("0001-01-01T00:00:00%2B23:59", [4, 3, 2, 1]),
    ],
)
async def test_a_list_begins_at_a_time(since: str, seqs: list[int]) -> None:
    """SRV-2: ISO 8601 with its zone, or Unix seconds; that moment included."""
    async with open_house(store=DatedStore()) as house:
        for at in range(1_000_000_000, 1_000_000_004):
            await house.worker.emit("other", at)
        assert [each["seq"] for each in (await get(house, f"/signals?since={since}"))["signals"]] == seqs


async def test_runs_begin_at_a_time_and_are_listed_by_the_kind_of_their_signals(house: House) -> None:
    """SRV-2: queued then or later."""
    await house.start(session="ann")
    (run,) = (await get(house, "/runs?kind=prompts"))["runs"]
    assert (await get(house, "/runs?kind=other"))["runs"] == []
    assert [each["id"] for each in (await get(house, f"/runs?since={run['queued_at']:f}"))["runs"]] == [run["id"]]
    assert (await get(house, f"/runs?since={run['queued_at'] + 1:f}"))["runs"] == []


@pytest.mark.parametrize(
    "since", ["", "yesterday", "2026-01-01", "2026-01-01T00:00:00", "-5", "1e9", "nan", "2026-01-01T00:00:00+02:00"]
)
async def test_what_is_no_time_is_refused_with_an_example(house: House, since: str) -> None:
    """SRV-2: a time without its zone is none; a plus that nobody encoded is told of."""
    problem = await get(house, f"/signals?since={since}", 400)
    assert problem["place"] == "since" and "2026-11-30T17:00:00Z" in problem["detail"]
    assert ("%2B" in problem["detail"]) == ("+" in since)


async def test_every_wrong_field_of_a_request_is_named_in_one_answer(house: House) -> None:
    """SRV-5: of the path, the query, the headers and the body; the first is the place, and the sentence tells of all."""
    problem = await get(house, "/runs?state=x&limit=0&limit=1&color=red&session=%00&before=-1", 400)
    assert [(each["in"], each["field"]) for each in problem["errors"]] == [
        ("query", "color"),
        ("query", "session"),
        ("query", "state"),
        ("query", "before"),
        ("query", "limit"),
    ]
    assert problem["place"] == "color" and problem["detail"].startswith("5 things are wrong: unknown parameter 'color'")
    assert all(each["message"] in problem["detail"] for each in problem["errors"])
    answer = await house.operator.post(
        "/signals?x=1", json={"kind": "", "payload": "\0", "a/b~": 1}, headers={"idempotency-key": ""}
    )
    assert answer.status_code == 400
    assert [(each["in"], each["field"], each.get("pointer")) for each in answer.json()["errors"]] == [
        ("query", "x", None),
        ("header", "Idempotency-Key", None),
        ("body", "a/b~", "#/a~1b~0"),
        ("body", "kind", "#/kind"),
        ("body", "payload", "#/payload"),
    ]
    assert (await get(house, "/signals"))["signals"] == []


async def test_a_body_that_cannot_be_read_is_one_error_among_others(house: House) -> None:
    """SRV-5: and a body of another type is that alone."""
    headers = {"content-type": "application/json"}
    answer = await house.operator.post("/signals?x=1", content=b"{", headers=headers)
    assert [(each["in"], each["field"]) for each in answer.json()["errors"]] == [("query", "x"), ("body", "")]
    assert (await house.operator.post("/signals?x=1", content=b"{}")).status_code == 415


async def test_errors_show_no_live_tag(house: House) -> None:
    """TAG-4: not even one that the client sent."""
    await house.start(session="ann", tag=TAG)
    answer = await house.operator.post(f"/signals?{TAG}=1", json={TAG: 1, "kind": TAG * 20})
    assert answer.status_code == 400 and len(answer.json()["errors"]) == 3
    assert TAG not in answer.text and "[run tag]" in answer.text


async def test_a_hundred_unknown_parameters_make_no_long_answer(house: House) -> None:
    """SRV-5: what the server says is bounded."""
    target = "/signals?" + "&".join(f"p{number}=1" for number in range(1_000))
    problem = await get(house, target, 400)
    assert len(problem["errors"]) == 20 and "and 15 more" in problem["detail"]


async def test_every_route_asks_for_the_token_that_its_declaration_says(house: House) -> None:
    """SRV-6: an operator route without the token gives nothing away; the others need none on loopback."""
    checked = 0
    for rule, operation in declared_rules(house.app):
        path = rule.replace("<", "").replace(">", "")
        answer = await house.agent.request(operation.method, path)
        assert (answer.status_code == 401) == (operation.scope is Scope.OPERATOR), (path, answer.status_code)
        checked += 1
    assert checked > 30


async def test_the_document_and_its_page_are_served(house: House) -> None:
    """SRV-5: to agents too; under the policy of our pages."""
    answer = await house.agent.get("/openapi.json")
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"
    document = answer.json()
    assert f"{NAME} agent server" == document["info"]["title"] and "/signals/{signal_id}" in document["paths"]
    page = await house.agent.get("/reference")
    assert page.status_code == 200 and page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    style = await house.agent.get("/reference/page.css")
    assert style.status_code == 200 and style.headers["content-type"].startswith("text/css")
    assert "url(" not in style.text and "@import" not in style.text
    assert OPERATOR not in answer.text + page.text

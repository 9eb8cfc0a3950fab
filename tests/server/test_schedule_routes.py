"""Schedules over HTTP, on a real worker."""

from __future__ import annotations

import time
from typing import Any

import pytest

from concorde_trio.client.client import Client
from concorde_trio.errors import RefusedId, RefusedRequest
from concorde_trio.signals.schedule import Schedule
from tests.server.house import OPERATOR, House

pytestmark = pytest.mark.slow

MORNING = {"kind": "prompts", "payload": [], "cron": "0 7 * * *", "zone": "Europe/Berlin"}


async def test_a_schedule_is_put_listed_looked_at_and_removed(house: House) -> None:
    """SCH-1, SCH-5: the same again says that nothing changed; what is gone is not found."""
    put = await house.operator.put("/schedules/morning", json=MORNING)
    assert put.status_code == 200, put.text
    document = put.json()
    assert document.pop("changed") is True
    assert {key: document[key] for key in MORNING} == MORNING
    assert 0 < document["next_at"] - time.time() < 25 * 3600
    assert (document["fired_at"], document["missed"], document["problem"]) == (None, 0, None)
    again = await house.operator.put("/schedules/morning", json=MORNING)
    assert again.json() == {**document, "changed": False}
    assert (await house.operator.get("/schedules/morning")).json() == document
    assert (await house.operator.get("/schedules")).json() == {"schedules": [document], "next": None}
    removed = await house.operator.delete("/schedules/morning")
    assert (removed.status_code, removed.json()) == (200, {"name": "morning", "removed": True})
    for answer in (await house.operator.delete("/schedules/morning"), await house.operator.get("/schedules/morning")):
        assert (answer.status_code, "there is no schedule" in answer.json()["detail"]) == (404, True)


async def test_pages_go_by_name(house: House) -> None:
    """SRV-2: with a filter, a limit and a cursor."""
    for name in ("a", "b", "c", "D"):
        await house.worker.schedules.put(Schedule(name, "even" if name in "bD" else "odd", cron="0 7 * * *"))
    async with Client(house.url, token=OPERATOR) as client:
        assert [each["name"] async for each in client.schedules()] == ["D", "a", "b", "c"]
        assert [each["name"] async for each in client.schedules(kind="even")] == ["D", "b"]
    seen: list[str] = []
    after = ""
    while True:
        page = (await house.operator.get(f"/schedules?limit=2{after}")).json()
        seen += [each["name"] for each in page["schedules"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert seen == ["D", "a", "b", "c"]


async def test_a_client_puts_one_and_its_signal_comes(house: House) -> None:
    """SCH-1: at an instant, by the worker that serves."""
    async with Client(house.url, token=OPERATOR) as client, client.follow(kinds=["ScheduleFired"]) as following:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
        found = await client.put_schedule("soon", "prompts", [], at=at)
        assert found["changed"]
        async for happened in following:
            event: Any = happened
            break
        signal = await client.signal(event.event.signal_id)
        assert signal["key"] == f"schedule:soon@{at}"
        assert (await client.schedule("soon"))["next_at"] is None
        await client.remove_schedule("soon")
        with pytest.raises(RefusedId):
            await client.remove_schedule("soon")
        with pytest.raises(RefusedRequest, match="did you mean Europe/Berlin"):
            await client.put_schedule("s", "k", cron="0 7 * * *", zone="Berlin")


@pytest.mark.parametrize(
    ("name", "change", "field", "says"),
    [
        ("s", {"cron": "0 7 * *"}, "cron", "has 4"),
        ("s", {"zone": "Berlin"}, "zone", "Europe/Berlin"),
        ("s", {"at": "2030-01-01T00:00Z"}, "cron", "not both"),
        ("s", {"cron": None, "at": "2001-01-01T00:00Z"}, "at", "has passed"),
        ("s", {"cron": None, "at": "soon"}, "at", "an instant is"),
        ("s", {"cron": None}, "cron", "either a cron expression"),
        ("s", {"kind": ""}, "kind", "1 to 200"),
        ("s", {"payload": "x" * 1_000_100}, "payload", "bytes"),
        ("s", {"every": 5}, "every", "there are: kind, payload, cron, zone, at"),
        ("a%2Fb", {}, None, "nothing at"),
        ("-x", {}, "schedule", "the name of a schedule"),
    ],
)
async def test_what_is_wrong_is_refused_by_its_field(
    name: str, change: dict[str, Any], field: str | None, says: str, house: House
) -> None:
    """SCH-6, SRV-5: a problem document, and nothing is stored."""
    answer = await house.operator.put(f"/schedules/{name}", json={**MORNING, **change})
    assert answer.status_code == (404 if field is None else 400), answer.text
    assert says in answer.json()["detail"]
    assert [error["field"] for error in answer.json().get("errors", [])] == ([] if field is None else [field])
    assert await house.worker.schedules.all() == []


async def test_agents_may_not(house: House) -> None:
    """SRV-6: schedules show payloads and change what happens."""
    assert (await house.agent.get("/schedules")).status_code == 401
    assert (await house.agent.put("/schedules/s", json=MORNING)).status_code == 401
    assert (await house.agent.delete("/schedules/s")).status_code == 401

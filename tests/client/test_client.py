"""``Client`` against a real server: every route, every refusal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
import trio

from concorde_trio import Client
from concorde_trio.client.wire import Wire
from concorde_trio.errors import (
    RefusedId,
    RefusedRequest,
    RefusedState,
    RequestRefused,
    UnknownId,
    UsageError,
    WrongState,
)
from concorde_trio.server.openapi import declared_rules
from tests.server.house import OPERATOR, House, open_house
from tests.server.session_house import SessionHouse, open_session_house

pytestmark = pytest.mark.slow

TAG = "tag-of-a-run-0123456789"


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """A served worker."""
    async with open_house() as opened:
        yield opened
        opened.worker.stop("cancel")


@asynccontextmanager
async def asking(house: House | SessionHouse) -> AsyncIterator[Client]:
    """A client with the operator's token."""
    async with Client(house.url, token=OPERATOR) as client:
        yield client


async def test_signals_are_emitted_listed_looked_at_and_retried(house: House) -> None:
    """SRV-2, SRV-3: an id is all that an emit gives; a key makes it safe to repeat."""
    async with asking(house) as client:
        first = await client.emit("other", {"user": "\u00e9"}, key="schl\u00fcssel")
        assert await client.emit("other", 2, key="schl\u00fcssel") == first
        second = await client.emit("prompts", [{"text": "x", "session": "ann"}])
        await house.runs.until_running("ann")
        with pytest.raises(RefusedState, match="processing"):
            await client.retry(second)
        house.runs.let_all_go()
        await house.worker.wait_settled(second)
        third = await client.retry(second)
        assert (await client.signal(first))["payload"] == {"user": "\u00e9"}
        assert [run["session"] for run in (await client.signal(second))["runs"]] == ["ann"]
        assert [each["id"] async for each in client.signals()] == [third, second, first]
        assert [each["id"] async for each in client.signals(kind="other", state="failed")] == [first]
        at = (await client.signal(second))["emitted_at"]
        assert [each["id"] async for each in client.signals(since=at)] == [third, second]
        assert [each["id"] async for each in client.signals(since=datetime.fromtimestamp(at, UTC))] == [third, second]
        with pytest.raises(UsageError, match="zone"):
            client.signals(since=datetime(2026, 1, 1))


async def test_runs_and_locks_are_listed_looked_at_and_cancelled(house: House) -> None:
    """SRV-2, SRV-3, LCK-7."""
    async with asking(house) as client:
        first = await client.emit("prompts", [{"text": "x", "session": "ann", "resources": ["budget"], "tag": TAG}])
        await house.runs.until_running("ann")
        second = await client.emit("prompts", [{"text": "x", "session": "bob", "resources": ["budget"]}])
        with trio.fail_after(10):
            while True:
                if await client.runs(signal=second).first(1):
                    break
                await trio.sleep(0.01)
        waits = (await client.run(f"{second}-1"))["waits_for"]
        assert waits is not None and waits["root"]["run_id"] == f"{first}-1"
        assert [run["id"] async for run in client.runs(session="bob")] == [f"{second}-1"]
        assert [run["id"] async for run in client.runs(resource="budget", state="running")] == [f"{first}-1"]
        assert [run["id"] async for run in client.runs(kind="other")] == []
        assert [lock["name"] async for lock in client.locks()] == ["ann", "bob", "budget"]
        assert [lock["name"] async for lock in client.locks(space="resource", name="budget")] == ["budget"]
        mine = await client.current_run(TAG)
        assert mine is not None and mine["session"] == "ann"
        assert await client.current_run("tag-of-nobody-0123") is None
        snapshot = await client.snapshot(["runs"], limit=1)
        assert [run["id"] for run in snapshot["runs"]] == [f"{first}-1"] and snapshot["more_runs"] == 1
        assert "locks" not in snapshot and "locks" in await client.snapshot()
        await client.cancel_run(f"{first}-1")
        await client.cancel_signal(second)
        await house.worker.wait_settled(second)
        with pytest.raises(RefusedState):
            await client.cancel_signal(second)


async def test_a_list_is_asked_for_in_pages(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-2: as an iterator, or some of it; no more is asked for than is wanted."""
    asked: list[Any] = []
    ask = Wire.ask

    async def noted(self: Wire, method: str, *segments: str, **more: Any) -> Any:
        asked.append(more.get("query", {}).get("limit"))
        return await ask(self, method, *segments, **more)

    for number in range(7):
        await house.worker.emit("other", number)
    monkeypatch.setattr(Wire, "ask", noted)
    monkeypatch.setattr("concorde_trio.client.client.PAGE", 3)
    async with asking(house) as client:
        assert [each["seq"] async for each in client.signals()] == [7, 6, 5, 4, 3, 2, 1]
        assert asked == [3, 3, 3]
        some = client.signals()
        assert [each["seq"] for each in await some.first(4)] == [7, 6, 5, 4]
        assert (asked[3:], some.cursor) == ([3, 1], 4)
        assert (await anext(some))["seq"] == 3
        assert [each["seq"] for each in await some.first(99)] == [2, 1]
        assert await some.first(99) == [] and some.cursor is None


async def test_sessions_are_talked_to() -> None:
    """SRV-3, SES-12, SES-18, SES-20: whatever their names are."""
    name = "../a/b%2F?#\u00e9"
    async with open_session_house() as house, asking(house) as client:
        receipt = await client.send(name, "hello", id="telegram-1", sender="Ann")
        assert (receipt["session"], receipt["again"]) == (name, False)
        assert (await client.send(name, "hello", id="telegram-1"))["again"] is True
        async with client.watch(name) as events:
            assert (await anext(events)).data["name"] == name
            await house.model.answer(name, "hi")
            async for event in events:
                if event.name == "TurnEnded":
                    break
        await house.until(name, run=None, on="input")
        assert [each["name"] async for each in client.sessions(prefix="../")] == [name]
        assert [each["text"] async for each in client.messages(name)] == ["hello", "hi"]
        assert [each["text"] async for each in client.messages(name, after=1)] == ["hi"]
        assert [each["text"] async for each in client.messages(name, before=2)] == ["hello"]
        assert [each["text"] async for each in client.latest_messages(name)] == ["hi", "hello"]
        assert [each["text"] async for each in client.latest_messages(name, before=2)] == ["hello"]
        await client.send(name, "do it")
        await house.model.call(name, "call/1")
        await house.tool.begun.wait()
        queued = await client.send(name, "and that")
        assert [each["text"] for each in (await client.session(name))["queue"]] == ["and that"]
        assert (await client.cancel_input(name, queued["id"]))["state"] == "cancelled"
        assert await client.interrupt(name) is True
        await house.until(name, on="input")
        assert await client.interrupt(name) is False
        assert await client.resume(name) is False
        await client.compact(name)
        with pytest.raises(RefusedId, match="call/1"):
            await client.answer(name, "call/1", allow=True)


@pytest.mark.parametrize(
    ("status", "kind", "also"),
    [(404, RefusedId, UnknownId), (400, RefusedRequest, UsageError), (409, RefusedState, WrongState)],
)
async def test_what_the_server_refuses_is_raised_by_whose_fault_it_is(
    house: House, status: int, kind: type[RequestRefused], also: type[Exception]
) -> None:
    """SRV-5: with the problem document and the server's sentence."""
    async with asking(house) as client:
        done = await client.emit("other")
        await house.worker.wait_settled(done)
        questions = {404: client.run("nobody"), 400: client.emit("", "\0"), 409: client.cancel_signal(done)}
        question = questions.pop(status)
        for other in questions.values():
            other.close()
        with pytest.raises(kind) as caught:
            await question
    assert isinstance(caught.value, also) and caught.value.status == status
    problem = caught.value.problem
    assert problem is not None and problem["detail"] == str(caught.value)
    if status == 400:
        assert [each["field"] for each in problem["errors"]] == ["kind", "payload"]


async def test_a_wrong_token_is_nobodys_usage_error(house: House) -> None:
    """SRV-6: nor is the token in what is said of it."""
    async with Client(house.url, token="wrong-token-0123456789") as client:
        assert (await client.ready())["status"] == "ready"
        with pytest.raises(RequestRefused) as caught:
            await client.signals().first(1)
    assert caught.value.status == 401 and not isinstance(caught.value, UsageError)
    assert "wrong-token" not in str(caught.value)


async def test_many_tasks_ask_by_one_client(house: House) -> None:
    """SRV-2: each gets its own answer."""
    ids = [await house.worker.emit("other", number) for number in range(30)]
    async with asking(house) as client, trio.open_nursery() as nursery:

        async def look(number: int) -> None:
            assert (await client.signal(ids[number]))["payload"] == number

        for number in range(30):
            nursery.start_soon(look, number)


async def test_below_a_prefix_it_asks_there() -> None:
    """SRV-1: the address may have a path."""
    async with open_session_house(url_prefix="/agents") as house, Client(f"{house.url}/", token=OPERATOR) as client:
        await client.send("a/b", "hello")
        await house.model.answer("a/b", "hi")
        assert (await client.session("a/b"))["name"] == "a/b"
        assert "/agents/signals" in (await client.openapi())["paths"]


WITHOUT = {"get_health", "get_openapi", "get_metrics", "watch_events"}
"""Operations that people do not ask by a Client: probes, scrapers; its stream of everything has tests of its own."""


async def test_every_route_has_a_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-2, SRV-3: by the declarations of the server: what is answered with a JSON document can be asked."""
    asked: list[tuple[str, str]] = []
    answers = {"id": "x", "interrupted": True, "resumed": True, "next": None, "previous": None}

    async def noted(self: Wire, method: str, *segments: str, **more: Any) -> Any:
        asked.append((method, "/" + "/".join(segments)))
        return 200, {**answers, segments[-1]: []}

    def watched(self: Wire, *segments: str, **more: Any) -> Any:
        asked.append(("GET", "/" + "/".join(segments)))

    monkeypatch.setattr(Wire, "ask", noted)
    monkeypatch.setattr(Wire, "events", watched)
    async with open_house() as house, Client(house.url) as client:
        for pages in (
            *(client.signals(), client.runs(), client.locks(), client.sessions(), client.messages("n")),
            client.schedules(),
        ):
            await pages.first(1)
        for question in (
            *(client.signal("s"), client.emit("k"), client.retry("s"), client.cancel_signal("s")),
            *(client.run("r"), client.cancel_run("r"), client.current_run("t"), client.ready(), client.snapshot()),
            *(client.session("n"), client.send("n", "t"), client.cancel_input("n", "i"), client.interrupt("n")),
            *(client.resume("n"), client.compact("n"), client.answer("n", "c", allow=True), client.openapi()),
            *(client.schedule("s"), client.put_schedule("s", "k", cron="0 7 * * *"), client.remove_schedule("s")),
        ):
            await question
        client.watch("n")
        adapter = house.app.url_map.bind("localhost")
        there = {(rule, operation.method): operation for rule, operation in declared_rules(house.app)}
        found = set()
        for method, path in asked:
            rule, _ = adapter.match(path, method=method, return_rule=True)
            found.add(there[rule.rule, method].name)
    pages = ("Login", "Dashboard", "Reference")
    wanted = {operation.name for operation in there.values() if operation.tag not in pages}
    assert wanted - WITHOUT == found - WITHOUT

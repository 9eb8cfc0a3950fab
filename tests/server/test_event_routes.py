"""Events over HTTP: what is told, from where, to whom, and how it ends."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import Any

import pytest
import trio

from concorde_trio.events import Event, HandleFailed, RunStarted
from concorde_trio.server import event_feed, event_routes
from concorde_trio.server.event_routes import _Events
from concorde_trio.server.event_stream import STOPPING, TOO_SLOW
from tests.server.event_reader import EventReader, reading, until
from tests.server.house import OPERATOR, House, open_house, request, wire
from tests.server.session_house import open_session_house

pytestmark = pytest.mark.slow

TAG = 'tag-"with\\odd/signs%<&>'


def told(number: int, *, session: str = "ann", error: str = "") -> Event:
    """An event that something happened, made up."""
    if error:
        return HandleFailed(at=float(number), signal_id=f"s{number}", error=error)
    return RunStarted(at=float(number), run_id=f"s{number}-1", signal_id=f"s{number}", session=session)


async def numbers(reader: EventReader, count: int) -> list[int]:
    """The moments of the next so many events, which the tests make numbers of."""
    found = []
    for _ in range(count):
        event = await reader.next()
        assert event is not None
        found.append(int(event[1]["at"]))
    return found


async def test_a_run_is_seen_from_its_claim_to_the_end_of_its_signal(house: House) -> None:
    """SRV-4: each event with its fields and an id, one after another."""
    async with reading(house.url) as reader:
        await house.start(session="ann", resources=["car"])
        await house.end("ann")
        found = [await reader.next() for _ in range(5)]
        names = [event[0] for event in found if event is not None]
        assert names == ["SignalClaimed", "RunQueued", "RunStarted", "RunEnded", "SignalSettled"]
        queued = dict(found)["RunQueued"]  # type: ignore[arg-type]
        assert queued["event"] == "RunQueued" and queued["resources"] == ["car"] and queued["session"] == "ann"
        boot, _, number = str(reader.last_id).partition("-")
        assert number == "5" and boot.isalnum()


async def test_what_sessions_do_is_told_with_what_the_worker_does() -> None:
    """SRV-4, SES-12a: in one order."""
    async with open_session_house() as house, reading(house.url) as reader:
        await house.say("ann", "hello")
        await house.model.answer("ann", "hi there")
        await reader.until("SignalSettled")
        async with reading(
            house.url, "?session=ann", "Last-Event-ID: " + str(reader.last_id).split("-")[0] + "-0"
        ) as ann:
            seen = [event for _ in range(8) if (event := await ann.next()) is not None]
            assert all(document["session"] == "ann" for _, document in seen)
            assert {"SessionLoaded", "InputAccepted", "RunStarted", "TurnStarted"} <= {name for name, _ in seen}


async def test_a_reader_gets_what_it_asks_for_and_no_more(house: House) -> None:
    """SRV-4: by kind, session, signal and run, all of which must fit."""
    first = await house.start(session="ann")
    second = await house.start(session="bob")
    signal = first.rpartition("-")[0]
    await house.end("ann")
    await house.end("bob")
    boot = (await house.operator.get("/snapshot")).json()["id"].split("-")[0]
    asked: dict[str, list[tuple[str, str]]] = {
        "kind=RunStarted": [("RunStarted", first), ("RunStarted", second)],
        "kind=RunStarted,RunEnded&session=bob": [("RunStarted", second), ("RunEnded", second)],
        f"signal={signal}&kind=SignalClaimed,SignalSettled": [("SignalClaimed", signal), ("SignalSettled", signal)],
        f"run={first}": [("RunQueued", first), ("RunStarted", first), ("RunEnded", first)],
    }
    async with AsyncExitStack() as stack:
        readers = [
            (await stack.enter_async_context(reading(house.url, f"?after={boot}-0&{query}")), expected)
            for query, expected in asked.items()
        ]
        house.worker.bus.publish([told(1, error="fits nobody")])
        house.closing.set()
        for reader, expected in readers:
            *found, end = await reader.rest()
            assert end[0] == "end"
            assert [(name, each.get("run_id", each["signal_id"])) for name, each in found] == expected


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("kind=NoSuchThing", "RunStarted"),
        ("kind=RunStarted,", "RunStarted"),
        ("kind=", "RunStarted"),
        ("signal=a/b", "signal"),
        ("run=%00", "run"),
        ("session=%00", "session"),
        ("after=5", "after"),
        ("after=x-y", "after"),
        ("after=a-1&after=a-2", "after"),
        ("since=yesterday", "since"),
    ],
)
async def test_a_filter_that_makes_no_sense_is_refused(house: House, query: str, says: str) -> None:
    """SRV-2: by name, saying what there is."""
    answer = await house.operator.get(f"/events?{query}")
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert says in answer.text


async def test_events_are_for_operators(house: House) -> None:
    """SRV-6: they say who works on what."""
    for path in ("/events", "/snapshot"):
        assert (await house.agent.get(path)).status_code == 401
    head = await house.operator.head("/events")
    assert head.status_code == 200 and head.headers["content-type"] == "text/event-stream"


async def test_who_comes_back_again_and_again_gets_each_event_once(house: House) -> None:
    """SRV-4: a stream that is torn anywhere is taken up where it was, by header or by address."""
    publish = house.worker.bus.publish
    publish([told(0)])
    boot = (await house.operator.get("/snapshot")).json()["id"].split("-")[0]
    seen: list[int] = []
    last = f"{boot}-0"
    async with trio.open_nursery() as nursery:

        async def happen() -> None:
            for number in range(1, 400):
                publish([told(number)])
                await trio.sleep(0.0005)

        nursery.start_soon(happen)
        turn = 0
        while len(seen) < 400:
            turn += 1
            query, headers = (f"?after={last}", ()) if turn % 2 else ("?after=other-1", (f"Last-Event-ID: {last}",))
            async with reading(house.url, query, *headers) as reader:
                seen += await numbers(reader, min(1 + turn * 3 % 20, 400 - len(seen)))
                assert reader.last_id is not None
                last = reader.last_id
    assert seen == list(range(400))
    assert turn > 10


@pytest.mark.parametrize(
    "given",
    [
        "",
        "0",
        "nonsense",
        "deadbeef0000-1",
        "{boot}-999999999999999",
        "{boot}-" + "9" * 9_000,
        "{boot}--1",
        "{boot}-1 ",
        "{boot}-1, {boot}-1",
        "{boot}-\xb2",
        "\xff\xfe-1",
        "<script>-1",
        "{boot}-1\x00",
    ],
)
async def test_whatever_is_sent_as_the_last_id_is_answered_by_a_reset_or_a_refusal(house: House, given: str) -> None:
    """SRV-4, SRV-5: an id of another start, of the future, or none at all; and the stream goes on from now."""
    house.worker.bus.publish([told(0), told(1), told(2)])
    boot = (await house.operator.get("/snapshot")).json()["id"].split("-")[0]
    value = given.replace("{boot}", boot)
    async with wire(house.url) as connection:
        await connection.send(request("/events", f"authorization: Bearer {OPERATOR}", f"Last-Event-ID: {value}"))
        head = await connection.piece(b"\r\n\r\n")
        assert head is not None
        if b"\x00" in value.encode("latin-1"):
            assert head.startswith(b"HTTP/1.1 400")
            return
        assert head.startswith(b"HTTP/1.1 200"), head
        reader = EventReader(connection)
        event = await reader.next()
        if given == "{boot}-1 ":  # spaces around a header's value are none of it
            assert event is not None and event[1]["at"] == 1.0
            return
        assert event is not None and event[0] == "reset"
        assert value not in event[1]["reason"] or not value
        assert reader.last_id == f"{boot}-3"
        house.worker.bus.publish([told(3)])
        assert await numbers(reader, 1) == [3]


async def test_two_last_ids_are_none(house: House) -> None:
    """SRV-4: nobody can know which of them it was."""
    boot = (await house.operator.get("/snapshot")).json()["id"].split("-")[0]
    one = f"Last-Event-ID: {boot}-0"
    async with reading(house.url, "", one, one) as reader:
        assert await reader.next() is not None
        assert reader.last_id == f"{boot}-0"


async def test_an_id_whose_successors_are_gone_gets_a_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-4: never a part as if it were the whole."""
    monkeypatch.setattr(event_feed, "KEPT", 50)
    async with open_house() as house:
        house.worker.bus.publish([told(number) for number in range(1, 101)])
        boot = (await house.operator.get("/snapshot")).json()["id"].split("-")[0]
        async with reading(house.url, f"?after={boot}-49") as reader:
            reset = await reader.next()
            assert reset is not None and reset[0] == "reset" and "not kept" in reset[1]["reason"]
            assert reader.last_id == f"{boot}-100"
        async with reading(house.url, f"?after={boot}-50") as reader:
            assert await numbers(reader, 50) == list(range(51, 101))


async def test_a_quiet_stream_says_where_it_is(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-4: so that who asked for little comes back to there, and not to what is long gone."""
    monkeypatch.setattr(_Events, "quiet", 0.05)
    async with reading(house.url, "?kind=RunEnded") as reader:
        for _ in range(3):
            house.worker.bus.publish([told(number) for number in range(10)])
            await trio.sleep(0.1)
        house.closing.set()
        assert await reader.rest() == [("end", {"reason": STOPPING})]
        assert reader.comments > 3
        assert reader.last_id is not None and reader.last_id.endswith("-30")


@pytest.mark.parametrize("_again", range(5))
async def test_the_stop_of_the_server_is_the_last_event_after_all_that_happened(house: House, _again: int) -> None:
    """SRV-4: each stream ends as a whole, whatever was still to be told, and though it has only just begun.

    Whether what watches for the stop begins before it comes is for Trio's scheduler to say, so it is tried some times.
    """
    async with reading(house.url) as first, reading(house.url, "?session=nobody") as second:
        house.worker.bus.publish([told(number) for number in range(300)])
        house.closing.set()
        found = await first.rest()
        assert [int(document["at"]) for _, document in found[:-1]] == list(range(300))
        assert found[-1] == ("end", {"reason": STOPPING})
        assert await second.rest() == [("end", {"reason": STOPPING})]


async def test_the_end_of_the_worker_is_the_last_event() -> None:
    """SRV-4, STP-1: with everything that happened until then."""
    async with open_house() as house, reading(house.url) as reader:
        await house.start(session="ann")
        house.worker.stop("cancel")
        found = await reader.rest()
        assert [name for name, _ in found[-2:]] == ["WorkerStopped", "end"]
        assert found[-1][1] == {"reason": "the worker has stopped"}
        assert "RunEnded" in dict(found)
        assert (await house.operator.get("/events")).status_code == 503


async def test_a_reader_that_stops_reading_is_cut_off_and_told_when_it_reads_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SRV-4: it is not waited for; whoever reads gets everything meanwhile."""
    monkeypatch.setattr(event_feed, "KEPT", 300)
    async with open_house() as house, reading(house.url) as good:
        async with reading(house.url, receive_buffer=4096) as deaf:
            for number in range(1_500):
                house.worker.bus.publish([told(number, error="x" * 1_000)])
                if number % 100 == 99:
                    assert await numbers(good, 100) == list(range(number - 99, number + 1))
            found = await deaf.rest()
            assert found[-1] == ("end", {"reason": TOO_SLOW})
            seen = [int(document["at"]) for _, document in found[:-1]]
            assert seen == list(range(len(seen))) and len(seen) < 1_200
            last = str(deaf.last_id)
            assert last.endswith(f"-{len(seen)}")
        async with reading(house.url, "", f"Last-Event-ID: {last}") as again:
            reset = await again.next()
            assert reset is not None and reset[0] == "reset"


async def test_a_live_tag_is_in_no_stream_and_no_snapshot(house: House) -> None:
    """TAG-4: as text, and as JSON writes it."""
    async with reading(house.url) as reader:
        await house.start(session=f"of {TAG}", tag=TAG, text=f"send {TAG}")
        house.worker.bus.publish([told(1, error=f"{TAG} and {json.dumps(TAG)}")])
        text = json.dumps(await reader.until("RunStarted")) + json.dumps(await reader.until("HandleFailed"))
        text += (await house.operator.get("/snapshot")).text
    for form in (TAG, json.dumps(TAG)[1:-1], json.dumps(json.dumps(TAG))[1:-1]):
        assert form not in text
    assert text.count("[run tag]") >= 3


async def test_a_reader_that_leaves_is_forgotten(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-4: whatever it was doing."""
    open_now: set[Any] = set()

    class Counted(_Events):
        async def __aenter__(self) -> Any:
            open_now.add(self)
            return await super().__aenter__()

        async def __aexit__(self, *error: object) -> None:
            open_now.discard(self)
            await super().__aexit__(*error)

    monkeypatch.setattr(event_routes, "_Events", Counted)
    for _ in range(3):
        async with reading(house.url), reading(house.url) as reader:
            house.worker.bus.publish([told(0)])
            await reader.next()
            assert len(open_now) == 2
        await until(lambda: not open_now)

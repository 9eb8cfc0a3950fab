"""Which run a request came from, over real sockets."""

from __future__ import annotations

import pytest
import trio
from quart import Blueprint, Response, g, websocket
from quart_trio import QuartTrio

from concorde_trio.errors import OutsideRequest
from concorde_trio.records import RunInfo
from concorde_trio.server.attribution import current_run
from concorde_trio.signals.tags import new_tag
from tests.server.house import House, ask, open_house, request, wire

pytestmark = pytest.mark.slow

TAG = "tag-of-ann-0123456789"
OTHER = "tag-of-bob-0123456789"
ENDED = "tag-of-eve-0123456789"


async def current(house: House, *lines: str) -> str | None:
    """The id of the run that a request with these header lines is attributed to."""
    answer = await ask(house.url, request("/runs/current", *lines))
    assert answer is not None
    assert answer.status in (200, 404)
    return str(answer.json["id"]) if answer.status == 200 else None


async def test_a_request_with_one_live_tag_comes_from_its_run(house: House) -> None:
    """TAG-3: exactly one header with a live tag names the run: id, signal_id, session, context."""
    run_id = await house.start(session="ann", tag=TAG, context={"user": "ann"})
    answer = await house.agent.get("/runs/current", headers={"concorde-run-tag": TAG})
    assert answer.status_code == 200
    assert answer.json() == {
        "id": run_id,
        "signal_id": run_id.rpartition("-")[0],
        "session": "ann",
        "context": {"user": "ann"},
    }


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("concorde-run-tag:",),
        ("concorde-run-tag:    ",),
        ("concorde-run-tag: unknown-tag-0123456789",),
        (f"concorde-run-tag: {ENDED}",),
        (f"concorde-run-tag: {TAG}", f"concorde-run-tag: {TAG}"),
        (f"concorde-run-tag: {TAG}", f"Concorde-Run-Tag: {OTHER}"),
        (f"concorde-run-tag: {TAG}", "concorde-run-tag:"),
        (f"concorde-run-tag: {TAG}, {TAG}",),
        (f"concorde-run-tag: {TAG},",),
        (f"concorde-run-tag: {TAG},{OTHER}",),
        (f'concorde-run-tag: "{TAG}"',),
        (f"concorde-run-tag: {TAG} {TAG}",),
        (f"concorde-run-tag: {TAG}\r\n {OTHER}",),
        (f"concorde-run-tag: {TAG.upper()}",),
        (f"concorde-run-tag: {TAG[:-1]}",),
        (f"concorde-run-tag: {TAG}\xff",),
        (f"concorde-run-tag: {TAG}\xc2\xa0",),
        (f"concorde-run-tag: {'x' * 10_240}",),
        (f"concorde-run-tag: {TAG * 480}",),
        (f"concorde_run_tag: {TAG}",),
        (f"x-concorde-run-tag: {TAG}",),
        (f"cookie: concorde-run-tag={TAG}",),
    ],
)
async def test_anything_but_one_live_tag_comes_from_nobody(house: House, lines: tuple[str, ...]) -> None:
    """TAG-3: none, unknown, ended, empty, several headers, a list in one: attributed to nothing."""
    await house.start(session="eve", tag=ENDED)
    await house.end("eve")
    await house.start(session="ann", tag=TAG)
    await house.start(session="bob", tag=OTHER)
    assert await current(house, *lines) is None


async def test_a_tag_in_a_trailer_or_in_the_target_names_nobody(house: House) -> None:
    """TAG-3: a tag names its run as a header alone."""
    await house.start(session="ann", tag=TAG)
    trailer = f"2\r\n{{}}\r\n0\r\nconcorde-run-tag: {TAG}\r\n\r\n".encode()
    head = request("/runs/current", "transfer-encoding: chunked", "trailer: concorde-run-tag")
    for data in (head + trailer, request(f"/runs/current?concorde-run-tag={TAG}")):
        answer = await ask(house.url, data)
        assert answer is not None
        assert answer.status in (400, 404)
        assert TAG.encode() not in answer.body


async def test_spaces_around_a_tag_are_not_part_of_it(house: House) -> None:
    """TAG-3: HTTP says that white space around a header's value is none of it."""
    run_id = await house.start(session="ann", tag=TAG)
    assert await current(house, f"concorde-run-tag: \t {TAG} \t") == run_id


async def test_a_waiting_run_and_an_ended_run_have_no_live_tag(house: House) -> None:
    """TAG-1: live from the start mark until the Runtime has returned."""
    first = await house.start(session="ann", tag=TAG)
    await house.worker.emit("prompts", [{"text": "then", "session": "ann", "tag": OTHER}])
    assert await current(house, f"concorde-run-tag: {OTHER}") is None
    assert await current(house, f"concorde-run-tag: {TAG}") == first
    await house.end("ann")
    await house.runs.until_running("ann")
    assert await current(house, f"concorde-run-tag: {TAG}") is None
    assert await current(house, f"concorde-run-tag: {OTHER}") is not None


async def test_requests_on_one_connection_are_told_apart(house: House) -> None:
    """TAG-3: pipelined and kept-alive requests each carry their own tag, or none."""
    ann = await house.start(session="ann", tag=TAG)
    bob = await house.start(session="bob", tag=OTHER)
    tags = [TAG, None, OTHER, "unknown-tag-0123456789", TAG, None] * 5
    async with wire(house.url) as connection:
        data = (request("/runs/current", *([f"concorde-run-tag: {tag}"] if tag else [])) for tag in tags)
        await connection.send(b"".join(data))
        for tag in tags:
            answer = await connection.answer()
            assert answer is not None
            assert answer.json.get("id") == {TAG: ann, OTHER: bob}.get(tag or "")


async def test_every_part_of_an_app_sees_the_same_run() -> None:
    """SRV-8: hooks, handlers, nested blueprints, child tasks, threads and streams agree."""
    app = QuartTrio("theirs")
    outer, inner = Blueprint("outer", __name__), Blueprint("inner", __name__)
    seen: dict[str, RunInfo | None] = {}

    @app.before_request
    async def before() -> None:
        g.first = current_run()
        seen["before"] = current_run()

    @app.after_request
    async def after(response: Response) -> Response:
        seen["after"] = current_run()
        return response

    @outer.before_request
    async def outer_before() -> None:
        seen["blueprint"] = current_run()

    @inner.post("/plain")
    def plain() -> str:
        seen["plain handler"] = current_run()
        return "ok"

    @inner.post("/async")
    async def handler() -> Response:
        async def child() -> None:
            seen["child"] = current_run()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
        seen["thread"] = await trio.to_thread.run_sync(current_run)
        seen["handler"] = current_run()

        async def stream():  # type: ignore[no-untyped-def]
            seen["stream"] = current_run()
            yield b"ok"

        return Response(stream())

    outer.register_blueprint(inner, url_prefix="/inner")
    app.register_blueprint(outer, url_prefix="/outer")
    async with open_house(app=app) as house:
        run_id = await house.start(session="ann", tag=TAG, context=7)
        for path in ("/outer/inner/plain", "/outer/inner/async"):
            assert (await house.agent.post(path, headers={"concorde-run-tag": TAG})).text == "ok"
        expected = RunInfo(id=run_id, signal_id=run_id.rpartition("-")[0], session="ann", context=7)
        assert seen == dict.fromkeys(seen, expected)
        assert len(seen) == 8
        for path in ("/outer/inner/plain", "/outer/inner/async"):
            await house.agent.post(path)
        assert seen == dict.fromkeys(seen, None)


async def test_a_request_keeps_its_run_although_the_run_ends() -> None:
    """TAG-3: it is decided when the request arrives, so that hooks and handler agree."""
    app = QuartTrio("theirs")
    arrived, goes_on = trio.Event(), trio.Event()

    @app.get("/slow")
    async def slow() -> dict[str, object]:
        before = current_run()
        arrived.set()
        await goes_on.wait()
        return {"same": before is not None and before == current_run()}

    async with open_house(app=app) as house, trio.open_nursery() as nursery:
        await house.start(session="ann", tag=TAG)

        async def ask_slowly() -> None:
            answer = await house.agent.get("/slow", headers={"concorde-run-tag": TAG})
            assert answer.json() == {"same": True}

        nursery.start_soon(ask_slowly)
        await arrived.wait()
        await house.end("ann")
        assert await current(house, f"concorde-run-tag: {TAG}") is None
        goes_on.set()


async def test_a_websocket_comes_from_the_run_of_its_handshake() -> None:
    """SRV-8: a websocket's handler sees the run, too."""
    app = QuartTrio("theirs")
    seen: list[RunInfo | None] = []

    @app.websocket("/talk")
    async def talk() -> None:
        seen.append(current_run())
        await websocket.send("hello")

    async with open_house(app=app) as house:
        run_id = await house.start(session="ann", tag=TAG)
        handshake = request(
            "/talk",
            "connection: upgrade",
            "upgrade: websocket",
            "sec-websocket-version: 13",
            "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
            f"concorde-run-tag: {TAG}",
        )
        async with wire(house.url) as connection:
            await connection.send(handshake)
            assert (await connection.rest()).startswith(b"HTTP/1.1 101")
        assert [run.id if run else None for run in seen] == [run_id]


async def test_outside_a_request_asking_is_an_error_that_says_what_to_do() -> None:
    """SRV-8: None would look like a request that came from nobody."""
    with pytest.raises(OutsideRequest, match=r"a Gateway \(or agent_server\)"):
        current_run()


async def test_of_a_thousand_requests_seven_hundred_come_from_the_right_runs(house: House) -> None:
    """Q-31, TAG-3: 20 runs in flight; right tags, none, unknown, of an ended run."""
    await house.start(session="eve", tag=ENDED)
    await house.end("eve")
    tags = [new_tag() for _ in range(20)]
    runs = {tag: await house.start(session=f"s{index}", tag=tag) for index, tag in enumerate(tags)}
    asked: list[str | None] = [tags[index % 20] for index in range(700)]
    asked += [None] * 100 + [new_tag() for _ in range(100)] + [ENDED] * 100
    found: list[tuple[str | None, str | None]] = []

    async def agent(mine: list[str | None]) -> None:
        for tag in mine:
            answer = await house.agent.get("/runs/current", headers={} if tag is None else {"concorde-run-tag": tag})
            found.append((tag, answer.json().get("id")))

    async with trio.open_nursery() as nursery:
        for index in range(20):
            nursery.start_soon(agent, asked[index::20])
    assert sorted(map(str, found)) == sorted(str((tag, runs.get(tag or ""))) for tag in asked)
    assert sum(run_id is not None for _, run_id in found) == 700


async def test_a_single_run_in_flight_is_not_guessed(house: House) -> None:
    """Q-31, TAG-3: there is no fallback, not even with a single run in flight."""
    await house.start(session="ann", tag=TAG)
    for lines in ((), ("concorde-run-tag: unknown-tag-0123456789",)):
        assert await current(house, *lines) is None

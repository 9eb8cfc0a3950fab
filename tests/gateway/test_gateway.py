"""The gateway: one nursery for queue, worker and agent server, over real sockets and a SQLite file."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from quart_trio import QuartTrio

from concorde_trio import FunctionRuntime, Gateway, PostOutcome, Prompt, RunPrompt, Signal, current_run, new_tag
from concorde_trio.errors import CannotServe, InvalidHandler, QueueTaken, UsageError
from concorde_trio.server.endpoint import endpoint_path, read_endpoint


class House:
    """A gateway whose runs wait for ``gate`` and tell the server their tag."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.gate = trio.Event()
        self.working: trio.Event = trio.Event()
        self.gateway = Gateway(store=f"sqlite:///{folder}/queue.db", runtime=FunctionRuntime(self.work), **options)
        self.seen: list[Any] = []
        self.tag = new_tag()

        @self.gateway.handler("errand")
        async def on_errand(signal: Signal) -> list[Prompt]:
            return [
                Prompt(session=signal.payload, text=f"tag {self.tag}", tag=self.tag, context={"for": signal.payload})
            ]

    async def work(self, prompt: RunPrompt) -> str:
        self.working.set()
        async with httpx2.AsyncClient(base_url=self.gateway.url) as client:
            tag = prompt.text.removeprefix("tag ")
            answer = await client.get("/runs/current", headers={"concorde-run-tag": tag})
            self.seen.append((answer.status_code, answer.json()))
        await self.gate.wait()
        return f"done for {prompt.session}"


@asynccontextmanager
async def running(gateway: Gateway) -> AsyncIterator[httpx2.AsyncClient]:
    async with trio.open_nursery() as nursery:
        url = await nursery.start(gateway.run)
        headers = {"authorization": f"Bearer {gateway.access.operator_token}"}
        async with httpx2.AsyncClient(base_url=url, headers=headers) as client:
            yield client
        gateway.stop()


@pytest.mark.slow
async def test_a_run_asks_the_agent_server_who_it_is_by_its_tag(tmp_path: Path) -> None:
    """TAG-3: the request with a live tag is attributed to its run, with its context."""
    house = House(tmp_path)
    async with running(house.gateway) as client:
        answer = await client.post("/signals", json={"kind": "errand", "payload": "ann"})
        assert answer.status_code == 201
        signal_id = answer.json()["id"]
        house.gate.set()
        record = await house.gateway.wait_settled(signal_id)
        assert (record.state, record.error) == ("done", None)
    [(status, run)] = house.seen
    assert status == 200
    assert (run["signal_id"], run["session"], run["context"]) == (signal_id, "ann", {"for": "ann"})


@pytest.mark.slow
async def test_the_server_answers_until_what_drains_has_reached_its_outcome(tmp_path: Path) -> None:
    """STP-1: post and settling happen while store and server are still up."""
    house = House(tmp_path)
    async with running(house.gateway) as client:
        signal_id = await house.gateway.emit("errand", "ann")
        await house.working.wait()
        house.gateway.stop("drain")
        answer = await client.get("/runs", params={"signal": signal_id})
        assert [run["state"] for run in answer.json()["runs"]] == ["running"]
        house.gate.set()
        assert (await house.gateway.wait_settled(signal_id)).state == "done"
    with pytest.raises(httpx2.ConnectError):
        async with httpx2.AsyncClient() as client:
            await client.get(f"{house.gateway.url}/healthz")


@pytest.mark.slow
async def test_cancelling_the_gateway_cancels_its_runs_and_writes_that_down(tmp_path: Path) -> None:
    """STP-4: a cancellation is a cancelling stop, during which the store is still up."""
    house = House(tmp_path)
    async with trio.open_nursery() as nursery:
        await nursery.start(house.gateway.run)
        signal_id = await house.gateway.emit("errand", "ann")
        await house.working.wait()
        nursery.cancel_scope.cancel()
    store = house.gateway.store
    async with store.open():
        record = await store.signal(signal_id)
        assert record is not None
        assert record.state == "failed"
        assert record.error == "the worker was stopped"


@pytest.mark.slow
async def test_the_endpoint_file_is_there_while_the_gateway_runs_and_is_its_owners_alone(tmp_path: Path) -> None:
    """SRV-6: commands find the URL and the token beside the database, mode 0600."""
    house = House(tmp_path)
    database = tmp_path / "queue.db"
    async with running(house.gateway):
        endpoint = read_endpoint(database)
        assert endpoint is not None
        assert (endpoint.url, endpoint.token) == (house.gateway.url, house.gateway.access.operator_token)
        assert stat.S_IMODE(endpoint_path(database).stat().st_mode) == 0o600
    assert not endpoint_path(database).exists()


@pytest.mark.slow
async def test_a_second_gateway_on_the_same_queue_is_refused_and_told_by_whom(tmp_path: Path) -> None:
    """REC-1: one worker a queue, and the error arrives unwrapped."""
    async with running(House(tmp_path).gateway):
        with pytest.raises(QueueTaken, match=r"\d+"):
            await House(tmp_path).gateway.run()


@pytest.mark.slow
async def test_a_port_in_use_is_one_clear_error_and_starts_nothing(tmp_path: Path) -> None:
    """SRV-1: the error arrives unwrapped, and the queue is free again."""
    listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
    port = listener.socket.getsockname()[1]
    async with listener:
        with pytest.raises(CannotServe, match="in use"):
            await House(tmp_path, port=port).gateway.run()
    async with running(House(tmp_path).gateway):
        pass


@pytest.mark.slow
async def test_the_users_own_app_gets_the_routes_and_knows_the_current_run_in_its_own(tmp_path: Path) -> None:
    """SRV-8: current_run() in the user's handlers and hooks, in an app that they made."""
    app = QuartTrio("house")
    hooked: list[Any] = []

    @app.before_request
    async def hook() -> None:
        hooked.append(current_run())

    @app.get("/budget")
    async def budget() -> dict[str, Any]:
        run = current_run()
        return {"for": run.context["for"] if run else None}

    house = House(tmp_path, app=app)
    assert house.gateway.app is app
    async with running(house.gateway) as client:
        signal_id = await house.gateway.emit("errand", "ann")
        await house.working.wait()
        tagged = await client.get("/budget", headers={"concorde-run-tag": house.tag})
        untagged = await client.get("/budget")
        house.gate.set()
        await house.gateway.wait_settled(signal_id)
        ended = await client.get("/budget", headers={"concorde-run-tag": house.tag})
    assert [json.loads(answer.content)["for"] for answer in (tagged, untagged, ended)] == ["ann", None, None]
    assert any(run is not None for run in hooked)


async def test_a_handler_that_comes_after_the_start_is_refused(tmp_path: Path) -> None:
    """CLM-3: a worker that recovers must know every handler."""
    house = House(tmp_path)
    async with running(house.gateway):
        with pytest.raises(InvalidHandler, match="too late"):
            house.gateway.add_handler("other", lambda signal: None)


def test_what_a_gateway_is_given_wrongly_is_refused_where_it_is_written() -> None:
    """Misuse is loud at once: the store, an unknown option, a host without tokens."""
    runtime = FunctionRuntime(House.work)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="sqlite:///PATH"):
        Gateway(store="mysql://x", runtime=runtime)
    with pytest.raises(UsageError, match="lower-case"):
        Gateway(store="postgresql:///x?schema=Agents", runtime=runtime)
    with pytest.raises(UsageError, match="no such option: max_runing"):
        Gateway(store="memory:", runtime=runtime, max_runing=3)
    with pytest.raises(UsageError, match="operator_token and agent_token"):
        Gateway(store="memory:", runtime=runtime, host="0.0.0.0")
    with pytest.raises(UsageError, match="a stop is"):
        Gateway(store="memory:", runtime=runtime).stop("now")


async def test_a_route_that_the_agent_server_would_hide_keeps_a_gateway_from_running() -> None:
    """SRV-1: in a sentence, before anything is served; whether the route was there first or came later."""
    gateway = Gateway(store="memory:", runtime=FunctionRuntime(House.work))  # type: ignore[arg-type]
    gateway.app.add_url_rule("/runs/<mine>", "mine", lambda mine: mine)
    with pytest.raises(UsageError, match="GET /runs/<mine>"):
        await gateway.run()


@pytest.mark.slow
async def test_a_payload_may_be_as_large_as_the_gateway_was_told(tmp_path: Path) -> None:
    """SIG-5: one megabyte unless set, in code and over HTTP, and more is refused in a sentence."""
    house = House(tmp_path, max_payload=3_000_000)
    house.gate.set()
    async with running(house.gateway) as client:
        large = await client.post("/signals", json={"kind": "other", "payload": "é" * 1_400_000})
        assert large.status_code == 201
        larger = await client.post("/signals", json={"kind": "other", "payload": "x" * 3_000_001})
        assert larger.status_code == 400
        assert "3,000,000" in larger.json()["detail"]
    with pytest.raises(UsageError, match="max_payload"):
        House(tmp_path, max_payload=0)


@pytest.mark.slow
async def test_the_users_own_routes_are_guarded_as_agent_routes_are(tmp_path: Path) -> None:
    """SRV-6: a page of another site cannot make a browser change something through them."""
    app = QuartTrio("house")

    @app.post("/spend")
    async def spend() -> str:
        return "spent"

    house = House(tmp_path, app=app)
    async with running(house.gateway) as client:
        assert (await client.post("/spend")).status_code == 200
        assert (await client.post("/spend", headers={"origin": "http://evil.example"})).status_code == 403
        assert (await client.post("/spend", headers={"host": "evil.example"})).status_code == 421


@pytest.mark.slow
async def test_the_link_that_is_printed_leads_to_a_page_and_an_own_page_goes_before_it(tmp_path: Path) -> None:
    """SRV-6: given out as a link; what it opens takes the token from behind the #, and holds no secret."""
    house = House(tmp_path)
    async with running(house.gateway) as client:
        place, _, token = house.gateway.link.partition("#token=")
        page = await client.get(place, headers={"authorization": ""})
        assert page.status_code == 200
        assert "Operator token" in page.text
        assert house.gateway.access.operator_token not in page.text
        assert (await client.post(place, json={"token": token}, headers={"authorization": ""})).status_code == 204
    (tmp_path / "own").mkdir()
    own = House(tmp_path / "own")
    own.gateway.app.add_url_rule("/", "mine", lambda: "my own page")
    async with running(own.gateway) as client:
        assert (await client.get("/")).text == "my own page"


@pytest.mark.slow
async def test_handlers_can_be_given_at_once_and_their_answers_had_by_the_signals_id() -> None:
    """CLM-3, PST-1, RUN-5: as open_worker takes them, beside those that are added later."""
    told: list[str] = []

    class Errand:
        def handle(self, signal: Signal) -> list[Prompt]:
            return [Prompt(session="ann", text=signal.payload)]

        def post(self, signal: Signal, outcome: PostOutcome) -> None:
            told.append(str(outcome.runs[0].text))

    async def agent(prompt: RunPrompt) -> str:
        return f"{prompt.text} is bought"

    gateway = Gateway(store="memory:", runtime=FunctionRuntime(agent), handlers={"errand": Errand()})
    with pytest.raises(InvalidHandler, match="has a handler already"):
        gateway.add_handler("errand", Errand())
    async with running(gateway):
        signal_id = await gateway.emit("errand", "milk")
        await gateway.wait_settled(signal_id)
        assert [run.text for run in await gateway.runs(signal_id)] == told == ["milk is bought"]

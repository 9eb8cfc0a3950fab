"""What members of a fleet share, and how: runs by capacity, tags that each masks, and a fleet that a person looks at."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import httpx2
import pytest
import trio

from concorde_trio import Gateway, Prompt, Signal, new_tag
from concorde_trio.records import SignalState
from concorde_trio.signals.store import RunFilter
from concorde_trio.stores.postgres.store import PostgresStore
from tests.fleet.members import LONG, Fleet, settled, until
from tests.stores.postgres_server import PostgresServer, postgres

pytestmark = pytest.mark.slow

__all__ = ["postgres"]


@pytest.fixture
def fleet(postgres: PostgresServer) -> Fleet:
    """A queue of its own."""
    return Fleet(postgres, postgres.place())


async def test_a_member_takes_no_more_than_its_capacity_and_others_take_the_rest(fleet: Fleet) -> None:
    """LCK-2: what nobody has room for is offered until somebody has; a run on each is stopped from anywhere (RUN-6)."""
    gates = [fleet.held(f"s{number}") for number in range(6)]
    async with fleet.member("a", capacity=2) as a, fleet.member("b", capacity=3) as b:
        ids = [await a.emit("errand", f"s{number}") for number in range(6)]
        await until(lambda: len(fleet.started) == 5)
        await until(lambda: fleet.sql("select count(*) from {}.concorde_executions") == [(6,)])
        view = await b.store.fleet()  # type: ignore[attr-defined]
        assert sorted(len(member.running) for member in view.members) == [2, 3]
        assert (view.offered, view.unclaimed) == (1, 0)
        (waiting,) = [run for run in await a.store.runs(RunFilter()) if run.started_at is None]
        await b.cancel_run(waiting.id)
        running = next(
            run for run in await a.store.runs(RunFilter()) if run.started_at is not None and run.ended_at is None
        )
        for worker in (a, b):
            assert (await settled(worker, waiting.signal_id)).state is SignalState.FAILED
        await b.cancel_run(running.id)
        assert (await settled(a, running.signal_id)).state is SignalState.FAILED
        for gate in gates:
            gate.set()
        states = [(await settled(b, each)).state for each in ids]
    assert sorted(states) == [SignalState.DONE] * 4 + [SignalState.FAILED] * 2
    assert len(fleet.started) == 5


async def test_every_member_masks_the_tags_of_all_runs_and_attributes_its_own(fleet: Fleet) -> None:
    """TAG-3, TAG-4: a request is attributed where its run executes; nobody shows a tag that is live elsewhere."""
    tag, token = new_tag(), "t" * 32
    fleet.held("tagged")

    def tagged(arrived: Signal) -> list[Prompt]:
        return [Prompt(session="tagged", text=f"say {tag}", tag=tag)]

    async with trio.open_nursery() as nursery:
        gateways = []
        for name in ("a", "b"):
            gateway = Gateway(
                store=PostgresStore(fleet.url, lease=LONG), runtime=fleet.runtime(name), operator_token=token
            )
            gateway.add_handler("tagged", tagged)
            await nursery.start(gateway.run)
            gateways.append(gateway)
        signal_id = await gateways[0].emit("tagged")
        await until(lambda: bool(fleet.started))
        here = {"a": 0, "b": 1}[fleet.started[0][0]]
        found = []
        async with httpx2.AsyncClient() as client:
            for gateway in gateways:
                asked = await client.get(f"{gateway.url}/runs", headers={"authorization": f"Bearer {token}"})
                assert tag not in asked.text
                assert "[run tag]" in asked.text
                current = await client.get(f"{gateway.url}/runs/current", headers={"concorde-run-tag": tag})
                found.append(current.status_code)
        assert found[here] == 200
        assert found[1 - here] == 404
        fleet.go_on["tagged"].set()
        assert (await settled(gateways[1].worker, signal_id)).state is SignalState.DONE
        for gateway in gateways:
            gateway.stop()


async def test_the_command_fleet_says_who_leads_and_who_executes_what(fleet: Fleet) -> None:
    """REC-1: the epoch, the leases, the capacity and the lag, in words and as a document; SQLite has none."""
    fleet.held("a")
    async with fleet.member("one", capacity=1) as one:
        await one.emit("errand", "a")
        await until(lambda: bool(fleet.started))
        await one.emit("errand", "b")
        await until(lambda: fleet.sql("select count(*) from {}.concorde_executions") == [(2,)])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "CONCORDE_STORE": fleet.url}

        async def command(*arguments: str) -> str:
            done = await trio.run_process(
                [sys.executable, "-m", "concorde_trio", "fleet", *arguments],
                env=environment,
                capture_stdout=True,
                stderr=subprocess.STDOUT,
            )
            return bytes(done.stdout).decode()

        found = json.loads(await command("--json"))
        (member,) = found["members"]
        assert (found["epoch"], found["leader"], found["offered"]) == (1, member["id"], 1)
        assert (member["leads"], member["capacity"], len(member["running"])) == (True, 1, 1)
        assert 0 < member["lease_left"] <= member["lease"] == LONG
        words = await command()
        assert f"{os.getpid()} on" in words
        assert "1 of 1" in words
        fleet.go_on["a"].set()

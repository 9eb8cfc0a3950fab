"""PiRuntime and the real pi, if it is installed: as a process of each run, and behind a listener on a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from concorde_trio import PiProgram, PiRuntime, RunOutcome, RuntimeContext, Usage
from concorde_trio.records import RunState
from concorde_trio.testing.model_server import ModelServer
from tests.processes.census import Census, until
from tests.runtimes.agent_programs import path, pi_settings, program
from tests.runtimes.agents import prompt
from tests.runtimes.scripted_models import asked, open_scripted_models, pings

pytestmark = pytest.mark.slow

TAG = "0123456789abcdef-tag"


def command() -> list[str]:
    """pi in RPC mode."""
    return [program(".bin/pi"), "--mode", "rpc"]


def environment(census: Census, folder: Path, server: ModelServer) -> dict[str, str]:
    """All that a pi gets."""
    return {"PATH": path(), "LABEL": census.label, **pi_settings(folder / "settings", server.url)}


async def test_pi_as_a_program_of_each_run(census: Census, tmp_path: Path) -> None:
    """RUN-4, RUN-5, SES-16, TAG-3: goes on with its session, tells usage, reaches the agent server, leaves nothing."""
    async with open_scripted_models() as server:
        place = PiProgram(command(), cwd=tmp_path / "{session}", env=environment(census, tmp_path, server))
        runtime = PiRuntime(place, sessions=tmp_path / "sessions")
        async with runtime.open(RuntimeContext(queue="real-pi", agent_server_url=server.url)):
            ping = f'@@ bash curl -s -H "concorde-run-tag: {TAG}" $AGENT_SERVER_URL/ping; sleep $LABEL >/dev/null 2>&1 &\n@@ text pinged'
            assert await runtime.run(prompt(ping, session="Ann/x")) == RunOutcome.ok(
                "pinged", usage=Usage(input_tokens=240, output_tokens=14, cached_tokens=40, cost=0.000344)
            )
            assert pings(server) == [TAG]
            outcome = await runtime.run(prompt("@@ text second", session="Ann/x"))
            assert (outcome.state, outcome.text) == (RunState.DONE, "second")
            assert asked(server, "pinged")
    assert census.alive() == []


@asynccontextmanager
async def listening(env: dict[str, str], folder: Path) -> AsyncIterator[str]:
    """A listener that does what socat does: a pi for each connection, with it for stdin and stdout."""

    async def serve(stream: trio.SocketStream) -> None:
        socket = stream.socket.fileno()
        process = await trio.lowlevel.open_process(command(), stdin=socket, stdout=socket, env=env, cwd=folder)
        await stream.aclose()
        try:
            await process.wait()
        finally:
            process.kill()
            with trio.move_on_after(10, shield=True):
                await process.wait()

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield f"tcp://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


async def test_pi_behind_a_listener_on_a_socket(census: Census, tmp_path: Path) -> None:
    """RUN-4, RUN-6: a connection for each run; a cancelled one is aborted, and its pi and its tools are gone."""
    async with open_scripted_models() as server:
        env = environment(census, tmp_path, server)
        async with listening(env, tmp_path) as where:
            runtime = PiRuntime(where, sessions=tmp_path / "sessions")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(runtime.run, prompt(f"@@ bash touch begun; sleep {census.label}"))
                await until((tmp_path / "begun").exists)
                nursery.cancel_scope.cancel()
            await until(lambda: census.alive() == [])
            outcome = await runtime.run(prompt("@@ text again"))
            assert (outcome.state, outcome.text) == (RunState.DONE, "again")
            await until(lambda: census.alive() == [])


async def test_where_no_pi_listens_the_run_fails_and_names_the_place(tmp_path: Path) -> None:
    """RUN-7: over a real socket, or one that is no file."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    for where in (f"tcp://127.0.0.1:{port}", f"unix://{tmp_path}/nothing"):
        outcome = await PiRuntime(where, sessions=tmp_path).run(prompt())
        assert outcome.state is RunState.FAILED
        assert f"no pi was reached at {where}: " in (outcome.error or "")
        assert "socat" in (outcome.error or "")

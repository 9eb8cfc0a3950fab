"""Tools of an MCP server that is a program: a real one, of the official library."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from pathlib import Path

import pytest
import trio

from concorde_trio.errors import UsageError
from concorde_trio.processes.runner import open_program
from concorde_trio.processes.sweep import new_marker
from tests.processes.census import Census
from tests.tools.mcp_stage import Stage, running, unruly, until

pytestmark = pytest.mark.slow

KEY = "sk-4f9a-not-for-anybody"


async def test_a_server_offers_its_tools_and_answers(census: Census) -> None:
    """SES-18: names, descriptions, schemas and kinds come from the server; text comes back as it is."""
    async with running(unruly(census)) as stage:
        echo = stage.tool("echo")
        assert echo is not None
        assert (echo.spec.description, echo.kind, echo.timeout) == ("Says it again.", "read", 120)
        assert echo.spec.parameters["properties"]["text"]["type"] == "string"
        kinds = {tool.spec.name: tool.kind for tool in stage.server.tools()}
        assert (kinds["un__add"], kinds["un__die"]) == ("network", "execute")
        text = "héllo \U0001f680 \u2028\u0000 " + "\n".join("ab")
        assert (await stage.call("echo", text=text)).text == text
        assert (await stage.call("add", a=40, b=2)).text == "42"
        assert (await stage.call("odd_name_with_spaces")).text == "odd"
        assert (await stage.call("picture")).text == "[an image, image/png, 5 bytes, not shown]"


async def test_what_a_tool_says_of_its_failure_is_an_error_result(census: Census) -> None:
    """A failure in the tool's own words, and arguments that do not fit, which the server refuses."""
    async with running(unruly(census)) as stage:
        refused = await stage.call("refuse", text="not today")
        assert (refused.text, refused.is_error) == ("not today", True)
        wrong = await stage.call("add", a="forty")
        assert wrong.is_error
        assert "valid integer" in wrong.text


async def test_a_long_result_is_cut_and_all_of_it_is_in_a_file(census: Census, tmp_path: Path) -> None:
    """The result says where all of it is."""
    async with running(unruly(census), tmp_path / "outputs") as stage:
        result = await stage.call("big", size=1_000_000)
        assert len(result.text) < 101_000
        assert result.path is not None
        assert result.path in result.text
        assert Path(result.path).read_text() == "x" * 1_000_000


async def test_a_cancelled_call_is_cancelled_at_the_server_and_others_go_on(census: Census, tmp_path: Path) -> None:
    """SES-3: the call's scope ends the server's handler; calls beside it and after it are answered."""
    started, ended = tmp_path / "started", tmp_path / "ended"
    async with running(unruly(census)) as stage:
        pid = (await stage.call("number")).text
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: stage.call("hang", started=str(started), ended=str(ended)))
            await until(started.exists)
            assert (await stage.call("echo", text="beside")).text == "beside"
            nursery.cancel_scope.cancel()
        await until(ended.exists)
        assert (await stage.call("number")).text == pid


async def test_a_server_that_dies_during_a_call_gives_an_error_result_and_comes_back(census: Census) -> None:
    """The caller is never cancelled by it. The result says how the server ended, its last words, and that nobody knows
    whether the call was done; until it is back, calls say since when it is down. The tool is the same object."""
    async with running(unruly(census)) as stage:
        before = stage.tool("echo")
        with trio.CancelScope() as scope:
            died = await stage.call("die", text="out of cheese", code=3)
        assert not scope.cancelled_caught
        assert died.is_error
        for words in ("exit status 3", "out of cheese", "may or may not have been done"):
            assert words in died.text
        down = await stage.call("echo", text="there?")
        assert down.is_error
        for words in ("'un'", "cannot be reached for 0 s", "exit status 3", "try again later"):
            assert words in down.text
        await stage.up()
        assert (await stage.call("echo", text="back")).text == "back"
        assert stage.tool("echo") is before


async def test_calls_that_wait_when_a_server_is_killed_all_get_results(census: Census, tmp_path: Path) -> None:
    """Each call in flight hears of it, once."""
    results = []

    async def hang(stage: Stage, number: int) -> None:
        results.append(await stage.call("hang", started=str(tmp_path / str(number))))

    async with running(unruly(census)) as stage:
        pid = int((await stage.call("number")).text)
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(hang, stage, number)
            await until(lambda: len(list(tmp_path.iterdir())) == 5)
            os.kill(pid, signal.SIGKILL)
        assert len(results) == 5
        assert all(result.is_error and "killed by SIGKILL" in result.text for result in results)


async def test_a_tool_that_a_server_learns_is_listed(census: Census) -> None:
    """tools/list_changed makes the list be read again; a tool that is gone after a restart says so."""
    async with running(unruly(census)) as stage:
        assert stage.tool("fly") is None
        await stage.call("learn", name="fly")
        await until(lambda: stage.tool("fly"))
        fly = stage.tool("fly")
        assert fly is not None
        assert (await stage.call("fly")).text == "I am fly"
        await stage.call("die", text="")
        await until(lambda: stage.tool("fly") is None)
        assert stage.tool("echo") is not None


async def test_keys_reach_neither_results_nor_logs(census: Census, caplog: pytest.LogCaptureFixture) -> None:
    """A key in the environment is replaced where a server says it, in errors, status and log."""
    caplog.set_level(logging.DEBUG)
    async with running(unruly(census, env={"SERVICE_KEY": KEY})) as stage:
        assert "[SERVICE_KEY]" in (await stage.call("refuse", text=f"bad key {KEY}")).text
        died = await stage.call("die", text=f"cannot log in with {KEY}")
        assert "[SERVICE_KEY]" in died.text
        assert "[SERVICE_KEY]" in (await stage.call("echo", text="")).text
        assert "[SERVICE_KEY]" in stage.server.status()
        assert KEY not in died.text
    assert "[SERVICE_KEY]" in caplog.text
    assert KEY not in caplog.text


async def test_its_environment_is_what_was_named_and_no_more(census: Census, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of ours does not reach a server that was not given it."""
    monkeypatch.setenv("OURS_KEY", KEY)
    async with running(unruly(census)) as stage:
        names = (await stage.call("variables")).text.split(",")
        assert "OURS_KEY" not in names
        assert {"PATH", "LABEL", "CONCORDE_RUN_ID"} <= set(names)


async def test_leaving_ends_the_server_though_calls_hang(census: Census, tmp_path: Path) -> None:
    """REC-6: no process is left (the census looks), and the tools are gone from the list."""
    async with trio.open_nursery() as nursery, running(unruly(census)) as stage:
        nursery.start_soon(lambda: stage.call("hang", started=str(tmp_path / "started")))
        await until((tmp_path / "started").exists)
        tool = stage.tool("echo")
        nursery.cancel_scope.cancel()
    assert stage.server.tools() == ()
    assert tool is not None
    assert census.alive() == []


async def test_a_frozen_server_holds_nobody(census: Census) -> None:
    """A call's scope ends the call though the server reads nothing, not even the cancellation; thawed, it goes on.
    One that is frozen when we leave is ended all the same (the census looks)."""
    async with running(unruly(census)) as stage:
        pid = int((await stage.call("number")).text)
        os.kill(pid, signal.SIGSTOP)
        for _ in range(3):
            with trio.move_on_after(0.2) as scope:
                await stage.call("echo", text="x" * 200_000)
            assert scope.cancelled_caught
        os.kill(pid, signal.SIGCONT)
        assert (await stage.call("echo", text="warm")).text == "warm"
        os.kill(pid, signal.SIGSTOP)


async def test_a_server_is_run_by_one_only(census: Census) -> None:
    """A second run is refused, and the first goes on."""
    async with running(unruly(census)) as stage:
        with pytest.raises(UsageError, match="running already"):
            await stage.server.run()
        assert (await stage.call("echo", text="on")).text == "on"


async def test_a_server_ends_when_its_worker_is_killed(census: Census) -> None:
    """REC-6: kill -9 of the process that runs it leaves no server."""
    code = f"""
import trio
from tests.processes.census import Census
from tests.tools.mcp_stage import running, unruly
census = Census()
census.env.update({json.dumps(census.env)})
async def main():
    async with running(unruly(census)) as stage:
        print((await stage.call("number")).text, flush=True)
        await trio.sleep_forever()
trio.run(main)
"""
    printed = b""

    def seen(data: bytes) -> None:
        nonlocal printed
        printed += data

    root = str(Path(__file__).parent.parent.parent)
    async with open_program(
        [sys.executable, "-c", code], env=census.env, cwd=root, marker=new_marker("tests"), on_stdout=seen
    ) as program:
        await until(lambda: printed.endswith(b"\n"))
        assert len(census.alive()) >= 2
        assert program.pid is not None
        os.kill(program.pid, signal.SIGKILL)
        await until(lambda: not any(line.startswith(f"{int(printed)} ") for line in census.alive()))

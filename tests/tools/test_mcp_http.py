"""Tools of an MCP server over HTTP: a real one on loopback, which dies, comes back, and forgets."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import trio

from concorde_trio import McpServer
from tests.processes.census import Census
from tests.tools.mcp_bare_http import BareHttp
from tests.tools.mcp_stage import free_port, http_server, running, until

pytestmark = pytest.mark.slow

KEY = "sk-4f9a-not-for-anybody"


def remote(
    port: int, *, path: str = "/mcp", headers: dict[str, str] | None = None, connect_timeout: float = 60
) -> McpServer:
    return McpServer.http(
        f"http://127.0.0.1:{port}{path}", name="far", headers=headers, connect_timeout=connect_timeout
    )


async def test_a_server_over_http_offers_its_tools_and_answers(census: Census) -> None:
    """It may come later than we do; then its tools are there."""
    port = free_port()
    async with running(remote(port)) as stage:
        assert stage.server.tools() == ()
        assert "no connection could be made" in stage.server.status()
        async with http_server(census, port):
            await stage.up()
            assert (await stage.call("echo", text="héllo \u2028")).text == "héllo \u2028"
            assert (await stage.call("refuse", text="no")).is_error
            await stage.call("learn", name="fly")
            await until(lambda: stage.tool("fly"))


async def test_a_cancelled_call_leaves_the_connection_usable(census: Census, tmp_path: Path) -> None:
    """SES-3: the server's handler is cancelled, and a call beside it is answered."""
    port = free_port()
    async with http_server(census, port), running(remote(port)) as stage:
        await stage.up()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                lambda: stage.call("hang", started=str(tmp_path / "started"), ended=str(tmp_path / "ended"))
            )
            await until((tmp_path / "started").exists)
            assert (await stage.call("echo", text="beside")).text == "beside"
            nursery.cancel_scope.cancel()
        await until((tmp_path / "ended").exists)
        assert (await stage.call("echo", text="after")).text == "after"


async def test_a_server_that_dies_never_cancels_its_callers(census: Census, tmp_path: Path) -> None:
    """Every call in flight gets an error result that says it may have been done; a new server on the port is found."""
    port = free_port()
    results = []

    async with running(remote(port)) as stage:
        async with http_server(census, port):
            await stage.up()

            async def hang(number: int) -> None:
                results.append(await stage.call("hang", started=str(tmp_path / str(number))))

            async with trio.open_nursery() as nursery:
                for number in range(3):
                    nursery.start_soon(hang, number)
                await until(lambda: len(list(tmp_path.iterdir())) == 3)
                results.append(await stage.call("die", text="bye"))
        assert len(results) == 4
        assert all(result.is_error and "may or may not have been done" in result.text for result in results)
        await stage.down()
        assert "cannot be reached" in (await stage.call("echo", text="x")).text
        async with http_server(census, port):
            await stage.up()
            assert (await stage.call("echo", text="back")).text == "back"


async def test_keys_reach_neither_results_nor_logs(census: Census, caplog: pytest.LogCaptureFixture) -> None:
    """Headers and the URL's query are replaced in the log of the libraries too, whatever its level."""
    caplog.set_level(logging.DEBUG)
    port = free_port()
    server = remote(port, path=f"/mcp?api_key={KEY}", headers={"Authorization": f"Bearer {KEY}-2"})
    async with http_server(census, port), running(server) as stage:
        await stage.up()
        assert (await stage.call("refuse", text=f"{KEY} and {KEY}-2")).text == "[api_key] and [Authorization]"
        assert KEY not in stage.server.status()
        await stage.call("die", text="")
    assert "api_key=[api_key]" in caplog.text
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("path", "connect_timeout", "words"),
    [
        ("/page", 60, "Unexpected content type: text/html"),
        ("/missing", 60, "404"),
        ("/locked", 60, "401 Unauthorized"),
        ("/silent", 0.5, "did not answer as an MCP server within 0.5 s"),
        ("/stray", 60, "JSON"),
    ],
)
async def test_a_url_that_is_no_mcp_server_says_why(path: str, connect_timeout: float, words: str) -> None:
    """No tools, a reason, and the start goes on."""
    with BareHttp() as bare:
        async with running(remote(bare.port, path=path, connect_timeout=connect_timeout)) as stage:
            assert stage.server.tools() == ()
            assert words in stage.server.status()


async def test_a_server_that_forgot_us_is_connected_anew() -> None:
    """A server that was restarted does not know the session: the call says that it was not done, the next one is."""
    with BareHttp() as bare:
        async with running(remote(bare.port)) as stage:
            assert (await stage.call("work")).text == "done in session 1"
            bare.session = 2
            forgotten = await stage.call("work")
            assert forgotten.is_error
            assert "It was not done" in forgotten.text
            await stage.up("work")
            assert (await stage.call("work")).text == "done in session 2"

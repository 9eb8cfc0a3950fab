"""The clients against another server than our own: the team's stand-in for real providers, where it is at hand."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from concorde_trio import AnthropicModel, OpenAIModel
from concorde_trio._sansio.model_events import StopReason, TextDelta
from concorde_trio.records import Usage
from concorde_trio.testing.model_checks.asking import Heard, asked, hear
from tests.models.talking import conversation, tool, user
from tests.structure.tree import ROOT

SOURCE = ROOT.parent / "shared" / "fake_model_server.py"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not SOURCE.exists(), reason="the stand-in is not at hand")]


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """The stand-in, in a thread of its own."""
    spec = importlib.util.spec_from_file_location("fake_model_server", SOURCE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found = module.ModelServer(("127.0.0.1", 0))
    found.block_on_close = False
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


@pytest.fixture(params=[OpenAIModel, AnthropicModel])
def model(request: pytest.FixtureRequest, server: Any) -> Any:
    """A client of it."""
    path = "/v1" if request.param is OpenAIModel else ""
    return request.param("fake-1", base_url=f"http://127.0.0.1:{server.server_address[1]}{path}", api_key="sk-1")


async def test_text_and_usage(model: Any) -> None:
    """SES-2, SES-16: 120 in, 20 of them cached, 7 out."""
    reply = (await hear(model, asked("@@ text Hello there"))).reply
    assert reply.text == "Hello there"
    assert reply.usage == Usage(input_tokens=120, output_tokens=7, cached_tokens=20)


async def test_a_call_and_its_result(model: Any) -> None:
    """SES-13: then the next turn of the script."""
    script = "@@ bash echo hi\n@@ length Cut sho"
    reply = (await hear(model, conversation(user(1, script), tools=(tool("bash"),)))).reply
    assert (reply.reason, reply.calls[0].name) == (StopReason.CALLS, "bash")
    assert reply.calls[0].refused is None
    assert reply.calls[0].arguments == '{"command": "echo hi"}'


async def test_what_goes_wrong(model: Any) -> None:
    """SES-11, SES-13: statuses, errors in the stream, nonsense, half an answer."""
    error = (await hear(model, asked(f"@@ status 429 1 7 {model!r}"))).error
    assert error is not None
    assert (error.status, error.retry_after) == (429, f"7 {model!r}")
    error = (await hear(model, asked("@@ failed overloaded_error Too busy"))).error
    assert error is not None
    assert error.status == 529
    assert "Too busy" in str(error)
    error = (await hear(model, asked("@@ garbage"))).error
    assert error is not None
    assert not error.connection
    error = (await hear(model, asked("@@ cut some words that break off"))).error
    assert error is not None
    assert error.connection


@pytest.mark.parametrize("script", ["stall", "hang"])
async def test_a_stall_that_is_cancelled_is_seen_by_the_server(model: Any, server: Any, script: str) -> None:
    """SES-3, F-02, F-08: it notes that its peer has gone."""
    seen = len(server.requests)

    async def noted(what: str) -> None:
        with trio.fail_after(30):
            while not any(what in str(each) for each in server.requests[seen:]):
                await trio.sleep(0.01)

    heard = Heard()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear, model, asked(f"@@ {script} 60"), heard)
        await noted(script)
        if script == "stall":
            with trio.fail_after(30):
                while not any(isinstance(event, TextDelta) for event in heard.events):
                    await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    assert not heard.complete
    await noted("peer gone")

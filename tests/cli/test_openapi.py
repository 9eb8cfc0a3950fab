"""The document of the agent server, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

from concorde_trio import FunctionRuntime, Gateway
from concorde_trio.server.openapi import openapi_document
from tests.cli.running import Command


async def agent(prompt: object) -> None:
    """A runtime that is never asked."""


def test_the_command_prints_what_the_server_serves(command: Command, here: Path) -> None:
    """SRV-5: the same document, without a server; nothing is left behind."""
    expected = openapi_document(Gateway(store="memory:", runtime=FunctionRuntime(agent)).app)
    assert command("openapi", "--json").json == json.loads(json.dumps(expected))
    assert list(here.iterdir()) == []


def test_without_more_the_command_lists_the_routes(command: Command) -> None:
    """SRV-5: for a person."""
    done = command("openapi")
    assert done.status == 0
    assert "GET    /signals  Signals, newest first\n" in done.out
    assert "POST   /sessions/{name}/input  " in done.out


def test_the_document_is_written_into_a_file(command: Command, here: Path) -> None:
    """SRV-5: whole, and it says so; a place where nothing can be written is a sentence."""
    done = command("openapi", "openapi.json")
    assert done.status == 0 and done.out == "" and "written to openapi.json: " in done.err
    assert json.loads((here / "openapi.json").read_text())["openapi"] == "3.1.0"
    done = command("openapi", "nowhere/openapi.json")
    assert done.status == 1 and "nowhere/openapi.json: No such file" in done.sentence()

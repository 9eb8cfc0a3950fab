"""What the recipes start, seen by a program that notes its arguments and prints what the real one was seen to print."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from concorde_trio import CommandRuntime, RuntimeContext
from concorde_trio.records import RunState
from concorde_trio.runtimes.recipes import claude_code_runtime, codex_runtime, opencode_runtime, pi_command_runtime
from tests.processes.census import PATH, Census
from tests.runtimes import streams
from tests.runtimes.agents import prompt

pytestmark = pytest.mark.slow

ID = str(uuid.uuid5(uuid.uuid5(uuid.NAMESPACE_OID, "concorde_trio"), "Ann/x"))
FOLDER = "FOLDER"

CASES: dict[str, tuple[Callable[..., CommandRuntime], bytes, list[str], list[str]]] = {
    "claude": (
        claude_code_runtime,
        streams.CLAUDE_GOOD,
        ["-p", "--output-format", "stream-json", "--verbose", "--model", "m", "--more", "--session-id", ID],
        ["-p", "--output-format", "stream-json", "--verbose", "--model", "m", "--more", "--resume", ID],
    ),
    "codex": (
        codex_runtime,
        streams.CODEX_GOOD,
        ["exec", "--json", "--skip-git-repo-check", "-C", f"{FOLDER}/work", "-m", "m", "--more", "-"],
        ["exec", "--json", "--skip-git-repo-check", "-C", f"{FOLDER}/work", "-m", "m", "--more", "resume", "01a2", "-"],
    ),
    "opencode": (
        opencode_runtime,
        streams.OPENCODE_GOOD,
        ["run", "--format", "json", "--dir", f"{FOLDER}/work", "-m", "m", "--more"],
        ["run", "--format", "json", "--dir", f"{FOLDER}/work", "-m", "m", "--more", "-s", "ses_1"],
    ),
    "pi": (
        pi_command_runtime,
        streams.PI_GOOD,
        ["--mode", "json", "--model", "m", "--more", "--session", f"{FOLDER}/sessions/=41nn=2fx.jsonl"],
        ["--mode", "json", "--model", "m", "--more", "--session", f"{FOLDER}/sessions/=41nn=2fx.jsonl"],
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_recipe_starts_its_program_as_it_wants_it(
    name: str, census: Census, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-4, CLM-7: new, then resumed; the prompt on stdin; of the worker's environment only what is named."""
    recipe, printed, *wanted = CASES[name]
    (tmp_path / "stream").write_bytes(printed)
    program = tmp_path / name
    note = "import json, os, sys; print(json.dumps([sys.argv[1:], sys.stdin.read(), dict(os.environ)]))"
    program.write_text(f"#!/bin/sh\npython3 -c '{note}' \"$@\" >>{tmp_path}/notes\ncat {tmp_path}/stream\n")
    program.chmod(0o755)
    monkeypatch.setenv("AWS_SECRET", "not for it")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "for claude")
    runtime = recipe(
        program=str(program),
        cwd=tmp_path / "work",
        sessions=tmp_path / "sessions",
        model="m",
        arguments=["--more"],
        env={"PATH": PATH, "MINE": "yes"},
    )
    async with runtime.open(RuntimeContext(queue="recipes", agent_server_url="http://127.0.0.1:1")):
        for _ in wanted:
            outcome = await runtime.run(prompt("--do it", session="Ann/x"))
            assert (outcome.state, outcome.error) == (RunState.DONE, None)
            assert outcome.text
            assert outcome.usage
    notes: list[Any] = [json.loads(line) for line in (tmp_path / "notes").read_text().splitlines()]
    assert [arguments for arguments, _, _ in notes] == [
        [part.replace(FOLDER, str(tmp_path)) for part in arguments] for arguments in wanted
    ]
    for _, stdin, env in notes:
        assert stdin == "--do it"
        assert (env["MINE"], env["AGENT_SERVER_URL"]) == ("yes", "http://127.0.0.1:1")
        assert "AWS_SECRET" not in env
        assert ("ANTHROPIC_API_KEY" in env) == (name == "claude")

"""The recipes and the real programs, where `make agents` has put them, against scripted models on a real socket."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from concorde_trio import CommandRuntime, RuntimeContext, Usage
from concorde_trio.records import RunState
from concorde_trio.runtimes.recipes import claude_code_runtime, codex_runtime, opencode_runtime, pi_command_runtime
from concorde_trio.testing.model_server import ModelServer
from tests.processes.census import Census, until
from tests.runtimes.agent_programs import path, pi_settings, program
from tests.runtimes.agents import prompt
from tests.runtimes.scripted_models import asked, open_scripted_models, pings

pytestmark = pytest.mark.slow

TAG = "0123456789abcdef-tag"
Make = Callable[..., CommandRuntime]


def claude(folder: Path, url: str, env: dict[str, str]) -> CommandRuntime:
    """Claude Code, with leave to use its shell."""
    return claude_code_runtime(
        program=program("@anthropic-ai/claude-code-linux-x64/claude"),
        cwd=folder / "work" / "{session}",
        sessions=folder / "sessions",
        model="fake-1",
        arguments=["--allowedTools", "Bash"],
        env={
            **env,
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "secret-key",
            "CLAUDE_CONFIG_DIR": str(folder / "claude"),
        },
        idle_limit=60,
    )


def codex(folder: Path, url: str, env: dict[str, str]) -> CommandRuntime:
    """Codex CLI: its native program, for a killed wrapper would leave that running."""
    (folder / "codex").mkdir()
    (folder / "codex" / "config.toml").write_text(
        'model = "fake-1"\nmodel_provider = "fake"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
        "check_for_update_on_startup = false\n[analytics]\nenabled = false\n"
        f'[model_providers.fake]\nname = "fake"\nbase_url = "{url}/v1"\nenv_key = "FAKE_KEY"\nwire_api = "responses"\n'
        "request_max_retries = 1\nstream_max_retries = 1\n"
    )
    vendor = "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
    return codex_runtime(
        program=program(vendor),
        cwd=folder / "work" / "{session}",
        sessions=folder / "sessions",
        arguments=["--disable", "plugins", "--disable", "apps", "--disable", "remote_plugin"],
        env={**env, "FAKE_KEY": "secret-key", "CODEX_HOME": str(folder / "codex")},
        idle_limit=60,
    )


def opencode(folder: Path, url: str, env: dict[str, str]) -> CommandRuntime:
    """opencode, with its folders below ours."""
    provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{url}/v1", "apiKey": "secret-key"}}
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": "fake/fake-1",
        "permission": {"bash": "allow", "edit": "allow"},
        "provider": {"fake": {**provider, "models": {"fake-1": {}}}},
    }
    (folder / "opencode.json").write_text(json.dumps(settings))
    return opencode_runtime(
        program=program("opencode-linux-x64/bin/opencode"),
        cwd=folder / "work" / "{session}",
        sessions=folder / "sessions",
        env={
            **env,
            "OPENCODE_CONFIG": str(folder / "opencode.json"),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "XDG_DATA_HOME": str(folder / "data"),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_CONFIG_HOME": str(folder / "config"),
        },
        idle_limit=60,
    )


def pi(folder: Path, url: str, env: dict[str, str]) -> CommandRuntime:
    """pi without its RPC mode."""
    return pi_command_runtime(
        program=program(".bin/pi"),
        cwd=folder / "work" / "{session}",
        sessions=folder / "sessions",
        env={**env, **pi_settings(folder / "settings", url)},
        idle_limit=60,
    )


async def begun(runtime: CommandRuntime, server: ModelServer) -> None:
    """A first run: a tool that reaches the agent server with the run's tag, and leaves a process."""
    call = f'@@ bash curl -s -H "concorde-run-tag: {TAG}" $AGENT_SERVER_URL/ping; (sleep $LABEL >/dev/null 2>&1 &)\n@@ text it is pinged'
    outcome = await runtime.run(prompt(call, session="Ann/x"))
    assert (outcome.state, outcome.error, outcome.text) == (RunState.DONE, None, "it is pinged")
    assert pings(server) == [TAG]
    assert tokens(outcome.usage) == (240, 14, 40)


async def gone_on(runtime: CommandRuntime, server: ModelServer, replies: int) -> None:
    """The run after that: the model is told the first, and so many replies are counted."""
    outcome = await runtime.run(prompt("@@ text and more", session="Ann/x"))
    assert (outcome.state, outcome.error, outcome.text) == (RunState.DONE, None, "and more")
    assert asked(server, "it is pinged")
    assert tokens(outcome.usage) == (120 * replies, 7 * replies, 20 * replies)


def tokens(usage: Usage | None) -> tuple[int, int, int]:
    """All but the cost, which each program makes of its own price list."""
    return (0, 0, 0) if usage is None else (usage.input_tokens, usage.output_tokens, usage.cached_tokens)


async def stopped(runtime: CommandRuntime, folder: Path) -> None:
    """A run that is cancelled while its tool is at work."""
    async with trio.open_nursery() as nursery:
        text = "@@ bash touch begun; (setsid sleep $LABEL &); sleep $LABEL\n@@ text never"
        nursery.start_soon(runtime.run, prompt(text, session="Ann/x"))
        await until(lambda: list(folder.glob("work/*/begun")), seconds=60)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("make", [claude, codex, opencode, pi])
async def test_a_recipe_goes_on_counts_tags_and_stops(make: Make, census: Census, tmp_path: Path) -> None:
    """RUN-4, RUN-5, SES-16, TAG-3, REC-6: with the real program; whatever became of a run, no process of it is left."""
    async with open_scripted_models() as server:
        runtime = make(tmp_path, server.url, {"PATH": path(), "HOME": str(tmp_path), "LABEL": census.label})
        async with runtime.open(RuntimeContext(queue=f"recipe-{make.__name__}", agent_server_url=server.url)):
            await begun(runtime, server)
            assert census.alive() == []
            await stopped(runtime, tmp_path)
            assert census.alive() == []
            # codex tells the sum at the end of a turn only, so what a stopped turn used is counted with the next.
            await gone_on(runtime, server, replies=2 if make is codex else 1)

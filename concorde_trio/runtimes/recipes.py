"""Ready-made CommandRuntimes for agent programs that people use: Claude Code, Codex CLI, opencode, and pi without its RPC mode.

The law: a recipe is nothing but arguments of CommandRuntime, as anybody could write them; tests run each with the real program.
What a version changes is mended by ``arguments``, ``env`` and ``inherit``, or by writing a CommandRuntime.
"""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from concorde_trio.runtimes.command import CommandRuntime
from concorde_trio.runtimes.command_learnt import LearntSession
from concorde_trio.runtimes.command_rules import JsonLines, Rule, UsageRules
from concorde_trio.runtimes.command_session import DerivedSession, SessionFile
from concorde_trio.runtimes.command_template import Folder

_ALWAYS = ("PATH", "HOME", "LANG", "TMPDIR", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS")
_IDLE = 900.0

_RESULT = {"type": "result"}
CLAUDE_CODE = JsonLines(
    end=_RESULT,
    state=Rule(when=_RESULT, take="is_error"),  # subtype is "success" for a refused key, too
    ok=[False],
    text=Rule(when={"type": "result", "is_error": False}, take="result"),
    error=[Rule(when={"type": "result", "is_error": True}, take="result")],
    usage=UsageRules(
        input=Rule(when=_RESULT, take="modelUsage.*.inputTokens"),
        output=Rule(when=_RESULT, take="modelUsage.*.outputTokens"),
        cached=Rule(when=_RESULT, take="modelUsage.*.cacheReadInputTokens"),
        written=Rule(when=_RESULT, take="modelUsage.*.cacheCreationInputTokens"),
        cost=Rule(when=_RESULT, take="total_cost_usd"),
        input_includes_cached=False,
    ),
)
_COMPLETED = {"type": "turn.completed"}
CODEX = JsonLines(
    end=_COMPLETED,
    fail={"type": "turn.failed"},  # other errors are notes: it goes on after them
    text=Rule(when={"type": "item.completed", "item.type": "agent_message"}, take="item.text"),
    error=[Rule(when={"type": "turn.failed"}, take="error.message")],
    usage=UsageRules(
        input=Rule(when=_COMPLETED, take="usage.input_tokens"),
        output=Rule(when=_COMPLETED, take="usage.output_tokens"),
        cached=Rule(when=_COMPLETED, take="usage.cached_input_tokens"),
        cumulative=True,
    ),
)
_STEP = {"type": "step_finish"}
OPENCODE = JsonLines(
    end={"type": "step_finish", "part.reason": ["stop", "length"]},
    fail={"type": "error"},
    text=Rule(when={"type": "text"}, take="part.text"),
    error=[Rule(when={"type": "error"}, take="error.data.message"), Rule(when={"type": "error"}, take="error.name")],
    usage=UsageRules(
        input=Rule(when=_STEP, take="part.tokens.input", fold="sum"),
        output=Rule(when=_STEP, take="part.tokens.output", fold="sum"),
        cached=Rule(when=_STEP, take="part.tokens.cache.read", fold="sum"),
        written=Rule(when=_STEP, take="part.tokens.cache.write", fold="sum"),
        cost=Rule(when=_STEP, take="part.cost", fold="sum"),
        input_includes_cached=False,
    ),
)
_ASSISTANT = {"type": "message_end", "message.role": "assistant"}
PI = JsonLines(
    end={"type": ["agent_settled", "agent_end"]},
    state=Rule(when=_ASSISTANT, take="message.stopReason"),
    ok=["stop", "length"],
    text=Rule(when=_ASSISTANT, take="message.content.*.text"),
    error=[Rule(when=_ASSISTANT, take="message.errorMessage")],
    usage=UsageRules(
        input=Rule(when=_ASSISTANT, take="message.usage.input", fold="sum"),
        output=Rule(when=_ASSISTANT, take="message.usage.output", fold="sum"),
        cached=Rule(when=_ASSISTANT, take="message.usage.cacheRead", fold="sum"),
        written=Rule(when=_ASSISTANT, take="message.usage.cacheWrite", fold="sum"),
        cost=Rule(when=_ASSISTANT, take="message.usage.cost.total", fold="sum"),
        input_includes_cached=False,
    ),
)


def claude_code_runtime(
    *,
    cwd: Folder,
    sessions: str | os.PathLike[str],
    namespace: uuid.UUID | str = "concorde_trio",
    program: str = "claude",
    model: str | None = None,
    arguments: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    inherit: Sequence[str] = (),
    idle_limit: float | None = _IDLE,
    time_limit: float | None = None,
) -> CommandRuntime:
    """Claude Code (tried: 2.1.197), one ``claude -p`` for each run.

    ``cwd``, ``env``, ``idle_limit`` and ``time_limit`` as in CommandRuntime; ``inherit``: names besides the usual ones and ANTHROPIC_*.
    ``sessions``: an absolute folder for notes of what was begun; a session's id is made of ``namespace`` and its name. ``arguments``: more
    of them, such as ``["--allowedTools", "Bash"]``: what is not allowed is denied, and the run is ok all the same. It tells
    its usage at the end, so a usage_limit does not cut it off. UsageError as CommandRuntime.
    """
    start = (program, "-p", "--output-format", "stream-json", "--verbose", *_model("--model", model), *arguments)
    return CommandRuntime(
        [*start, "--session-id", "{native_id}"],
        argv_resume=[*start, "--resume", "{native_id}"],
        cwd=cwd,
        env={
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            **(env or {}),
        },
        inherit=[
            *_ALWAYS,
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CONFIG_DIR",
            *inherit,
        ],
        output=CLAUDE_CODE,
        session=DerivedSession(namespace, Path(sessions)),
        model=model,
        stop=[(signal.SIGINT, 5.0)],
        idle_limit=idle_limit,
        time_limit=time_limit,
    )


def codex_runtime(
    *,
    cwd: Folder,
    sessions: str | os.PathLike[str],
    program: str = "codex",
    model: str | None = None,
    arguments: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    inherit: Sequence[str] = (),
    idle_limit: float | None = _IDLE,
    time_limit: float | None = None,
) -> CommandRuntime:
    """Codex CLI (tried: 0.171.0), one ``codex exec`` for each run; its settings are in CODEX_HOME.

    ``sessions``: an absolute folder for the ids that it makes up. ``arguments``: more of them, such as ``["-s", "workspace-write", "-c",
    "sandbox_workspace_write.network_access=true"]``: its sandbox cuts the network, the agent server included. It tells its usage
    at the end of a turn, so a usage_limit does not cut it off. All else as in ``claude_code_runtime``.
    """
    start = (program, "exec", "--json", "--skip-git-repo-check", "-C", "{cwd}", *_model("-m", model), *arguments)
    return CommandRuntime(
        [*start, "-"],
        argv_resume=[*start, "resume", "{native_id}", "-"],
        cwd=cwd,
        env=env,
        inherit=[*_ALWAYS, "OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME", *inherit],
        output=CODEX,
        session=LearntSession(
            Path(sessions), Rule(when={"type": "thread.started"}, take="thread_id", fold="first"), "no rollout found"
        ),
        model=model,
        stop=[(signal.SIGINT, 5.0)],
        idle_limit=idle_limit,
        time_limit=time_limit,
    )


def opencode_runtime(
    *,
    cwd: Folder,
    sessions: str | os.PathLike[str],
    program: str = "opencode",
    model: str | None = None,
    arguments: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    inherit: Sequence[str] = (),
    idle_limit: float | None = _IDLE,
    time_limit: float | None = None,
) -> CommandRuntime:
    """opencode (tried: 1.18.33), one ``opencode run`` for each run; its settings are in ``cwd`` or its own folders.

    ``sessions``: an absolute folder for the ids that it makes up. ``inherit`` must name the variables that its providers need. It
    retries a model server's errors without a word, so ``idle_limit`` is what ends that. All else as in ``claude_code_runtime``.
    """
    start = (program, "run", "--format", "json", "--dir", "{cwd}", *_model("-m", model), *arguments)
    every = {"type": ["step_start", "text", "tool_use", "step_finish", "error"]}
    return CommandRuntime(
        start,
        argv_resume=[*start, "-s", "{native_id}"],
        cwd=cwd,
        env={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", **(env or {})},
        inherit=[*_ALWAYS, "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", *inherit],
        output=OPENCODE,
        session=LearntSession(Path(sessions), Rule(when=every, take="sessionID", fold="first"), "[Ss]ession not found"),
        model=model,
        stop=[(signal.SIGTERM, 2.0)],
        idle_limit=idle_limit,
        time_limit=time_limit,
    )


def pi_command_runtime(
    *,
    cwd: Folder,
    sessions: str | os.PathLike[str],
    program: str = "pi",
    model: str | None = None,
    arguments: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    inherit: Sequence[str] = (),
    idle_limit: float | None = _IDLE,
    time_limit: float | None = None,
) -> CommandRuntime:
    """pi (tried: 0.73.1 and 1.6.0), one ``pi --mode json`` for each run. PiRuntime is the better way: it aborts, and notices more.

    ``sessions``: an absolute folder for its session files. ``inherit`` must name the variables that its providers need. All else
    as in ``claude_code_runtime``.
    """
    start = (program, "--mode", "json", *_model("--model", model), *arguments)
    return CommandRuntime(
        [*start, "--session", "{session_file}"],
        cwd=cwd,
        env={"PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0", **(env or {})},
        inherit=[*_ALWAYS, "PI_CODING_AGENT_DIR", *inherit],
        output=PI,
        session=SessionFile(Path(sessions)),
        model=model,
        stop=[(signal.SIGTERM, 5.0)],
        idle_limit=idle_limit,
        time_limit=time_limit,
    )


def _model(option: str, model: str | None) -> tuple[str, ...]:
    return () if model is None else (option, "{model}")

"""Streams as four agent programs print them, and the rules of the recipes that judge them."""

from __future__ import annotations

import json
from typing import Any

from concorde_trio.runtimes.recipes import CLAUDE_CODE as CLAUDE
from concorde_trio.runtimes.recipes import CODEX, OPENCODE, PI

__all__ = ["CLAUDE", "CODEX", "OPENCODE", "PI"]


def stream(*records: dict[str, Any]) -> bytes:
    """Records as a program prints them: LF, UTF-8, nothing escaped."""
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def pi_message(stop: str, *texts: str, tokens: tuple[int, int, int] = (100, 20, 7), **more: Any) -> dict[str, Any]:
    content = [{"type": "thinking", "thinking": "hm"}, *({"type": "text", "text": text} for text in texts)]
    usage = {"input": tokens[0], "cacheRead": tokens[1], "output": tokens[2], "cost": {"input": 0.1, "total": 0.25}}
    return {
        "type": "message_end",
        "message": {"role": "assistant", "content": content, "usage": usage, "stopReason": stop, **more},
    }


PI_START = (
    {"type": "session", "version": 3, "id": "0", "cwd": "/w"},
    {"type": "agent_start"},
    {"type": "message_end", "message": {"role": "user", "content": [{"type": "text", "text": "hi\u2028there"}]}},
)
PI_END = ({"type": "agent_end", "messages": ["x" * 100_000]}, {"type": "agent_settled", "aborted": False})
PI_GOOD = stream(
    *PI_START,
    pi_message("toolUse", "let me see"),
    {"type": "tool_execution_end", "result": "pong", "isError": False},
    pi_message("stop", "all", " done"),
    *PI_END,
)
PI_401 = stream(*PI_START, pi_message("error", tokens=(0, 0, 0), errorMessage="401 scripted 401"), *PI_END)
PI_ABORTED = stream(*PI_START, pi_message("aborted"), *PI_END)
PI_STALLED = stream(*PI_START, {"type": "message_update", "delta": "hal"})

CODEX_START = (
    {"type": "thread.started", "thread_id": "01a2"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "Model metadata not found."}},
    {"type": "turn.started"},
)
CODEX_GOOD = stream(
    *CODEX_START,
    {"type": "error", "message": "Reconnecting... 1/1 (...)"},
    {"type": "item.completed", "item": {"id": "item_1", "type": "command_execution", "exit_code": 1}},
    {"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": "codex done"}},
    {"type": "turn.completed", "usage": {"input_tokens": 240, "cached_input_tokens": 40, "output_tokens": 14}},
)
CODEX_CUT = stream(
    *CODEX_START,
    {"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": "half"}},
    {"type": "turn.failed", "error": {"message": "stream disconnected before completion: eof"}},
)

CLAUDE_START = (
    {"type": "system", "subtype": "init", "session_id": "1111", "tools": ["Bash"]},
    {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "name": "Bash"}], "usage": {"output_tokens": 1}},
    },
    {"type": "system", "subtype": "api_retry", "attempt": 1, "error_status": 500},
)


def claude_result(text: str, *, is_error: bool, subtype: str = "success") -> dict[str, Any]:
    tokens = {"inputTokens": 100, "outputTokens": 7, "cacheReadInputTokens": 20}
    return {
        "type": "result",
        "subtype": subtype,
        "is_error": is_error,
        "result": text,
        "usage": {"input_tokens": 0, "output_tokens": 0},
        "total_cost_usd": 0.00137,
        "modelUsage": {"big-1": tokens, "small-1": tokens},
    }


CLAUDE_GOOD = stream(*CLAUDE_START, claude_result("claude done", is_error=False))
CLAUDE_EMPTY = stream(*CLAUDE_START, claude_result("", is_error=False))
CLAUDE_401 = stream(*CLAUDE_START, claude_result("API Error: 401 scripted 401", is_error=True))
CLAUDE_INTERRUPTED = stream(*CLAUDE_START, claude_result("", is_error=True, subtype="error_during_execution"))


def opencode_step(reason: str) -> dict[str, Any]:
    tokens = {"input": 100, "output": 7, "cache": {"read": 20, "write": 0}}
    return {"type": "step_finish", "sessionID": "ses_1", "part": {"reason": reason, "tokens": tokens, "cost": 0.5}}


OPENCODE_START = (
    {"type": "step_start", "sessionID": "ses_1"},
    {"type": "tool_use", "sessionID": "ses_1", "part": {"state": {"status": "completed"}}},
    {"type": "text", "sessionID": "ses_1", "part": {"text": "let me see"}},
    opencode_step("tool-calls"),
)
OPENCODE_GOOD = stream(
    *OPENCODE_START, {"type": "text", "sessionID": "ses_1", "part": {"text": "open done"}}, opencode_step("stop")
)
OPENCODE_401 = stream({"type": "error", "sessionID": "ses_1", "error": {"data": {"message": "scripted 401"}}})
OPENCODE_UNKNOWN = stream(*OPENCODE_START, opencode_step("unknown"))

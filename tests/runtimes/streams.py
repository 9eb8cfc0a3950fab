"""Streams as four agent programs print them, and the rules that judge them: what an adapter is, as data."""

from __future__ import annotations

import json
from typing import Any

from concorde_trio.runtimes.command_rules import JsonLines, Rule, UsageRules

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
        cost=Rule(when=_ASSISTANT, take="message.usage.cost.total", fold="sum"),
        input_includes_cached=False,
    ),
)
CODEX = JsonLines(
    end={"type": "turn.completed"},
    fail={"type": "turn.failed"},
    text=Rule(when={"type": "item.completed", "item.type": "agent_message"}, take="item.text"),
    error=[Rule(when={"type": "turn.failed"}, take="error.message")],
    usage=UsageRules(
        input=Rule(when={"type": "turn.completed"}, take="usage.input_tokens"),
        output=Rule(when={"type": "turn.completed"}, take="usage.output_tokens"),
        cached=Rule(when={"type": "turn.completed"}, take="usage.cached_input_tokens"),
    ),
)
_RESULT = {"type": "result"}
CLAUDE = JsonLines(
    end=_RESULT,
    state=Rule(when=_RESULT, take="is_error"),
    ok=[False],
    text=Rule(when={"type": "result", "is_error": False}, take="result"),
    error=[Rule(when={"type": "result", "is_error": True}, take="result")],
    usage=UsageRules(
        input=Rule(when=_RESULT, take="modelUsage.*.inputTokens"),
        output=Rule(when=_RESULT, take="modelUsage.*.outputTokens"),
        cached=Rule(when=_RESULT, take="modelUsage.*.cacheReadInputTokens"),
        cost=Rule(when=_RESULT, take="total_cost_usd"),
        input_includes_cached=False,
    ),
)
_STEP = {"type": "step_finish"}
OPENCODE = JsonLines(
    end={"type": "step_finish", "part.reason": ["stop", "length"]},
    fail={"type": "error"},
    text=Rule(when={"type": "text"}, take="part.text"),
    error=[Rule(when={"type": "error"}, take="error.data.message")],
    usage=UsageRules(
        input=Rule(when=_STEP, take="part.tokens.input", fold="sum"),
        output=Rule(when=_STEP, take="part.tokens.output", fold="sum"),
        cached=Rule(when=_STEP, take="part.tokens.cache.read", fold="sum"),
        cost=Rule(when=_STEP, take="part.cost", fold="sum"),
        input_includes_cached=False,
    ),
)


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

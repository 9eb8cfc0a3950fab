"""concorde_trio runs many AI-agent tasks in parallel on Trio, without letting them harm each other.

What is not exported here, in ``concorde_trio.errors`` or in ``concorde_trio.testing`` is private. A name is imported when it is first used, so that
a command that only emits a signal does not wait for a web framework.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concorde_trio._sansio.input_queue import Receipt
    from concorde_trio._sansio.lock_table import LockTable
    from concorde_trio._sansio.model_events import (
        CallDelta,
        CallStarted,
        ModelRequest,
        Ping,
        Purpose,
        ReasoningDelta,
        ReplyEnd,
        StopReason,
        TextDelta,
        TextSnapshot,
        ToolSpec,
        UsageReport,
    )
    from concorde_trio._sansio.schedules import ScheduleRecord
    from concorde_trio._sansio.session_lock import SessionLock
    from concorde_trio._sansio.session_terms import (
        CallReport,
        RequestFailure,
        SessionSettings,
        StartCall,
        StartRequest,
        TurnResult,
    )
    from concorde_trio.client.client import Client
    from concorde_trio.client.following import Happened, Reset
    from concorde_trio.conversations.session_input import SessionInputHandler
    from concorde_trio.gateway import Gateway
    from concorde_trio.log_context import JsonLogFormatter, RunLogFilter
    from concorde_trio.messages import CallOutcome, Input, Message, Role, ToolCall
    from concorde_trio.models.anthropic import AnthropicModel
    from concorde_trio.models.openai import OpenAIModel
    from concorde_trio.models.scripted import ScriptedModel
    from concorde_trio.observability.otel import instrument
    from concorde_trio.observability.prometheus import Metrics
    from concorde_trio.records import PostOutcome, Prompt, RunInfo, RunOutcome, RunPrompt, Signal, SignalRecord, Usage
    from concorde_trio.runtimes.command import CommandRuntime
    from concorde_trio.runtimes.command_learnt import LearntSession
    from concorde_trio.runtimes.command_rules import JsonLines, Rule, UsageRules
    from concorde_trio.runtimes.command_session import DerivedSession, NoSession, SessionFile
    from concorde_trio.runtimes.command_template import LiteralArgument
    from concorde_trio.runtimes.function import FunctionRuntime
    from concorde_trio.runtimes.in_process import InProcessRuntime
    from concorde_trio.runtimes.pi import PiRuntime
    from concorde_trio.runtimes.pi_where import PiProgram
    from concorde_trio.runtimes.recipes import (
        claude_code_runtime,
        codex_runtime,
        opencode_runtime,
        pi_command_runtime,
    )
    from concorde_trio.server.access import Access
    from concorde_trio.server.app import agent_server, server_closing
    from concorde_trio.server.attribution import current_run
    from concorde_trio.server.require_run import require_run
    from concorde_trio.server.serving import serve
    from concorde_trio.sessions.harness import SessionHarness
    from concorde_trio.sessions.host import Host, Port, Work
    from concorde_trio.sessions.model import Model
    from concorde_trio.sessions.tool import Leftover, Tool, ToolContext, ToolResult, ToolSource
    from concorde_trio.signals.emit import emit_sync
    from concorde_trio.signals.handlers import SignalHandler
    from concorde_trio.signals.runtime import Runtime, RuntimeContext
    from concorde_trio.signals.schedule import Schedule
    from concorde_trio.signals.tags import new_tag
    from concorde_trio.signals.template import template_handler
    from concorde_trio.signals.worker import SignalWorker, open_worker
    from concorde_trio.stores.memory import MemoryStore
    from concorde_trio.stores.postgres.store import PostgresStore
    from concorde_trio.stores.sqlite import SqliteStore
    from concorde_trio.tools.files import file_tools
    from concorde_trio.tools.function import tool
    from concorde_trio.tools.mcp import McpServer
    from concorde_trio.tools.shell import ShellTool
    from concorde_trio.tools.threads import limit_tool_threads

_HOMES = {
    "Access": "server.access",
    "AnthropicModel": "models.anthropic",
    "CallDelta": "_sansio.model_events",
    "CallOutcome": "messages",
    "CallReport": "_sansio.session_terms",
    "CallStarted": "_sansio.model_events",
    "Client": "client.client",
    "CommandRuntime": "runtimes.command",
    "DerivedSession": "runtimes.command_session",
    "FunctionRuntime": "runtimes.function",
    "Gateway": "gateway",
    "Happened": "client.following",
    "Host": "sessions.host",
    "InProcessRuntime": "runtimes.in_process",
    "Input": "messages",
    "JsonLines": "runtimes.command_rules",
    "JsonLogFormatter": "log_context",
    "LearntSession": "runtimes.command_learnt",
    "Leftover": "sessions.tool",
    "LiteralArgument": "runtimes.command_template",
    "LockTable": "_sansio.lock_table",
    "McpServer": "tools.mcp",
    "MemoryStore": "stores.memory",
    "Message": "messages",
    "Metrics": "observability.prometheus",
    "Model": "sessions.model",
    "ModelRequest": "_sansio.model_events",
    "NoSession": "runtimes.command_session",
    "OpenAIModel": "models.openai",
    "PiProgram": "runtimes.pi_where",
    "PiRuntime": "runtimes.pi",
    "Ping": "_sansio.model_events",
    "Port": "sessions.host",
    "PostOutcome": "records",
    "PostgresStore": "stores.postgres.store",
    "Prompt": "records",
    "Purpose": "_sansio.model_events",
    "ReasoningDelta": "_sansio.model_events",
    "Receipt": "_sansio.input_queue",
    "ReplyEnd": "_sansio.model_events",
    "RequestFailure": "_sansio.session_terms",
    "Reset": "client.following",
    "Role": "messages",
    "Rule": "runtimes.command_rules",
    "RunInfo": "records",
    "RunLogFilter": "log_context",
    "RunOutcome": "records",
    "RunPrompt": "records",
    "Runtime": "signals.runtime",
    "RuntimeContext": "signals.runtime",
    "ScriptedModel": "models.scripted",
    "SessionFile": "runtimes.command_session",
    "SessionHarness": "sessions.harness",
    "SessionInputHandler": "conversations.session_input",
    "SessionLock": "_sansio.session_lock",
    "SessionSettings": "_sansio.session_terms",
    "ShellTool": "tools.shell",
    "Schedule": "signals.schedule",
    "ScheduleRecord": "_sansio.schedules",
    "Signal": "records",
    "SignalHandler": "signals.handlers",
    "SignalRecord": "records",
    "SignalWorker": "signals.worker",
    "SqliteStore": "stores.sqlite",
    "StartCall": "_sansio.session_terms",
    "StartRequest": "_sansio.session_terms",
    "StopReason": "_sansio.model_events",
    "TextDelta": "_sansio.model_events",
    "TextSnapshot": "_sansio.model_events",
    "Tool": "sessions.tool",
    "ToolCall": "messages",
    "ToolContext": "sessions.tool",
    "ToolResult": "sessions.tool",
    "ToolSource": "sessions.tool",
    "ToolSpec": "_sansio.model_events",
    "TurnResult": "_sansio.session_terms",
    "Usage": "records",
    "UsageReport": "_sansio.model_events",
    "UsageRules": "runtimes.command_rules",
    "Work": "sessions.host",
    "agent_server": "server.app",
    "claude_code_runtime": "runtimes.recipes",
    "codex_runtime": "runtimes.recipes",
    "current_run": "server.attribution",
    "emit_sync": "signals.emit",
    "file_tools": "tools.files",
    "instrument": "observability.otel",
    "limit_tool_threads": "tools.threads",
    "new_tag": "signals.tags",
    "open_worker": "signals.worker",
    "opencode_runtime": "runtimes.recipes",
    "pi_command_runtime": "runtimes.recipes",
    "require_run": "server.require_run",
    "serve": "server.serving",
    "server_closing": "server.app",
    "template_handler": "signals.template",
    "tool": "tools.function",
}

__all__ = [
    "Access",
    "AnthropicModel",
    "CallDelta",
    "CallOutcome",
    "CallReport",
    "CallStarted",
    "Client",
    "CommandRuntime",
    "DerivedSession",
    "FunctionRuntime",
    "Gateway",
    "Happened",
    "Host",
    "InProcessRuntime",
    "Input",
    "JsonLines",
    "JsonLogFormatter",
    "LearntSession",
    "Leftover",
    "LiteralArgument",
    "LockTable",
    "McpServer",
    "MemoryStore",
    "Message",
    "Metrics",
    "Model",
    "ModelRequest",
    "NoSession",
    "OpenAIModel",
    "PiProgram",
    "PiRuntime",
    "Ping",
    "Port",
    "PostOutcome",
    "PostgresStore",
    "Prompt",
    "Purpose",
    "ReasoningDelta",
    "Receipt",
    "ReplyEnd",
    "RequestFailure",
    "Reset",
    "Role",
    "Rule",
    "RunInfo",
    "RunLogFilter",
    "RunOutcome",
    "RunPrompt",
    "Runtime",
    "RuntimeContext",
    "Schedule",
    "ScheduleRecord",
    "ScriptedModel",
    "SessionFile",
    "SessionHarness",
    "SessionInputHandler",
    "SessionLock",
    "SessionSettings",
    "ShellTool",
    "Signal",
    "SignalHandler",
    "SignalRecord",
    "SignalWorker",
    "SqliteStore",
    "StartCall",
    "StartRequest",
    "StopReason",
    "TextDelta",
    "TextSnapshot",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolResult",
    "ToolSource",
    "ToolSpec",
    "TurnResult",
    "Usage",
    "UsageReport",
    "UsageRules",
    "Work",
    "agent_server",
    "claude_code_runtime",
    "codex_runtime",
    "current_run",
    "emit_sync",
    "file_tools",
    "instrument",
    "limit_tool_threads",
    "new_tag",
    "open_worker",
    "opencode_runtime",
    "pi_command_runtime",
    "require_run",
    "serve",
    "server_closing",
    "template_handler",
    "tool",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


_NEEDED = {"PostgresStore": "psycopg"}
"""What a home cannot be imported without. All others say what is missing when they are used."""

_MISSING = frozenset(name for name, library in _NEEDED.items() if importlib.util.find_spec(library) is None)

# Whoever asks for everything, as help() and a star do, must not fail at an extra that is not installed. By its name it can
# be asked for all the same, and then says what is missing.
__all__[:] = [name for name in __all__ if name not in _MISSING]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Fakes, and one conformance suite a protocol, for people who write their own stores, runtimes and model clients."""

from concorde_trio.testing.message_shape import check_message_shape
from concorde_trio.testing.model import check_model, model_checks
from concorde_trio.testing.model_dialects import AnthropicDialect, Dialect, OpenAIDialect
from concorde_trio.testing.model_server import ModelServer, ServerAnswer, open_model_server
from concorde_trio.testing.runtime import check_runtime
from concorde_trio.testing.schedule_store import check_schedule_store, schedule_store_checks
from concorde_trio.testing.session_store import check_session_store, session_store_checks
from concorde_trio.testing.signal_store import check_signal_store, signal_store_checks
from concorde_trio.testing.tool import check_tool
from concorde_trio.testing.tool_context import FakeToolContext, ListedWork, tool_context

__all__ = [
    "AnthropicDialect",
    "Dialect",
    "FakeToolContext",
    "ListedWork",
    "ModelServer",
    "OpenAIDialect",
    "ServerAnswer",
    "check_message_shape",
    "check_model",
    "check_runtime",
    "check_schedule_store",
    "check_session_store",
    "check_signal_store",
    "check_tool",
    "model_checks",
    "open_model_server",
    "schedule_store_checks",
    "session_store_checks",
    "signal_store_checks",
    "tool_context",
]

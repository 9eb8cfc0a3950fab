"""Tools of any MCP server, over stdio or HTTP.

The law: a server is a guest. It may be missing, die, hang or talk nonsense, and what a session notices is a tool less or a
result that says so; its keys stay out of every text; no process of it outlives us.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import trio

from concorde_trio._sansio.model_events import ToolSpec
from concorde_trio.errors import UsageError
from concorde_trio.processes.start import check_program
from concorde_trio.records import check_time_limit
from concorde_trio.sessions.kept_output import keep_output
from concorde_trio.sessions.tool import TIMEOUT, ExecKind, ToolContext, ToolResult
from concorde_trio.tools.mcp_masking import Mask, shown_url, url_secrets
from concorde_trio.tools.mcp_names import ToolNames, check_server_name
from concorde_trio.tools.mcp_notes import ConnectionLost, Notes
from concorde_trio.tools.mcp_schema import schema_fault
from concorde_trio.tools.mcp_tool import McpTool

if TYPE_CHECKING:
    from mcp import types

    from concorde_trio.tools.mcp_connection import Connection

INHERIT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "TZ", "TMPDIR")
FIRST_RETRY, LAST_RETRY = 0.5, 30.0
"""Seconds until a lost server is tried again: doubled each time, from the first to the last."""
_CONNECTION = "concorde_trio.tools.mcp_connection"
_STEADY = 30.0  # seconds up, after which the next loss starts at FIRST_RETRY again

_log = logging.getLogger("concorde_trio.tools")
_Streams = Callable[[Notes, str, "Path | None"], AbstractAsyncContextManager[tuple[Any, Any]]]


class McpServer:
    """An MCP server and its tools: made by ``McpServer.stdio`` or ``McpServer.http``, given to a session among its tools.

    Each tool is called ``NAME__TOOL``: foreign characters become ``_``, and a name over 64 characters or in use already is
    cut and gets a hash. Give two servers different names. The list follows the server's: ``tools()`` is read before each
    model request; a tool in it that no model can be offered is left out, and logged. A tool's ``kind`` (SES-18) is what the server's hints say: read for ``readOnlyHint``, network for
    ``openWorldHint``, else execute. A hint is the server's word; ``kinds`` overrides it, by the server's own tool names.

    While a server cannot be reached its last known tools stay listed, and a call gives an error result that says since
    when and why. It is tried again after 0.5 s, then twice as long each time, up to 30 s. If it dies during a call, the
    result says whether the call may have been done. A call that is cancelled is cancelled at the server too.

    Texts of a result are joined; images, sounds and binary resources are described, not shown. A long result is cut, all
    of it is in a file (``ToolResult.path``).

    The server is shared by all sessions that have it. Its environment is ``env`` and what it inherits, nothing of a run's
    (no AGENT_SERVER_URL). What it asks of a client (sampling, elicitation, roots) is refused. What stands in ``env``,
    ``headers`` and the URL's query is left out of errors and logs; what stands in ``argv`` is not a secret to anybody. Log: ``concorde_trio.tools``.
    """

    def __init__(
        self,
        name: str,
        where: str,
        streams: _Streams,
        *,
        secrets: Mapping[str, str],
        timeout: float,
        concurrent: bool,
        kinds: Mapping[str, ExecKind] | None,
        connect_timeout: float,
    ) -> None:
        self.name = check_server_name(name)
        if importlib.util.find_spec("mcp") is None:
            raise UsageError("MCP servers need the mcp library: pip install 'concorde-trio[mcp]'")
        for tool, kind in (kinds or {}).items():
            if kind not in get_args(ExecKind):
                raise UsageError(f"kinds[{tool!r}] is one of {', '.join(get_args(ExecKind))}, not {kind!r:.80}")
        self._where = where
        self._streams = streams
        self._mask = Mask(secrets)
        self._timeout = _seconds(timeout, "timeout")
        self._connect_timeout = _seconds(connect_timeout, "connect_timeout")
        self._concurrent = concurrent
        self._kinds = dict(kinds or {})
        self._names = ToolNames(name)
        self._known: dict[str, McpTool] = {}  # by the server's own names, all that were ever listed
        self._listed: dict[str, McpTool] = {}
        self._left_out: dict[str, str] = {}  # why, by the server's own names
        self._connection: Connection | None = None
        self._down = "it was not started"
        self._down_since: float | None = None
        self._running = False

    @classmethod
    def stdio(
        cls,
        argv: Sequence[str],
        *,
        name: str,
        env: Mapping[str, str] | None = None,
        inherit: Sequence[str] = INHERIT,
        cwd: str | os.PathLike[str] | None = None,
        timeout: float = TIMEOUT,
        concurrent: bool = False,
        kinds: Mapping[str, ExecKind] | None = None,
        connect_timeout: float = 30.0,
    ) -> McpServer:
        """A server that is a program, run under the guard (REC-6): it ends with us, however we end.

        ``argv``: the program and its arguments. ``env``: variables for it; ``inherit``: names taken from our own
        environment. ``cwd``: an absolute folder, ours unless given. ``timeout``: seconds a call may take.
        ``concurrent``: whether its calls may overlap within one reply. ``connect_timeout``: seconds from its start to its
        list of tools. UsageError for what can never be right.
        """
        if isinstance(inherit, str):
            raise UsageError(f"inherit is a list of names of environment variables, not {inherit!r}")
        given = dict(env or {})
        inherited = {each: os.environ[each] for each in inherit if each in os.environ}
        folder = os.fspath(cwd) if cwd is not None else os.getcwd()
        check_program(argv, given, folder, ())

        def streams(
            notes: Notes, queue: str, programs_lock: Path | None
        ) -> AbstractAsyncContextManager[tuple[Any, Any]]:
            from concorde_trio.tools.mcp_stdio import stdio_streams

            environment = {**inherited, **given}
            return stdio_streams(
                argv, env=environment, cwd=folder, queue=queue, programs_lock=programs_lock, notes=notes
            )

        unusual = {each: value for each, value in inherited.items() if each not in INHERIT}
        return cls(
            name,
            repr(argv[0]),
            streams,
            secrets={**unusual, **given},
            timeout=timeout,
            concurrent=concurrent,
            kinds=kinds,
            connect_timeout=connect_timeout,
        )

    @classmethod
    def http(
        cls,
        url: str,
        *,
        name: str,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
        concurrent: bool = False,
        kinds: Mapping[str, ExecKind] | None = None,
        connect_timeout: float = 30.0,
    ) -> McpServer:
        """A server over streamable HTTP, at the URL of its endpoint (often ``https://.../mcp``).

        ``headers`` go with every request, such as ``{"Authorization": "Bearer ..."}``. The rest is as for ``stdio``.
        """
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise UsageError("the URL of an MCP server starts with http:// or https://")
        given = dict(headers or {})
        for each, value in given.items():
            if not isinstance(each, str) or not isinstance(value, str) or not f"{each}{value}".isprintable():
                raise UsageError(f"the header {each!r:.80} of an MCP server is a string without control characters")
        if "@" in url.split("//", 1)[1].split("/", 1)[0]:
            raise UsageError("give a user and password in headers, not in the URL of an MCP server")

        def streams(
            notes: Notes, queue: str, programs_lock: Path | None
        ) -> AbstractAsyncContextManager[tuple[Any, Any]]:
            from concorde_trio.tools.mcp_http import http_streams

            return http_streams(url, headers=given, connect_timeout=connect_timeout, notes=notes)

        return cls(
            name,
            shown_url(url),
            streams,
            secrets={**url_secrets(url), **given},
            timeout=timeout,
            concurrent=concurrent,
            kinds=kinds,
            connect_timeout=connect_timeout,
        )

    def __repr__(self) -> str:
        return f"<MCP server {self.name!r}, {self._where}>"

    def tools(self) -> Sequence[McpTool]:
        """What the server listed last; nothing before its first list, and nothing once ``run`` is over."""
        return tuple(self._listed.values())

    def status(self) -> str:
        """How it is, in one line for a person."""
        if self._connection is not None and self._connection.is_up:
            return f"the MCP server {self.name!r} ({self._where}) is connected and has {len(self._listed)} tools"
        since = "" if self._down_since is None else f" for {time.monotonic() - self._down_since:.0f} s"
        return f"the MCP server {self.name!r} ({self._where}) cannot be reached{since}: {self._down}"

    async def run(
        self,
        *,
        queue: str = "tools",
        programs_lock: Path | None = None,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Keep it connected until cancelled; ``task_status`` is told after the first success or failure.

        ``queue``, ``programs_lock``: as for ``processes.open_program`` (REC-6). UsageError if it is running already.
        """
        if self._running:
            raise UsageError(f"the MCP server {self.name!r} is running already; give each harness its own")
        self._running = True
        told = False

        def listed(tools: Sequence[types.Tool]) -> None:
            nonlocal told
            self._take(tools)
            if not told:
                told = True
                task_status.started()

        try:
            pause = FIRST_RETRY
            while True:
                began = time.monotonic()
                why = await self._connect(listed, queue, programs_lock)
                steady = time.monotonic() - began > _STEADY
                pause = FIRST_RETRY if steady else pause
                if why != self._down or steady:
                    _log.warning("the MCP server %r (%s) cannot be reached: %s", self.name, self._where, why)
                self._down = why
                if self._down_since is None:
                    self._down_since = time.monotonic()
                if not told:
                    told = True
                    task_status.started()
                await trio.sleep(pause * random.uniform(0.8, 1.2))
                pause = min(pause * 2, LAST_RETRY)
        finally:
            self._running = False
            self._connection = None
            self._listed = {}
            self._down, self._down_since = "it was stopped", time.monotonic()

    async def _connect(
        self, listed: Callable[[Sequence[types.Tool]], None], queue: str, programs_lock: Path | None
    ) -> str:
        if _CONNECTION not in sys.modules:  # in a thread: the library takes a second or more, and the loop must go on
            await trio.to_thread.run_sync(importlib.import_module, _CONNECTION)
        from concorde_trio.tools.mcp_connection import Connection

        notes = Notes()
        self._connection = Connection(
            self._streams(notes, queue, programs_lock),
            notes,
            self._mask,
            connect_timeout=self._connect_timeout,
            listed=listed,
            left_out=self._leave_out,
        )
        return await self._connection.run()

    def _take(self, tools: Sequence[types.Tool]) -> None:
        from concorde_trio.tools.mcp_result import kind_of

        self._names.give(tool.name for tool in tools)
        listed: dict[str, McpTool] = {}
        for tool in tools:
            fault = schema_fault(tool.input_schema)
            if fault is not None:
                self._leave_out(tool.name, f"its input schema {fault}")
            elif tool.name not in listed:
                known = self._known.get(tool.name)
                if known is None:
                    known = self._known[tool.name] = McpTool(
                        timeout=self._timeout, concurrent=self._concurrent, call=partial(self._ask, tool.name)
                    )
                known.kind = self._kinds.get(tool.name) or kind_of(tool.annotations)
                known.spec = ToolSpec(
                    name=self._names.of(tool.name),
                    description=tool.description or tool.title or tool.name,
                    parameters=dict(tool.input_schema),
                )
                listed[tool.name] = known
        if self._down_since is not None or [*listed] != [*self._listed]:
            _log.info("the MCP server %r (%s) has %d tools", self.name, self._where, len(listed))
        self._listed = listed
        self._down_since = None
        self._down = ""

    def _leave_out(self, tool: str, why: str) -> None:
        """A model's provider refuses every request with such a tool in it, so the others go on without it."""
        why = self._mask(why)
        if self._left_out.get(tool) != why:
            self._left_out[tool] = why
            _log.warning("the MCP server %r lists the tool %r, which is left out: %s", self.name, tool, why)

    async def _ask(self, tool: str, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        from concorde_trio.tools.mcp_result import result_text

        connection = self._connection
        if connection is None or not connection.is_up:
            return self._failed(f"The call was not made: {self.status()}. {self._plan()}")
        if tool not in self._listed:
            return self._failed(f"The MCP server {self.name!r} does not offer the tool {tool!r} any more.")
        try:
            result = await connection.call(tool, arguments)
        except ConnectionLost as lost:
            done = "It may or may not have been done: look before you repeat it." if lost.sent else "It was not done."
            return self._failed(
                f"The connection to the MCP server {self.name!r} was lost during the call: {lost}. {done} {self._plan()}"
            )
        except Exception as error:  # noqa: BLE001 - whatever the library makes of an answer, it is one of this call
            return self._failed(f"The MCP server {self.name!r} did not do the call: {str(error)[:2000]}")
        text = result_text(result)
        if result.is_error:
            text = self._mask(text) or f"The MCP server {self.name!r} says that the call failed, and nothing more."
        return await keep_output(text, context, is_error=bool(result.is_error))

    def _failed(self, text: str) -> ToolResult:
        return ToolResult(self._mask(text), is_error=True)

    def _plan(self) -> str:
        if not self._running:
            return "It is not tried again."
        return f"It is being connected again, at least every {LAST_RETRY:.0f} s: try again later, or do without."


def _seconds(value: float, what: str) -> float:
    checked = check_time_limit(value, what)
    if checked is None:
        raise UsageError(f"{what} is in seconds, more than 0; it cannot be None")
    return checked

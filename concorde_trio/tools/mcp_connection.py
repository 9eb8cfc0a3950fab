"""One connection to an MCP server, from connecting to its end, and the calls made over it.

The law: the client library lives in this connection's task and nowhere else. When its server dies the library cancels
what runs inside it; a caller sits outside and hears it as an error, never as a cancellation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import attrs
import httpx2
import trio
from mcp import Client, MCPError, types
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

from concorde_trio.tools.mcp_masking import Mask, mask_logs
from concorde_trio.tools.mcp_notes import ConnectionLost, Notes
from concorde_trio.tools.mcp_sieve import sieved

_log = logging.getLogger("concorde_trio.tools")

TEARDOWN = 5.0
"""Seconds that a caller waits to hear why the connection broke."""
PAGES = 200
"""Pages of tools that are read; a list that is longer is taken as endless."""


class Connection:
    """``run`` is its life; ``call`` may be used from any task while ``is_up``.

    ``streams``: the transport, not yet entered. ``listed`` is called with the server's tools, first when the connection
    is up, then after each change; ``left_out`` with the name of each tool in it that no client can read, and why.
    """

    def __init__(
        self,
        streams: AbstractAsyncContextManager[tuple[Any, Any]],
        notes: Notes,
        mask: Mask,
        *,
        connect_timeout: float,
        listed: Callable[[Sequence[types.Tool]], None],
        left_out: Callable[[str, str], None],
    ) -> None:
        self._version: str | None = None
        self._streams = sieved(streams, lambda: self._version, left_out)
        self._notes = notes
        self._mask = mask
        self._connect_timeout = connect_timeout
        self._listed = listed
        self._client: Client | None = None
        self._nursery: trio.Nursery | None = None
        self._changed = trio.Event()  # the list has to be read again
        self._checked = trio.Event()  # it was read, or never will be
        self._over = trio.Event()
        self._why = "it was closed"

    @property
    def is_up(self) -> bool:
        """Whether calls can be made."""
        return self._nursery is not None

    async def run(self) -> str:
        """Connect, serve calls until it ends, and say why it ended. Raises nothing but what cancels us."""
        mask_logs(self._mask)
        problem = "it was closed"
        try:
            with trio.CancelScope(deadline=trio.current_time() + self._connect_timeout) as connecting:
                async with Client(self._streams, message_handler=self._heard, cache=None) as client:
                    self._version = client.protocol_version
                    tools = await self._list(client)
                    connecting.deadline = float("inf")
                    await self._serve(client, tools)
            if connecting.cancelled_caught:
                problem = f"it did not answer as an MCP server within {self._connect_timeout:g} s"
        except* Exception as group:  # noqa: BLE001 - a dead server must not end ours; what it is, is said
            problem = _said(_first(group))
        finally:
            self._why = self._mask(self._notes.about(problem))
            self._over.set()
            self._checked.set()
        return self._why

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        """What the server answered. ConnectionLost; MCPError and others in the library's own words."""
        if self._nursery is None:
            raise ConnectionLost(self._why, sent=False)
        job = _Job(tool, arguments)
        self._nursery.start_soon(self._work, job, name=f"MCP call of {tool}")
        try:
            await job.done.wait()
        finally:
            job.scope.cancel("nobody waits for the call any more")
        if job.result is not None:
            return job.result
        if job.error is None or _is_lost(job.error):
            checked = self._checked
            self._changed.set()  # ask the server something: if it is gone, this connection ends
            with trio.move_on_after(TEARDOWN):
                await checked.wait()
            forgot = job.error is not None and _is_forgotten(job.error)
            why = self._why if self._over.is_set() else "it cut the answer off"
            raise ConnectionLost(why, sent=not forgot)
        raise job.error

    async def _work(self, job: _Job) -> None:
        assert self._client is not None
        mask_logs(self._mask)  # this task has the context of its caller
        try:
            with job.scope:
                job.result = await self._client.call_tool(job.tool, dict(job.arguments))
        except Exception as error:  # noqa: BLE001 - the caller gets it
            job.error = error
        finally:
            job.done.set()

    async def _serve(self, client: Client, tools: Sequence[types.Tool]) -> None:
        try:
            async with trio.open_nursery() as nursery:
                self._client, self._nursery = client, nursery
                self._listed(tools)
                nursery.start_soon(self._refresh, client)
                nursery.start_soon(self._listen, client)
                try:
                    await self._notes.ended.wait()
                finally:
                    self._nursery = None
                    nursery.cancel_scope.cancel("the server is gone")
        finally:
            self._nursery = None

    async def _list(self, client: Client) -> list[types.Tool]:
        if client.server_capabilities.tools is None:
            return []
        tools: list[types.Tool] = []
        cursor = None
        for _ in range(PAGES):
            page = await client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        return tools

    async def _refresh(self, client: Client) -> None:
        """Read the list whenever it may have changed. A failure ends the connection."""
        while True:
            await self._changed.wait()
            await trio.sleep(0.02)  # a burst is read once
            self._changed = trio.Event()
            with trio.fail_after(self._connect_timeout):
                tools = await self._list(client)
            self._listed(tools)
            self._checked.set()
            self._checked = trio.Event()
            await trio.sleep(0.3)  # a server that answers each reading with a change does not keep us busy

    async def _heard(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changed.set()
        await trio.lowlevel.checkpoint()

    async def _listen(self, client: Client) -> None:
        """Newer servers tell of changes to those who subscribe only."""
        tools = client.server_capabilities.tools
        pause = 0.5
        while tools is not None and tools.list_changed:
            began = trio.current_time()
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    if not changes.honored.tools_list_changed:
                        return
                    self._changed.set()  # it may have changed before we listened
                    async for _ in changes:
                        self._changed.set()
            except ListenNotSupportedError:
                return  # an older server: it tells everybody
            except SubscriptionLost:
                pass
            except Exception as error:  # noqa: BLE001 - without news of changes its tools are of use all the same
                if not _is_lost(error):
                    _log.debug("an MCP server does not tell of changes: %s", self._mask(str(error)))
                    return
            self._changed.set()
            pause = 0.5 if trio.current_time() - began > 60 else min(pause * 2, 60.0)
            await trio.sleep(pause)


@attrs.define
class _Job:
    tool: str
    arguments: Mapping[str, Any]
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    done: trio.Event = attrs.field(factory=trio.Event)
    result: types.CallToolResult | None = None
    error: Exception | None = None


def _is_lost(error: Exception) -> bool:
    return isinstance(error, MCPError) and (error.code == types.CONNECTION_CLOSED or _is_forgotten(error))


def _is_forgotten(error: Exception) -> bool:
    """Whether a server over HTTP does not know our session: it was started anew, and has not looked at the call."""
    return isinstance(error, MCPError) and (error.code, str(error)) == (types.INVALID_REQUEST, "Session terminated")


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _said(error: BaseException) -> str:
    match error:
        case httpx2.ConnectError():
            return f"no connection could be made ({error})"
        case trio.TooSlowError():
            return "it did not answer in time"
        case MCPError():
            return f"it answered: {str(error)[:500]}"
        case ValueError() if type(error).__name__ == "ValidationError":  # pydantic's
            return f"what it answered does not fit the protocol: {' '.join(str(error).split())[:500]}"
        case _:
            text = " ".join(str(error).split())[:500].rstrip(".")
            return text if type(error).__module__.startswith("concorde_trio.") else f"{type(error).__name__}: {text}"

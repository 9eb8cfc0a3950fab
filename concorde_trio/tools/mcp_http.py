"""An MCP server over streamable HTTP. The law: the only time limits are ours, and the last refusal is kept for the words."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from concorde_trio.tools.mcp_notes import Notes

LONGEST_EVENT = 64 * 1024 * 1024
"""Bytes of one server-sent event."""


@contextlib.asynccontextmanager
async def http_streams(
    url: str, *, headers: Mapping[str, str], connect_timeout: float, notes: Notes
) -> AsyncIterator[tuple[Any, Any]]:
    """Give the two streams that the client library wants. Redirects that leave the URL's origin are not followed."""

    async def note(response: httpx2.Response) -> None:
        if response.status_code >= 400:
            notes.refused = f"; it answered {response.status_code} {response.reason_phrase}"

    limits = httpx2.Timeout(None, connect=connect_timeout, write=connect_timeout)
    pool = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
    async with (
        httpx2.AsyncClient(
            headers=dict(headers), timeout=limits, limits=pool, event_hooks={"response": [note]}
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=LONGEST_EVENT) as streams,
    ):
        yield streams

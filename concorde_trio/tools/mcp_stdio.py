"""An MCP server as a program under the guard: JSON-RPC messages, one a line, over its stdin and stdout.

The law (REC-6): the server ends with the block, and with us if we are killed. What it writes to stderr, and what on stdout
is no message, is bounded and kept for the words about its end.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import trio
from mcp import types
from mcp.shared.message import SessionMessage

from concorde_trio._sansio.lines import Line, LineReader
from concorde_trio.errors import ProgramError
from concorde_trio.processes.capture import Capture
from concorde_trio.processes.program import Program
from concorde_trio.processes.runner import open_program
from concorde_trio.processes.sweep import new_marker
from concorde_trio.tools.mcp_notes import Notes

LONGEST_MESSAGE = 64 * 1024 * 1024
"""Bytes of one message; a server that sends more is broken off."""
UNREAD = 10_000
"""Messages that may wait for the client; a server that sends more is broken off."""
LEAVE = 2.0
"""Seconds that a server gets to end by itself once its stdin is closed; then the ladder."""
LADDER = ((signal.SIGTERM, 2.0),)

_log = logging.getLogger("concorde_trio.tools")


@contextlib.asynccontextmanager
async def stdio_streams(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    queue: str,
    programs_lock: Path | None,
    notes: Notes,
) -> AsyncIterator[tuple[Any, Any]]:
    """Start the server and give the two streams that the client library wants.

    ProgramNotStarted when the program cannot be started; ProgramError when what it sends is beyond the bounds.
    """
    inbox, to_client = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
    from_client, outbox = anyio.create_memory_object_stream[SessionMessage](0)
    feed, stdin = trio.open_memory_channel[bytes](0)
    stdout = _Messages(inbox.send_nowait, lambda: inbox.statistics().current_buffer_used)
    with inbox, to_client, from_client, outbox, feed:
        async with (
            open_program(
                argv,
                env=env,
                cwd=cwd,
                marker=new_marker(queue),
                stdin=stdin,
                ladder=LADDER,
                programs_lock=programs_lock,
                stdout=Capture(0, 0),
                stderr=Capture(2048, 8192),
                on_stdout=stdout.feed,
            ) as program,
            trio.open_nursery() as nursery,
        ):

            async def write() -> None:
                try:
                    async for message in outbox:
                        line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                        await feed.send(line.encode("utf-8", "replace") + b"\n")
                except (trio.BrokenResourceError, anyio.ClosedResourceError):
                    pass  # it reads no more: its end is heard by watch

            async def watch() -> None:
                ended = await program.wait()
                notes.died(f"it ended ({ended})")
                inbox.close()

            notes.words = lambda: _last_words(program, stdout)
            nursery.start_soon(write)
            nursery.start_soon(watch)
            try:
                yield to_client, from_client
            finally:
                stdout.stop()
                nursery.cancel_scope.cancel("the connection is over")
                with trio.CancelScope(shield=True, deadline=trio.current_time() + LEAVE):
                    feed.close()
                    await program.wait()


def _last_words(program: Program, stdout: _Messages) -> str:
    """What the server said at last, if anything: the end of stderr, and a line of stdout that was no message."""
    lines = [line.strip() for line in program.stderr.text().splitlines() if line.strip()][-5:]
    said = f"; the last on its stderr: {' | '.join(lines)[-1000:]}" if lines else ""
    return f"{said}; on its stdout it wrote {stdout.stray!r}, which is no MCP message" if stdout.stray else said


class _Messages:
    """Makes messages of what a server prints. ``stray``: the beginning of the last line that was none."""

    def __init__(self, deliver: Callable[[SessionMessage], None], unread: Callable[[], int]) -> None:
        self.stray = ""
        self._lines = LineReader(LONGEST_MESSAGE)
        self._deliver = deliver
        self._unread = unread
        self._over = False

    def stop(self) -> None:
        """Drop what comes from now on."""
        self._over = True

    def feed(self, data: bytes) -> None:
        if self._over:
            return
        for line in self._lines.feed(data):
            message = self._message(line)
            if message is not None:
                with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    self._deliver(message)
        if self._unread() > UNREAD:
            raise ProgramError(f"it sent more than {UNREAD:,} messages that nobody had read yet")

    def _message(self, line: Line) -> SessionMessage | None:
        if line.over_long:
            raise ProgramError(f"it sent a message of {line.size:,} bytes; {LONGEST_MESSAGE:,} are allowed")
        if not line.text.strip():
            return None
        for text in (line.text, _mended(line.text)):
            if text is not None:
                with contextlib.suppress(ValueError):
                    return SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))
        self.stray = line.text.strip()[:200]
        _log.debug("an MCP server wrote a line to stdout that is no message")
        return None


def _mended(text: str) -> str | None:
    """The JSON with its lone surrogates replaced, which the client library refuses; None for what is no JSON."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace").decode()
    except (ValueError, RecursionError):
        return None

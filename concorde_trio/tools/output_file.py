"""All of a long output in a file, written while it streams. The law:

- Nothing is written of an output that is short. Memory is bounded whatever comes; what is faster than the disk waits.
- A disk that takes nothing for 5 s, is full, or broken ends the file and not the command; ``about`` says so.
"""

from __future__ import annotations

import functools
import os
import re
import secrets
from collections.abc import Awaitable

import trio

from concorde_trio.errors import TooManyThreads
from concorde_trio.sessions.tool import ToolContext
from concorde_trio.tools.threads import in_thread

PATIENCE = 5.0
"""Seconds in which the disk must take what it was given."""
PENDING = 4 * 1024 * 1024
"""Bytes that may wait for the disk."""


class OutputFile:
    """``after``: the bytes from which on there is a file; ``most``: the bytes that it holds at most."""

    def __init__(self, context: ToolContext, tool: str, *, after: int, most: int) -> None:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", context.call_id)[:60]
        self._path = context.outputs / f"{name}-{secrets.token_hex(4)}.txt"
        self._context = context
        self._tool = tool
        self._after = after
        self._most = most
        self._total = 0
        self._taken = 0
        self._pending = bytearray()
        self._problem: str | None = None
        self._begun = False
        self._closed = False
        self._wake = trio.Event()
        self._room = trio.Event()
        self.done = trio.Event()
        """Set once all is written, after ``close``."""

    @property
    def path(self) -> str | None:
        """Where it is; None if there is none, or nothing could be written."""
        return str(self._path) if self._begun else None

    def about(self) -> str:
        """What to say of it where the output is cut."""
        if self._problem is not None:
            part = f"its beginning is in {self._path}, the rest" if self._begun else "all of it"
            return f"{part} could not be kept in a file: {self._problem}"
        part = "all of it is" if self._total <= self._most else f"its first {self._most:,} bytes are"
        return f"{part} in {self._path}"

    def feed(self, data: bytes) -> Awaitable[None] | None:
        """The next bytes. To be waited for before the next, if it gives something; that takes ``PATIENCE`` at most."""
        if self._closed:
            return None
        self._total += len(data)
        if self._problem is not None:
            return None
        data = data[: self._most - self._taken]
        self._taken += len(data)
        self._pending += data
        if self._total > self._after:
            self._wake.set()
        return self._until_room() if len(self._pending) >= PENDING else None

    async def _until_room(self) -> None:
        with trio.move_on_after(PATIENCE):
            await self._room.wait()

    def close(self) -> None:
        """No more comes, or it is not to be kept."""
        self._closed = True
        self._wake.set()

    async def serve(self) -> None:
        """Write until ``close``, then what is left, and set ``done``. Shielded and bounded: an ended command's words are kept."""
        with trio.CancelScope(shield=True):
            while True:
                await self._wake.wait()
                self._wake = trio.Event()
                while self._pending and self._total > self._after and self._problem is None:
                    await self._write_pending()
                if self._closed:
                    break
        self.done.set()

    async def _write_pending(self) -> None:
        batch, self._pending = self._pending, bytearray()
        self._room.set()
        self._room = trio.Event()
        with trio.move_on_after(PATIENCE) as patience:
            try:
                await in_thread(functools.partial(self._append, batch), self._context, self._tool)
                self._begun = True
            except (OSError, TooManyThreads) as error:
                self._problem = str(error)
        if patience.cancelled_caught:
            self._problem = f"the disk did not take it within {PATIENCE:g} s"
        if self._problem is not None:
            self._pending.clear()
            self._room.set()

    def _append(self, batch: bytearray) -> None:
        if not self._begun:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | (0 if self._begun else os.O_CREAT | os.O_EXCL) | os.O_NOFOLLOW
        with open(os.open(self._path, flags, 0o600), "wb") as file:
            file.write(batch)

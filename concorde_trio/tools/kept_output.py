"""A long output is cut for the model, and all of it is kept in a file that the result names."""

from __future__ import annotations

import os
import re
import secrets

import trio

from concorde_trio.sessions.tool import ToolContext, ToolResult

LIMIT = 100_000
"""Characters of an output that a result holds."""


async def keep_output(text: str, context: ToolContext, limit: int = LIMIT, *, is_error: bool = False) -> ToolResult:
    """The result with all of the text, or its beginning and end and the path of a file with all of it.

    A file that cannot be written is said in the text; the result is cut all the same.
    """
    if len(text) <= limit:
        return ToolResult(text, is_error=is_error)
    name = re.sub(r"[^A-Za-z0-9_-]", "_", context.call_id)[:60]
    path = context.outputs / f"{name}-{secrets.token_hex(4)}.txt"

    def write() -> None:
        context.outputs.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)

    try:
        await trio.to_thread.run_sync(write)
    except OSError as error:
        kept, where = None, f"and could not be kept in a file: {error}"
    else:
        kept, where = str(path), f"all of it is in {path}"
    half = limit // 2
    cut = f"\n[... {len(text) - 2 * half:,} characters left out; {where} ...]\n"
    return ToolResult(f"{text[:half]}{cut}{text[-half:]}", is_error=is_error, path=kept)

"""A long output is cut for the model, and all of it is kept in a file that the result names."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

import trio

from concorde_trio.sessions.tool import ToolContext, ToolResult

LIMIT = 100_000
"""Characters of an output that a result holds."""
AT_ONCE = 1_000_000
"""Characters that are written without a thread: about a millisecond."""


async def keep_output(text: str, context: ToolContext, limit: int = LIMIT, *, is_error: bool = False) -> ToolResult:
    """The result with all of the text, or its beginning and end and the path of a file with all of it.

    A file that cannot be written is said in the text; the result is cut all the same.
    """
    if len(text) <= limit:
        return ToolResult(text, is_error=is_error)
    path, where = await _keep(text, context)
    half = limit // 2
    cut = f"\n[... {len(text) - 2 * half:,} characters left out; {where} ...]\n"
    return ToolResult(f"{text[:half]}{cut}{text[-half:]}", is_error=is_error, path=path)


async def keep_whole(result: ToolResult, context: ToolContext, over: int | None) -> ToolResult:
    """The result as it is; where it is longer than ``over`` and no file has it, with one: what is cut later is there (SES-6).

    What is longer than AT_ONCE is cut here already.
    """
    if len(result.text) > AT_ONCE:
        return await keep_output(result.text, context, AT_ONCE, is_error=result.is_error)
    if result.path is not None or over is None or len(result.text) <= over:
        return result
    path, _ = await _keep(result.text, context)
    return ToolResult(result.text, is_error=result.is_error, path=path)


async def _keep(text: str, context: ToolContext) -> tuple[str | None, str]:
    """The path, and words that say where it is, or why it is nowhere."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", context.call_id)[:60]
    path = context.outputs / f"{name}-{secrets.token_hex(4)}.txt"
    try:
        if len(text) <= AT_ONCE:
            _write(path, text)
        else:
            await trio.to_thread.run_sync(_write, path, text)
    except OSError as error:
        return None, f"and could not be kept in a file: {error}"
    return str(path), f"all of it is in {path}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)

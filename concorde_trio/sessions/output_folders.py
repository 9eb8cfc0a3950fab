"""Where the outputs of a session's tools are kept whole: a folder for each session, which goes when the session is pruned.

The law: only what is older than the session is removed, or all that is old of one that is gone: an output that a transcript
names stays as long as the transcript. Whose a folder is, it says itself.
"""

from __future__ import annotations

import logging
import os
import re
import time
from functools import partial
from pathlib import Path

import trio

from concorde_trio._sansio.encoded_names import encode_name
from concorde_trio.sessions.store import SessionStore

logger = logging.getLogger("concorde_trio.sessions")

MARK = ".session"
"""A file with the session's name, where the folder's does not say it all."""
MARGIN = 2.0
"""Seconds that a file's time may be off."""

_ESCAPED = re.compile(rb"=([0-9a-f]{2})")


def output_folder(outputs: Path, session: str) -> Path:
    """The folder of one session; it need not be there yet."""
    folder = outputs / encode_name(session)
    if _named(folder.name) != session and not (folder / MARK).exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / MARK).write_text(session, encoding="utf-8")
        except OSError as error:  # whoever writes an output there will say so too
            logger.warning("the folder for outputs of session %s cannot be made: %s", session, error)
    return folder


async def remove_outputs(outputs: Path, store: SessionStore) -> int:
    """Remove the outputs of sessions that are gone; how many files. What cannot be removed is logged."""
    before = time.time() - MARGIN
    removed = 0
    for folder, session in await trio.to_thread.run_sync(partial(_folders, outputs)):
        record = await store.session(session)
        older_than = before if record is None else min(before, record.created_at)
        removed += await trio.to_thread.run_sync(partial(_remove, folder, older_than))
    return removed


def _folders(outputs: Path) -> list[tuple[Path, str]]:
    """Each session's folder that is there, with its name."""
    try:
        folders = [Path(each.path) for each in os.scandir(outputs) if each.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [(folder, name) for folder in folders if (name := _name(folder)) is not None]


def _name(folder: Path) -> str | None:
    named = _named(folder.name)
    try:
        if named is None:
            named = (folder / MARK).read_text(encoding="utf-8")
        return named if encode_name(named) == folder.name else None
    except (OSError, ValueError):
        return None


def _named(folder: str) -> str | None:
    """The name that a folder's name says; None if it has a hash in it, or was not made here."""
    try:
        name = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), folder.encode()).decode()
        return name if encode_name(name) == folder else None
    except ValueError:
        return None


def _remove(folder: Path, older_than: float) -> int:
    removed, left = 0, 0
    try:
        for each in list(os.scandir(folder)):
            if each.name == MARK:
                continue
            if each.is_file(follow_symlinks=False) and each.stat(follow_symlinks=False).st_mtime < older_than:
                os.unlink(each.path)
                removed += 1
            else:
                left += 1
        if removed and not left:
            (folder / MARK).unlink(missing_ok=True)
            folder.rmdir()
    except OSError as error:
        logger.warning("outputs in %s could not be removed: %s", folder, error)
    return removed

"""Walks a workspace for names and for texts. The law: what is walked and what is found is bounded, and the answer says
when there would have been more. Text is searched literally: a regular expression from a model could hold the interpreter for ever.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import attrs
import trio

from concorde_trio.errors import UsageError
from concorde_trio.tools.beneath import folder_beneath, open_regular
from concorde_trio.tools.globs import Glob, Places

FOUND = 1_000
"""Paths in one answer."""
HITS = 200
"""Lines in one answer."""
WALKED = 200_000
"""Entries looked at for one answer."""
LARGEST = 10_000_000
"""Bytes of a file that is searched."""
_LINE = 300  # characters of a line that are shown


@attrs.define
class _Walk:
    """What a walk came to: ``left_out`` says what an answer does not have."""

    seen: int = 0
    left_out: str | None = None


def list_beneath(workspace: str, parts: tuple[str, ...], pattern: str) -> str:
    """The matching paths, one a line, folders with a slash, links with an @."""
    walk = _Walk()
    found: list[str] = []
    with folder_beneath(workspace, parts) as top:
        for path, entry, _ in _matches(top, Glob(pattern), walk):
            if len(found) == FOUND:
                walk.left_out = f"only the first {FOUND:,} are shown; use a narrower pattern"
                break
            mark = "@" if entry.is_symlink() else "/" if entry.is_dir(follow_symlinks=False) else ""
            found.append(_shown((*parts, *path)) + mark)
    return _answer(found, walk, "nothing matches")


def search_beneath(workspace: str, parts: tuple[str, ...], text: str, pattern: str, *, ignore_case: bool) -> str:
    """The lines with the text, as path:line: text."""
    if not text or "\n" in text:
        raise UsageError("the text to search for is a part of one line, and not empty")
    wanted = text.casefold() if ignore_case else text
    walk = _Walk()
    found: list[str] = []
    with folder_beneath(workspace, parts) as top:
        for path, entry, folder in _matches(top, Glob(pattern), walk):
            if not entry.is_file(follow_symlinks=False):
                continue
            shown = _shown((*parts, *path))
            for number, line in _lines(folder, entry.name, shown):
                if wanted in (line.casefold() if ignore_case else line):
                    if len(found) == HITS:
                        walk.left_out = f"only the first {HITS} lines are shown; search for something rarer"
                        return _answer(found, walk, "")
                    found.append(f"{shown}:{number}: {line[:_LINE]}")
    return _answer(found, walk, "no line has it")


def _matches(top: int, glob: Glob, walk: _Walk) -> Iterator[tuple[tuple[str, ...], os.DirEntry[str], int]]:
    """Path, entry, and the descriptor of the folder that it is in; in the order of names, folders after their siblings."""
    left: list[tuple[tuple[str, ...], Places]] = [((), glob.start)]
    while left:
        path, places = left.pop()
        below: list[tuple[tuple[str, ...], Places]] = []
        try:
            with folder_beneath(top, path) as folder, os.scandir(folder) as scan:
                entries = sorted(itertools.islice(scan, WALKED - walk.seen), key=lambda entry: entry.name)
                walk.seen += len(entries)
                for entry in entries:
                    trio.from_thread.check_cancelled()
                    after = glob.step(places, entry.name)
                    if glob.fits(after):
                        yield (*path, entry.name), entry, folder
                    if glob.leads_on(after) and entry.is_dir(follow_symlinks=False):
                        below.append(((*path, entry.name), after))
        except (OSError, UsageError):
            if not path:
                raise
            # A folder that was taken away, or may not be entered, has nothing for us.
        if walk.seen >= WALKED:
            walk.left_out = f"the search ended after {WALKED:,} files and folders; begin further down"
            return
        left.extend(reversed(below))


def _lines(folder: int, name: str, shown: str) -> Iterator[tuple[int, str]]:
    """The lines of a text file; none of one that is binary, too large, or cannot be read."""
    try:
        with open(open_regular(folder, name, shown), "rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, UsageError):
        return
    if len(data) > LARGEST or b"\0" in data[:8192]:
        return
    for number, line in enumerate(data.split(b"\n"), 1):
        yield number, line.rstrip(b"\r").decode("utf-8", "replace")


def _shown(path: tuple[str, ...]) -> str:
    return os.fsencode("/".join(path)).decode("utf-8", "backslashreplace")


def _answer(found: list[str], walk: _Walk, otherwise: str) -> str:
    if walk.left_out:
        found = [*found, f"[{walk.left_out}]"]
    return "\n".join(found) or f"[{otherwise}]"

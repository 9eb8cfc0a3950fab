"""A text file, read in part and edited in place. The law: bytes that are not asked for stay as they are, whatever their
encoding, and what is returned is bounded whatever the file's size."""

from __future__ import annotations

import os
from typing import BinaryIO

import trio

from concorde_trio.errors import UsageError

MOST = 64_000
"""Bytes of a file in one answer."""
EDITED = 20_000_000
"""Bytes of a file that can be edited."""


def read_part(file: BinaryIO, shown: str, offset: int, limit: int, *, numbers: bool) -> str:
    """``limit`` lines from line ``offset`` on, 1 being the first, and a note if there is more."""
    if offset < 1 or limit < 1:
        raise UsageError(f"offset and limit are at least 1, not {offset} and {limit}")
    skipped = _skip(file, offset - 1)
    lines: list[bytes] = []
    room, note = MOST, None
    while len(lines) < limit and note is None:
        line = file.readline(room + 1)
        if not line:
            break
        if len(line) > room:
            note = f"the file goes on; read on with offset={offset + len(lines)}"
            if not lines:
                lines.append(line[:room])
                note = f"line {offset} is longer than {MOST:,} bytes, and only its beginning is shown"
        else:
            lines.append(line)
            room -= len(line)
    if not lines:
        size = os.fstat(file.fileno()).st_size
        if size and offset > 1:
            raise UsageError(f"{shown} has {skipped:,} lines; there is no line {offset:,}")
        return "[the file is empty]"
    if note is None and file.read(1):
        note = f"the file goes on; read on with offset={offset + len(lines)}"
    return _text(lines, shown, offset if numbers else None, note)


def edit_text(data: bytes, old: str, new: str, shown: str) -> tuple[bytes, int]:
    """The file with its only ``old`` replaced by ``new``, and the line where it stood."""
    if not old:
        raise UsageError("the text to replace is empty; write the whole file with write_file instead")
    before, after = _bytes(old), _bytes(new)
    if before not in data and b"\r\n" in data and b"\r" not in before:
        before, after = before.replace(b"\n", b"\r\n"), after.replace(b"\n", b"\r\n")
    at = data.find(before)
    if at < 0:
        raise UsageError(
            f"{shown} does not have the text to replace, exactly as it was given (blanks and line ends count). Nothing was "
            "changed; read the file again"
        )
    places: list[int] = []
    while at >= 0 and len(places) < 10:
        places.append(data.count(b"\n", 0, at) + 1)
        at = data.find(before, at + 1)
    if len(places) > 1:
        lines = ", ".join(map(str, places)) + (", ..." if at >= 0 else "")
        raise UsageError(
            f"{shown} has the text to replace more than once, at lines {lines}. Nothing was changed; give more of what "
            "stands around the place that is meant"
        )
    return data.replace(before, after), places[0]


def _skip(file: BinaryIO, count: int) -> int:
    """Read past so many lines; how many there were."""
    skipped = 0
    while skipped < count:
        piece = file.readline(1 << 20)
        if not piece:
            return skipped
        if piece.endswith(b"\n") or len(piece) < 1 << 20:
            skipped += 1
            if skipped % 1024 == 0:
                trio.from_thread.check_cancelled()
    return skipped


def _text(lines: list[bytes], shown: str, first: int | None, note: str | None) -> str:
    whole = b"".join(lines)
    if b"\0" in whole:
        raise UsageError(f"{shown} is not a text file (it has NUL bytes)")
    text = whole.decode("utf-8", "replace")
    if first is not None:
        text = "".join(f"{first + n}\t{line.decode('utf-8', 'replace')}" for n, line in enumerate(lines))
    notes = [note] if note else []
    wrong = whole.decode("utf-8", "replace").count("\ufffd") - whole.count("\ufffd".encode())
    if wrong:
        notes.append(f"what is not UTF-8 is shown as \ufffd, {wrong:,} times")
    if not notes:
        return text
    return (text if text.endswith("\n") else text + "\n") + "\n".join(f"[{each}]" for each in notes)


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UsageError("the text has a lone surrogate, which is no character") from None

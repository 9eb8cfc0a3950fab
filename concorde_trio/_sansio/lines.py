"""Bytes of a program's output in, lines and JSON objects out.

The law: a line ends at LF and nowhere else (a CR before the LF belongs to the end; U+2028, VT and a lone CR belong
to the line), the same lines come out however the bytes were split, and never more than one longest line is kept.
"""

from __future__ import annotations

import codecs
import json
import math

import attrs

from concorde_trio.errors import UsageError
from concorde_trio.records import JSON


@attrs.frozen(kw_only=True)
class Line:
    """One line, without its end; what is not UTF-8 in it became U+FFFD.

    ``size`` is how many bytes it had. ``over_long``: these were too many, and ``text`` is only its beginning.
    ``unterminated``: the output ended before the line did.
    """

    text: str
    size: int
    over_long: bool = False
    unterminated: bool = False


@attrs.frozen(kw_only=True)
class JsonLine:
    """What one line of JSON-lines output says: ``record``, or why it is ``unreadable``; exactly one is not None.

    ``unterminated``: the output ended before the line did, even if what came is a whole object.
    """

    record: dict[str, JSON] | None = None
    unreadable: str | None = None
    unterminated: bool = False


class LineReader:
    """Cuts bytes into lines of at most ``max_line`` bytes each, their ends not counted."""

    __slots__ = ("_cr", "_kept", "_max_line", "_size")

    def __init__(self, max_line: int) -> None:
        if max_line < 1:
            raise UsageError(f"max_line must be at least 1 byte, not {max_line}")
        self._max_line = max_line
        self._kept = bytearray()  # the beginning of the line, at most max_line bytes
        self._size = 0  # of what came of the line, kept or not
        self._cr = False  # whether its last byte is a CR

    def feed(self, data: bytes) -> list[Line]:
        """The lines that ``data``, the next bytes of the output, has ended."""
        *pieces, rest = data.split(b"\n")
        lines = []
        for piece in pieces:
            self._keep(piece)
            lines.append(self._line(unterminated=False))
        self._keep(rest)
        return lines

    def finish(self) -> Line | None:
        """The output is over: what came after the last LF, None if nothing did."""
        return self._line(unterminated=True) if self._size else None

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._size += len(piece)
        self._cr = piece.endswith(b"\r")
        self._kept += piece[: self._max_line - len(self._kept)]

    def _line(self, *, unterminated: bool) -> Line:
        size = self._size - (self._cr and not unterminated)
        kept = bytes(self._kept[:size])
        self._kept.clear()
        self._size = 0
        self._cr = False
        if size <= self._max_line:
            return Line(text=kept.decode("utf-8", "replace"), size=size, unterminated=unterminated)
        # Not final: a character that the bound cuts through is left out.
        beginning = codecs.getincrementaldecoder("utf-8")("replace").decode(kept)
        return Line(text=beginning, size=size, over_long=True, unterminated=unterminated)


def parse_line(line: Line) -> JsonLine | None:
    """The JSON object that ``line`` holds, or why it holds none; None for a blank line.

    NaN and infinities, which some programs write, are read as None.
    """
    text = line.text
    if not line.over_long and not text.strip(" \t\r"):
        return None
    record = None
    unreadable = None
    if line.over_long:
        unreadable = f"a line of {line.size:,} bytes is longer than allowed; it begins {text[:80]!r}"
    else:
        try:
            value = _read(text)
        except ValueError as error:
            unreadable = f"expected a JSON object a line: {error}; the line begins {text[:80]!r}"
        except RecursionError:
            unreadable = f"a JSON object is nested too deep to be read; the line begins {text[:80]!r}"
        else:
            if isinstance(value, dict):
                record = value
            else:
                unreadable = f"expected a JSON object a line, not a {type(value).__name__}: {text[:80]!r}"
    return JsonLine(record=record, unreadable=unreadable, unterminated=line.unterminated)


def _no_number(constant: str) -> None:
    return None


def _finite(number: str) -> float | None:
    value = float(number)
    return value if math.isfinite(value) else None  # 1e400 reads as an infinity


_read = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite).decode

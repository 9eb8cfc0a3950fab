"""Bytes in, server-sent events out, whatever the split; a comment is told too, for it shows that the connection lives.

The law: an event that its blank line has not closed does not exist, so a stream that is cut gives nothing half.
"""

from __future__ import annotations

import re

import attrs

LIMIT = 32_000_000
"""Bytes of one event, or of a body that is no stream: more is refused."""

_END_OF_LINE = re.compile(rb"\r\n|\n|\r(?!\Z)")


class TooLong(Exception):
    """One event is longer than LIMIT."""


@attrs.frozen
class ServerSentEvent:
    """One event; ``name`` is empty where the server gave none. Without ``data`` it was a comment."""

    data: str | None
    name: str = ""


COMMENT = ServerSentEvent(None)


class SseDecoder:
    """Keeps what no event is made of yet."""

    __slots__ = ("_data", "_name", "_rest", "_searched", "_size")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._searched = 0
        self._size = 0
        self._data: list[bytes] = []
        self._name = b""

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """The events that this piece completes, in order."""
        self._rest += piece
        found: list[ServerSentEvent] = []
        start = 0
        for end in _END_OF_LINE.finditer(self._rest, self._searched):
            self._line(bytes(self._rest[start : end.start()]), found)
            start = end.end()
        del self._rest[:start]
        # A last "\r" may be half of "\r\n": it is looked at again.
        self._searched = max(0, len(self._rest) - 1)
        if len(self._rest) + self._size > LIMIT:
            raise TooLong
        return found

    def _line(self, line: bytes, found: list[ServerSentEvent]) -> None:
        if not line:
            if self._data:
                data = b"\n".join(self._data).decode("utf-8", "replace")
                found.append(ServerSentEvent(data, self._name.decode("utf-8", "replace")))
            self._data, self._name, self._size = [], b"", 0
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field.removeprefix(b"\xef\xbb\xbf"):
            case b"":
                found.append(COMMENT)
            case b"data":
                self._data.append(value)
                self._size += len(value) + 1  # an empty one takes room too
            case b"event":
                self._name = value

"""A bounded record of what a program printed: its beginning and its end are kept, the middle is counted (REC-6)."""

from __future__ import annotations

from concorde_trio.errors import UsageError


class Capture:
    """Keeps the first ``head`` and the last ``tail`` bytes of a stream of any length."""

    __slots__ = ("_head", "_head_size", "_tail", "_tail_size", "total")

    def __init__(self, head: int, tail: int) -> None:
        if head < 0 or tail < 0:
            raise UsageError(f"head and tail are bytes to keep, at least 0, not {head} and {tail}")
        self._head = bytearray()
        self._tail = bytearray()
        self._head_size = head
        self._tail_size = tail
        self.total = 0
        """How many bytes came, kept or not."""

    def feed(self, data: bytes) -> None:
        """The next bytes of the stream."""
        self.total += len(data)
        room = self._head_size - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data and self._tail_size:
            self._tail += data[-self._tail_size :]
            if len(self._tail) > 2 * self._tail_size:
                del self._tail[: -self._tail_size]

    @property
    def cut(self) -> int:
        """How many bytes between head and tail were let go."""
        return self.total - len(self._head) - min(len(self._tail), self._tail_size)

    @property
    def head(self) -> bytes:
        """The first bytes."""
        return bytes(self._head)

    @property
    def tail(self) -> bytes:
        """The last bytes, without those that are in ``head``."""
        return bytes(self._tail[-self._tail_size :]) if self._tail_size else b""

    def text(self) -> str:
        """All that was kept, what is not UTF-8 replaced, with a line in the middle that says how much is missing."""
        if not self.cut:
            return (self.head + self.tail).decode("utf-8", "replace")
        head, tail = self.head.decode("utf-8", "replace"), self.tail.decode("utf-8", "replace")
        return f"{head}\n[... {self.cut:,} bytes left out ...]\n{tail}"

"""Whose turn it is to write: two flocks around each transaction, so that no process starves (SIG-6).

The law: who wants to write takes the turn lock, then the write lock, then lets the turn lock go. A writer that is
always busy thus stands behind whoever came while it wrote. SQLite's own lock has no queue: beside a busy writer
another one comes through by luck. The system releases both when a process dies.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from concorde_trio.errors import StoreError
from concorde_trio.processes.fork_safety import close_lock, keep_from_forks
from concorde_trio.stores.sqlite_place import Place


class Turnstile:
    """One writer's place at the turnstile. ``try_enter`` never waits; call it again until it gives True."""

    def __init__(self, place: Place) -> None:
        self._turn = open_lock_file(place.turn_lock)
        try:
            self._write = open_lock_file(place.write_lock)
        except BaseException:
            close_lock(self._turn)
            raise
        self._has_turn = self._inside = False

    @property
    def has_turn(self) -> bool:
        """True while it is the next to write."""
        return self._has_turn

    def try_enter(self) -> bool:
        """Step forward as far as is free; True once it may write."""
        if not self._inside:
            if not self._has_turn:
                self._has_turn = try_lock(self._turn)
            if self._has_turn and try_lock(self._write):
                self._inside, self._has_turn = True, False
                fcntl.flock(self._turn, fcntl.LOCK_UN)
        return self._inside

    def leave(self) -> None:
        """Let both go, whatever is held."""
        if self._has_turn:
            self._has_turn = False
            fcntl.flock(self._turn, fcntl.LOCK_UN)
        if self._inside:
            self._inside = False
            fcntl.flock(self._write, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let both go and close the files."""
        self.leave()
        close_lock(self._turn)
        close_lock(self._write)


def open_lock_file(path: Path) -> int:
    """A descriptor of a file that is there to be locked, for ``close_lock``; no child inherits it, by exec or by fork."""
    flags = os.O_CREAT | os.O_CLOEXEC
    try:
        try:
            return keep_from_forks(os.open(path, flags | os.O_RDWR, 0o644))
        except PermissionError:
            # Another user's; a lock needs no right to write.
            return keep_from_forks(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        raise StoreError(
            f"the lock file {path} cannot be opened: {error.strerror}; look at its folder's rights"
        ) from error


def try_lock(descriptor: int, how: int = fcntl.LOCK_EX) -> bool:
    """True if the flock was free and is ours now."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StoreError(
            f"this file system gives no flock ({error.strerror}); keep the queue's database on a local disk"
        ) from error
    return True

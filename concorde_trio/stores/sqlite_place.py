"""Where a SQLite queue lives: one file, however its path is spelled, and the small files beside it.

The law: nothing opens the database file but SQLite (closing any other descriptor of it would drop SQLite's own
locks), so the locks that processes hold for each other stand in files of their own.
"""

from __future__ import annotations

import os
from pathlib import Path

import attrs

from concorde_trio.errors import StoreError, UsageError


@attrs.frozen
class Place:
    """The database file, absolute and with symbolic links followed, and what stands beside it."""

    database: Path

    @property
    def worker_lock(self) -> Path:
        """Held, with a flock, by the queue's one worker (REC-1)."""
        return self._beside("worker")

    @property
    def programs_lock(self) -> Path:
        """Held, with shared flocks, by the guards of programs (REC-6)."""
        return self._beside("programs")

    @property
    def turn_lock(self) -> Path:
        """Held by the writer that is next."""
        return self._beside("turn")

    @property
    def write_lock(self) -> Path:
        """Held by the writer that writes."""
        return self._beside("write")

    def uri(self, mode: str) -> str:
        """The URI that SQLite opens it by."""
        return f"{self.database.as_uri()}?mode={mode}"

    def check(self) -> None:
        """StoreError if there can be no database here; nothing is created."""
        folder = self.database.parent
        if not folder.is_dir():
            raise StoreError(f"the queue {self.database} cannot be opened: its folder does not exist; create it first")
        if self.database.is_dir():
            raise StoreError(f"{self.database} is a folder; name a file in it, like {self.database / 'queue.db'}")
        if self.database.exists() and not self.database.is_file():
            raise StoreError(f"{self.database} is no ordinary file; name one for the queue's database")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise StoreError(
                f"the queue {self.database} cannot be opened: its folder is not writable, and SQLite keeps files there"
            )
        if self.database.exists() and not os.access(self.database, os.R_OK | os.W_OK):
            raise StoreError(f"the database {self.database} is not readable and writable by this user")

    def identity(self) -> tuple[int, int] | None:
        """Which file it is now, None when there is none."""
        try:
            found = os.stat(self.database)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _beside(self, ending: str) -> Path:
        return self.database.with_name(f"{self.database.name}.{ending}")


def place_of(path: str | os.PathLike[str]) -> Place:
    """The place that ``path`` names; UsageError if it is no path of a file."""
    text = os.fspath(path)
    if not isinstance(text, str):
        raise UsageError(f"the path of a SqliteStore must be a string or a Path, not {text!r:.80}")
    if not text or ":memory:" in text or "mode=memory" in text:
        raise UsageError(f"a SqliteStore needs a file, not {text!r}; for a queue in memory use MemoryStore()")
    if text.startswith(("file:", "sqlite:")) or "\0" in text:
        raise UsageError(f'a SqliteStore takes the path of a file, like "queue.db", not the URL {text!r:.200}')
    return Place(Path(text).expanduser().resolve())

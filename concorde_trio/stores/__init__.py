"""Where a queue lives: in memory, or in a SQLite file."""

from concorde_trio.stores.memory import MemoryStore
from concorde_trio.stores.sqlite import SqliteStore

__all__ = ["MemoryStore", "SqliteStore"]

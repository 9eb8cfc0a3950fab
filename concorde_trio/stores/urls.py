"""Stores by name: a path, ``sqlite:///PATH``, ``sqlite:////ABSOLUTE/PATH``, or ``memory:``."""

from __future__ import annotations

from concorde_trio.errors import UsageError
from concorde_trio.signals.store import SignalStore
from concorde_trio.stores.memory import MemoryStore
from concorde_trio.stores.sqlite import SqliteStore


def open_store(url: str) -> SignalStore:
    """The store that ``url`` names, not opened yet. UsageError for what is no such URL."""
    if url == "memory:":
        return MemoryStore()
    if url.startswith("sqlite:///") and url != "sqlite:///":
        return SqliteStore(url.removeprefix("sqlite:///"))
    if url and "://" not in url and not url.startswith("sqlite:"):
        return SqliteStore(url)
    raise UsageError(
        f"a store is a path, sqlite:///PATH, sqlite:////ABSOLUTE/PATH or memory:, not {url!r:.200}; "
        "or give a store object, for instance SqliteStore('queue.db')"
    )

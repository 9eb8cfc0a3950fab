"""Stores by name: a path, ``sqlite:///PATH``, ``sqlite:////ABSOLUTE/PATH``, ``postgresql://…``, or ``memory:``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from concorde_trio.errors import UsageError
from concorde_trio.signals.store import SignalStore
from concorde_trio.stores.memory import MemoryStore
from concorde_trio.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from concorde_trio._sansio.diagnosis import Evidence
    from concorde_trio.stores.postgres.copy_place import PostgresCopyPlace
    from concorde_trio.stores.postgres.store import PostgresStore


def open_store(url: str) -> SignalStore:
    """The store that ``url`` names, not opened yet. UsageError for what is no such URL."""
    if url == "memory:":
        return MemoryStore()
    if url.startswith("sqlite:///") and url != "sqlite:///":
        return SqliteStore(url.removeprefix("sqlite:///"))
    if is_postgres_url(url):
        return postgres_store(url)
    if url and "://" not in url and not url.startswith("sqlite:"):
        return SqliteStore(url)
    raise UsageError(
        "a store is a path, sqlite:///PATH, sqlite:////ABSOLUTE/PATH, postgresql://USER@HOST/DATABASE or memory:, not "
        f"{url!r:.200}; or give a store object, for instance SqliteStore('queue.db')"
    )


def is_postgres_url(url: str) -> bool:
    """True if ``url`` is one of PostgreSQL's."""
    return url.startswith(("postgresql://", "postgres://"))


def postgres_store(url: str, **options: Any) -> PostgresStore:
    """The store in the database at ``url``; UsageError if its library is not installed, or the URL is none."""
    try:
        from concorde_trio.stores.postgres.store import PostgresStore
    except ImportError as error:
        if error.name != "psycopg":
            raise
        raise UsageError(str(error)) from None
    return PostgresStore(url, **options)


def postgres_copy_place(url: str) -> PostgresCopyPlace:
    """The place at ``url`` as one to copy from or to; UsageError as ``postgres_store``."""
    postgres_store(url)  # says what to install
    from concorde_trio.stores.postgres.copy_place import PostgresCopyPlace

    return PostgresCopyPlace(url)


def examine_postgres(url: str) -> Evidence:
    """What stands in the queue at ``url`` (see ``stores.examination``); UsageError as ``postgres_store``."""
    postgres_store(url)
    from concorde_trio.stores.postgres import examination

    return examination.examine_postgres(url)

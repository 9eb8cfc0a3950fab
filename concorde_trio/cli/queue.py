"""Which queue a command is about: ``--store``, then CONCORDE_STORE, then ``concorde.db`` in the current folder.

The law: a misspelt path makes no new queue, and puts no tables into a database that has none of ours. A queue is known by
a path on this machine: its database file, or, for one in PostgreSQL, the one beside which its endpoint stands.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from concorde_trio.cli.show import visible
from concorde_trio.stores.sqlite_place import Place, place_of
from concorde_trio.stores.sqlite_probe import holds_queue

if TYPE_CHECKING:
    from concorde_trio.stores.postgres.store import PostgresStore
    from concorde_trio.stores.sqlite import SqliteStore

    StoredQueue: TypeAlias = SqliteStore | PostgresStore

DEFAULT = "concorde.db"
BUSY_TIMEOUT = 10.0
"""Seconds that a command waits for a database that others hold: a person sits before it."""

_postgres: dict[Path, str] = {}
"""The URLs of queues that are in no file, by the paths that stand for them."""
_SCHEME = "sqlite:///"


def database_path(store: str | None, *, create: bool = False) -> Path:
    """The path of the queue. UsageError when none was named, or there is no queue in it (unless ``create``).

    ``store`` is a path, ``sqlite:///PATH`` (``sqlite:////PATH`` is absolute) or ``postgresql://…``, None for the default.
    StoreError for a file that cannot be read or is no database, and for a server that cannot be asked.
    """
    if store is not None and is_postgres(store):
        return _postgres_path(store, create=create)
    if store is None and not create and not Path(DEFAULT).exists():
        raise click.UsageError(
            f"no queue: there is no {DEFAULT} in this folder; name one with --store PATH or CONCORDE_STORE."
        )
    given = DEFAULT if store is None else _strip_scheme(store)
    place = place_of(given)
    if place.database.is_dir():
        raise click.UsageError(f"{visible(given)} is a folder; name the database file in it.")
    if not place.database.exists():
        _check_missing(place, given, create=create)
        return place.database
    place.check()
    if not holds_queue(place) and not create:
        raise click.UsageError(
            f"there is no queue in the database {visible(given)}; the first `concorde-trio serve` makes it."
        )
    return place.database


def is_postgres(store: str) -> bool:
    """Whether this is a URL of PostgreSQL's."""
    return store.startswith(("postgresql://", "postgres://"))


def sqlite_path(store: str) -> Path:
    """The database file that a path or ``sqlite:///PATH`` names, there or not; UsageError for what names none."""
    return place_of(_strip_scheme(store)).database


def store_at(path: Path) -> StoredQueue:
    """The store of a queue that ``database_path`` has found, not opened yet."""
    url = _postgres.get(path)
    if url is not None:
        from concorde_trio.stores.urls import postgres_store

        return postgres_store(url, busy_timeout=BUSY_TIMEOUT)
    from concorde_trio.stores.sqlite import SqliteStore

    return SqliteStore(path, busy_timeout=BUSY_TIMEOUT)


def _postgres_path(url: str, *, create: bool) -> Path:
    import trio

    from concorde_trio.stores.urls import postgres_store

    store = postgres_store(url, busy_timeout=BUSY_TIMEOUT)
    if not store.holds_queue():
        if not create:
            raise click.UsageError(
                "there is no queue in this database (or schema); the first `concorde-trio serve` makes it, or `emit --create`."
            )

        async def make() -> None:
            async with store.open():
                pass

        trio.run(make)
    _postgres[store.path] = url
    return store.path


def _check_missing(place: Place, given: str, *, create: bool) -> None:
    if not create:
        raise click.UsageError(
            f"there is no database at {visible(given)}; the first `concorde-trio serve` makes it, or `emit --create`."
        )
    if not place.database.parent.is_dir():
        raise click.UsageError(f"there is no folder {visible(str(place.database.parent))} to make the database in.")


def _strip_scheme(store: str) -> str:
    if "\0" in store:
        raise click.UsageError("a path cannot have a NUL in it.")
    if store.startswith(_SCHEME):
        store = store.removeprefix(_SCHEME)
    elif "://" in store or store.startswith(("sqlite:", "file:")):
        raise click.UsageError(
            f"expected a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE, not {visible(store)!r}."
        )
    if not store or store.startswith(":memory:"):
        raise click.UsageError("a queue in memory belongs to its process alone; name a database file.")
    return store

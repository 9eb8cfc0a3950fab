"""Which queue a command is about: ``--store``, then CONCORDE_STORE, then ``concorde.db`` in the current folder.

The law: a misspelt path makes no new queue, and puts no tables into a database that has none of ours.
"""

from __future__ import annotations

from pathlib import Path

import click

from concorde_trio.cli.show import visible
from concorde_trio.stores.sqlite_place import Place, place_of
from concorde_trio.stores.sqlite_probe import holds_queue

DEFAULT = "concorde.db"
_SCHEME = "sqlite:///"


def database_path(store: str | None, *, create: bool = False) -> Path:
    """The queue's database file. UsageError when none was named, or there is no queue in it (unless ``create``).

    ``store`` is a path or ``sqlite:///PATH`` (``sqlite:////PATH`` is absolute), None for the default. StoreError for a
    file that cannot be read or is no database.
    """
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
        raise click.UsageError(f"expected a path or sqlite:///PATH, not {visible(store)!r}.")
    if not store or store.startswith(":memory:"):
        raise click.UsageError("a queue in memory belongs to its process alone; name a database file.")
    return store

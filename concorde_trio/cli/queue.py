"""Which queue a command is about: ``--store``, then CONCORDE_STORE, then ``concorde.db`` in the current folder."""

from __future__ import annotations

from pathlib import Path

import click

from concorde_trio.cli.show import visible

DEFAULT = "concorde.db"
_SCHEME = "sqlite:///"
_HEADER = b"SQLite format 3\0"


def database_path(store: str | None, *, create: bool = False) -> Path:
    """The queue's database file. UsageError when none was named, or it is not there (unless ``create``), or is none.

    ``store`` is a path or ``sqlite:///PATH`` (``sqlite:////PATH`` is absolute), None for the default.
    """
    if store is None:
        path = Path(DEFAULT)
        if not create and not path.exists():
            raise click.UsageError(
                f"no queue: there is no {DEFAULT} in this folder; name one with --store PATH or CONCORDE_STORE."
            )
    else:
        path = Path(_strip_scheme(store)).expanduser()
    shown = visible(str(path))
    if path.is_dir():
        raise click.UsageError(f"{shown} is a folder; name the database file in it.")
    if path.exists():
        _check_is_database(path, shown)
    elif not create:
        raise click.UsageError(f"there is no database at {shown}; it is made by the first `concorde-trio serve`.")
    elif not path.absolute().parent.is_dir():
        raise click.UsageError(f"there is no folder {visible(str(path.absolute().parent))} to make the database in.")
    return path


def _strip_scheme(store: str) -> str:
    if "\0" in store:
        raise click.UsageError("a path cannot have a NUL in it.")
    if store.startswith(_SCHEME):
        store = store.removeprefix(_SCHEME)
    elif "://" in store or store.startswith("sqlite:"):
        raise click.UsageError(f"expected a path or sqlite:///PATH, not {visible(store)!r}.")
    if not store or store == ":memory:":
        raise click.UsageError("a queue in memory belongs to its process alone; name a database file.")
    return store


def _check_is_database(path: Path, shown: str) -> None:
    # No connection of this process may be open yet: closing any descriptor of a file drops its POSIX locks.
    if not path.is_file():
        raise click.ClickException(f"{shown} is not a file, so it is no database.")
    try:
        with path.open("rb") as file:
            header = file.read(len(_HEADER))
    except OSError as error:
        raise click.ClickException(f"cannot read {shown}: {error.strerror}") from None
    if header and header != _HEADER:
        raise click.ClickException(f"{shown} is not a SQLite database.")

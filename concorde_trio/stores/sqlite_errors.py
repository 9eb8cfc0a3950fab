"""What SQLite's errors mean: whether one passes by itself, and what a person can do about it (REC-5).

The law: an error that can pass is tried again in place, with growing pauses, up to a patience; one that cannot is
a StoreError at once, with a sentence that names the file and what to do.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from concorde_trio.errors import StoreBusy, StoreError

_PASSING = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOMEM,
    }
)

_ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full, or the database has reached its largest size; make room and start again",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; restore it from a backup, or save what `sqlite3 FILE .recover` finds",
    sqlite3.SQLITE_NOTADB: "the file is no SQLite database; name another file, or move this one away",
    sqlite3.SQLITE_READONLY: "the file or its folder cannot be written; give this user the right to, or move it",
    sqlite3.SQLITE_PERM: "this user may not open it; give this user the right to read and write it",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened; look at its folder, its rights, and the open files' limit",
    sqlite3.SQLITE_TOOBIG: "a value is larger than SQLite can hold",
    sqlite3.SQLITE_CONSTRAINT: "a row broke a rule of the schema and was not written",
}


def _code(error: BaseException) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def passes(error: BaseException) -> bool:
    """True if trying again later can succeed (busy, an interruption of the disk)."""
    return isinstance(error, sqlite3.Error) and _code(error) in _PASSING


def store_error(error: BaseException, database: Path) -> StoreError:
    """The StoreError for an error that does not pass; its cause should be ``error``."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, UnicodeError):
        return StoreError(f"the database {database} cannot hold this text: {error}")
    advice = _ADVICE.get(_code(error))
    return StoreError(f"the database {database} refused: {error}{'; ' + advice if advice else ''}")


def store_busy(error: BaseException | None, database: Path, patience: float) -> StoreBusy:
    """The StoreBusy for an error that did not pass in ``patience`` seconds."""
    said = f" (last: {error})" if error is not None else ""
    return StoreBusy(
        f"the database {database} could not be written for {patience:g} s{said}; see whether another process holds "
        "it in a long transaction, and try again"
    )

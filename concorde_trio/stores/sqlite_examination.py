"""Examining a SQLite queue for ``doctor``, beside its worker or without one; nothing is written."""

from __future__ import annotations

import fcntl
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import cast

from concorde_trio._sansio.diagnosis import Evidence
from concorde_trio.errors import StoreError
from concorde_trio.processes.fork_safety import close_lock
from concorde_trio.stores.database import Reads
from concorde_trio.stores.examination import examine
from concorde_trio.stores.pauses import pauses
from concorde_trio.stores.sqlite_connection import connect, schema_version
from concorde_trio.stores.sqlite_copy import SqliteTables
from concorde_trio.stores.sqlite_errors import passes, store_busy, store_error
from concorde_trio.stores.sqlite_place import Place, place_of
from concorde_trio.stores.sqlite_sql import migrations
from concorde_trio.stores.sqlite_turnstile import open_lock_file, try_lock

PATIENCE = 10.0
"""Seconds that a database which somebody holds is tried again."""


def examine_sqlite(path: Path) -> Evidence:
    """What stands in the queue at ``path``; blocks. StoreError if it cannot be read, or has an older schema."""
    place = place_of(path)
    until = time.monotonic() + PATIENCE
    for pause in pauses():
        try:
            with closing(connect(place, read_only=True)) as connection:
                version, newest = schema_version(connection, place), migrations()[-1][0]
                if version < newest:
                    raise StoreError(
                        f"the queue {place.database} has schema version {version} and this package reads {newest}; any other "
                        "command, or a worker, brings it up to date"
                    )
                return examine(
                    cast("Reads", connection),
                    now=time.time(),
                    served=lambda _: is_served(place),
                    highest=lambda _, table: SqliteTables(connection).highest(table),
                )
        except sqlite3.Error as error:
            if not passes(error):
                raise store_error(error, place.database) from error
            if time.monotonic() > until:
                raise store_busy(error, place.database, PATIENCE) from error
            time.sleep(pause)
    raise AssertionError("pauses() has no end")


def is_served(place: Place) -> bool:
    """Whether a worker has the queue; found out by a shared lock that is let go at once."""
    if not place.worker_lock.exists():
        return False
    descriptor = open_lock_file(place.worker_lock)
    try:
        return not try_lock(descriptor, fcntl.LOCK_SH)
    finally:
        close_lock(descriptor)

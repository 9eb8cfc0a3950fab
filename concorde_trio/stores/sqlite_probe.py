"""Whether a file is a queue, found out without changing a byte of it or waiting for anybody.

The law: opening a store brings its schema up to date, so whoever only wants to look asks here first, and nobody's own
database grows our tables because of a wrong path.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

from concorde_trio.stores.sqlite_errors import passes, store_error
from concorde_trio.stores.sqlite_place import Place


def holds_queue(place: Place) -> bool:
    """True if the database at ``place``, which exists, has a queue in it; StoreError if it is damaged or no database.

    True as well when somebody holds it right now: who opens it then waits, and is told.
    """
    try:
        with closing(sqlite3.connect(place.uri("ro"), uri=True, timeout=0)) as connection:
            found = connection.execute("select 1 from sqlite_schema where type = 'table' and name = 'concorde_meta'")
            return found.fetchone() is not None
    except sqlite3.Error as error:
        if passes(error):
            return True
        raise store_error(error, place.database) from error

"""Examining a PostgreSQL queue for ``doctor``, beside its worker or without one; nothing is written."""

from __future__ import annotations

import time
from contextlib import closing

import psycopg

from concorde_trio._sansio.diagnosis import Evidence
from concorde_trio.errors import StoreError
from concorde_trio.stores.database import Reads
from concorde_trio.stores.examination import examine
from concorde_trio.stores.postgres.connection import connect, schema_version
from concorde_trio.stores.postgres.copy_place import PostgresTables
from concorde_trio.stores.postgres.pg_errors import passes, store_busy, store_error
from concorde_trio.stores.postgres.pg_sql import PostgresReads, migrations
from concorde_trio.stores.postgres.place import Place, place_of


def examine_postgres(url: str) -> Evidence:
    """What stands in the queue at ``url``; blocks. StoreError if it cannot be read, or has an older schema."""
    place = place_of(url)
    try:
        with closing(connect(place, "concorde-trio doctor", read_only=True)) as connection:
            version, newest = schema_version(connection, place), migrations()[-1][0]
            if version < newest:
                raise StoreError(
                    f"the queue {place.name} has schema version {version} and this package reads {newest}; any other command, or "
                    "a worker, brings it up to date"
                )
            connection.execute("set statement_timeout to 0")
            return examine(
                PostgresReads(connection),
                now=time.time(),
                served=lambda database: is_served(database, place),
                highest=lambda _, table: PostgresTables(connection).highest(table),
            )
    except psycopg.Error as error:
        if passes(error):
            raise store_busy(error, place, 0) from error
        raise store_error(error, place) from error


def is_served(database: Reads, place: Place) -> bool:
    """Whether a worker has the queue: somebody holds its advisory lock."""
    key = place.worker_key & 0xFFFF_FFFF_FFFF_FFFF
    held = database.execute(
        "select 1 from pg_locks where locktype = 'advisory' and granted and objsubid = 1 "
        "and database = (select oid from pg_database where datname = current_database()) "
        "and classid::bigint = ? and objid::bigint = ?",
        (key >> 32, key & 0xFFFF_FFFF),
    )
    return held.fetchone() is not None

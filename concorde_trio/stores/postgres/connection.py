"""Connections to the database of a queue, and its schema: opened one way, brought up to date by numbered files.

The law: everything that is waited for here has a bound. A newer schema is refused untouched; of several processes that
open a fresh database at once, one makes the schema, under an advisory lock.
"""

from __future__ import annotations

import re

import psycopg

from concorde_trio.errors import SchemaTooNew, StoreError
from concorde_trio.stores.postgres.pg_sql import Connection, PostgresReads, migrations
from concorde_trio.stores.postgres.place import Place

OLDEST = 130000
STATEMENT_TIMEOUT = 30.0
"""Seconds that one statement of the store's own may take on the server."""

LOCK_TIMEOUT = 5.0
"""Seconds that one waits there for a lock that another session holds."""

IDLE_TIMEOUT = 120.0
"""Seconds after which the server ends a transaction of ours in which nothing happens, for its process may be stopped."""

_MADE = re.compile(r"^create (?:unique )?(table|index) (\w+)", re.MULTILINE)


def connect(place: Place, name: str, *, read_only: bool = False) -> Connection:
    """A connection in autocommit mode; any thread may use it, one at a time. ``name`` is what the server lists it by."""
    connection = psycopg.connect(place.conninfo, autocommit=True, client_encoding="utf8", application_name=name)
    try:
        if connection.info.server_version < OLDEST:
            raise StoreError(
                f"the server of {place.name} is PostgreSQL {connection.info.server_version // 10000}; the store needs "
                f"{OLDEST // 10000} or later"
            )
        connection.execute(
            f'set search_path to "{place.schema}";'
            f" set statement_timeout to {round(STATEMENT_TIMEOUT * 1000)};"
            f" set lock_timeout to {round(LOCK_TIMEOUT * 1000)};"
            f" set idle_in_transaction_session_timeout to {round(IDLE_TIMEOUT * 1000)};"
            " set tcp_keepalives_idle to 5; set tcp_keepalives_interval to 3; set tcp_keepalives_count to 3;"
            # What a lost client has locked is free soon, though a statement of it runs.
            + (" set client_connection_check_interval to 1000;" if connection.info.server_version >= 140000 else "")
            + (
                " set default_transaction_read_only to on; set default_transaction_isolation to 'repeatable read'"
                if read_only
                else " set default_transaction_isolation to 'read committed'"
            )
        )
    except BaseException:
        connection.close()
        raise
    return connection


def schema_version(connection: Connection, place: Place) -> int:
    """The version stored, 0 if there is no queue in the schema; SchemaTooNew if it is newer than this package."""
    database = PostgresReads(connection)
    # Not to_regclass, which would go on saying what it said before another process made the schema.
    if not _relations(database, place, ["concorde_meta"]):
        return 0
    version: int = database.execute("select schema_version from concorde_meta").fetchall()[0][0]
    newest = migrations()[-1][0]
    if version > newest:
        raise SchemaTooNew(
            f"the database {place.name} has schema version {version}, and this package knows versions up to "
            f"{newest}; use the newer package that wrote it"
        )
    return version


def up_to_date(connection: Connection, place: Place) -> bool:
    """True if the schema is there in the newest version."""
    return schema_version(connection, place) == migrations()[-1][0]


def migrate(connection: Connection, place: Place) -> None:
    """Bring the schema up to date, in one transaction. Raises what psycopg raises, with nothing changed."""
    database = PostgresReads(connection)
    encoding = database.execute("show server_encoding").fetchall()[0][0]
    if encoding != "UTF8":
        raise StoreError(
            f"the database {place.name} keeps text as {encoding}; create one with the encoding UTF8 for the queue"
        )
    with connection.transaction():
        # Not at the same time as another process: what it made is then seen.
        database.execute("select pg_advisory_xact_lock(?)", (place.migration_key,))
        version = schema_version(connection, place)
        newer = [(number, script) for number, script in migrations() if number > version]
        if not version:
            there = database.execute("select 1 from pg_namespace where nspname = ?", (place.schema,)).fetchall()
            if not there:  # "if not exists" would need the right to make one where it exists.
                database.execute(f'create schema "{place.schema}"')
        _check_names(database, place, newer)
        for number, script in newer:
            database.execute(script)
            database.execute(f"update concorde_meta set schema_version = {number}")


def _check_names(database: PostgresReads, place: Place, newer: list[tuple[int, str]]) -> None:
    made = [name for _, script in newer for _, name in _MADE.findall(script)]
    found = _relations(database, place, made)
    if found:
        name, kind = found[0]
        raise StoreError(
            f"the schema {place.schema} of {place.name} has {'an index' if kind == 'i' else 'a table'} {name!r} that this "
            "package did not make; name another schema for the queue (schema=)"
        )


def _relations(database: PostgresReads, place: Place, names: list[str]) -> list[tuple[str, str]]:
    """Those of the names that are taken in the schema, and of what kind they are (``i`` is an index)."""
    return database.execute(
        "select relname::text, relkind::text from pg_class join pg_namespace on pg_namespace.oid = relnamespace "
        "where nspname = ? and relname = any(?) order by relname",
        (place.schema, names),
    ).fetchall()

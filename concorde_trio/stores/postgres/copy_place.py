"""A PostgreSQL queue as the source or the destination of a copy (see ``stores.copying``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count

import psycopg

from concorde_trio.errors import QueueTaken, StoreError
from concorde_trio.processes.fork_safety import close_lock
from concorde_trio.stores import queries
from concorde_trio.stores.copied_tables import TABLES, CopiedTable, Row
from concorde_trio.stores.copying import BATCH
from concorde_trio.stores.postgres.connection import connect, migrate, schema_version
from concorde_trio.stores.postgres.fleet_reads import leader_row
from concorde_trio.stores.postgres.pg_errors import passes, store_busy, store_error
from concorde_trio.stores.postgres.pg_sql import Connection, PostgresReads
from concorde_trio.stores.postgres.place import place_of, state_folder
from concorde_trio.stores.sqlite_turnstile import open_lock_file, try_lock

PATIENCE = 10.0
"""Seconds that a copy waits for others who write."""


class PostgresTables:
    """The tables of a queue on a connection in a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._numbers = count(1)

    def count(self, table: CopiedTable) -> int:
        """How many rows it has."""
        return self._number(f"select count(*) from {table.name}")

    def rows(self, table: CopiedTable) -> Iterator[list[Row]]:
        """Its rows, some at a time, through a cursor of the server's."""
        with self._connection.cursor(name=f"copied_{next(self._numbers)}") as cursor:
            cursor.execute(table.select)
            while batch := cursor.fetchmany(BATCH):
                yield list(table.alike(batch))

    def highest(self, table: CopiedTable) -> int:
        """The highest number its counter gave out."""
        sequence = self._connection.execute(
            "select pg_get_serial_sequence(%s, %s)", (table.name, table.counter)
        ).fetchall()[0][0]
        return self._number(f"select case when is_called then last_value else last_value - 1 end from {sequence}")

    def last_position(self) -> int:
        """The highest position a run ever had."""
        return self._number("select last_position from concorde_meta")

    def write(self, table: CopiedTable, batches: Iterator[list[Row]]) -> None:
        """Insert the rows, numbers and all."""
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"copy {table.name} ({table.columns_sql}) from stdin") as stream,
        ):
            for batch in batches:
                for row in batch:
                    stream.write_row(row)

    def number_from(self, table: CopiedTable, highest: int) -> None:
        """Never give out this number again."""
        if highest:  # setval would not be undone with the transaction
            self._connection.execute(
                f'alter table {table.name} alter column "{table.counter}" restart with {highest + 1}'
            )

    def place_from(self, position: int) -> None:
        """Never give a run this position again."""
        self._connection.execute("update concorde_meta set last_position = %s", (position,))

    def _number(self, query: str) -> int:
        number: int = self._connection.execute(query).fetchall()[0][0]
        return number


class PostgresCopyPlace:
    """The queue in the schema that ``url`` names, or the schema where one is to be."""

    def __init__(self, url: str) -> None:
        self._place = place_of(url)

    @property
    def name(self) -> str:
        """The database and the schema, without a password."""
        return self._place.name

    @contextmanager
    def held_still(self) -> Iterator[PostgresTables]:
        """The queue that is there; producers wait, as for any long transaction."""
        with self._writing(make=False) as connection:
            yield PostgresTables(connection)

    @contextmanager
    def filled(self) -> Iterator[PostgresTables]:
        """A new schema, or a queue without rows."""
        with self._writing(make=True) as connection:
            yield PostgresTables(connection)

    @contextmanager
    def _writing(self, *, make: bool) -> Iterator[Connection]:
        """A connection in a transaction with the schema up to date, and nobody serving or writing."""
        try:
            with closing(connect(self._place, "concorde-trio copy")) as connection:
                connection.execute(
                    f"set statement_timeout to 0; set idle_in_transaction_session_timeout to 0;"
                    f" set lock_timeout to {round(PATIENCE * 1000)}"
                )
                with connection.transaction(force_rollback=not make):
                    if not make and not schema_version(connection, self._place):
                        raise StoreError(f"there is no queue in {self.name} to copy")
                    migrate(connection, self._place)
                    # Taken before the first look, so that what is seen is what stays.
                    locked = ", ".join([*(table.name for table in TABLES), "concorde_members"])
                    connection.execute(f"lock table {locked} in share row exclusive mode")
                    self._refuse_served(connection)
                    yield connection
        except psycopg.Error as error:
            if passes(error):
                raise store_busy(error, self._place, PATIENCE) from error
            raise store_error(error, self._place) from error

    def _refuse_served(self, connection: Connection) -> None:
        database = PostgresReads(connection)
        free = database.execute("select pg_try_advisory_xact_lock(?)", (self._place.worker_key,)).fetchall()[0][0]
        living = database.execute(
            "select host, pid from concorde_members join concorde_leases on member = id "
            "where state in ('live', 'draining') and until > clock_timestamp() order by started_at"
        ).fetchall()
        leader = leader_row(database)
        if living:
            members = ", ".join(f"process {pid} on {host}" for host, pid in living)
            raise QueueTaken(f"the queue {self.name} is served by {members}; stop all of them first, then copy")
        if not free or (leader.member is None and leader.owner is not None and not leader.owner.known_dead()):
            raise QueueTaken(
                f"the queue {self.name} is served by {leader.owner or 'a worker'}; stop it first, then copy"
            )
        for programs in state_folder().glob(f"{queries.queue(database)}*.programs"):
            descriptor = open_lock_file(programs)
            try:
                if not try_lock(descriptor):
                    raise QueueTaken(
                        f"the queue {self.name} still has programs of its last worker running on this machine; wait until "
                        "they have ended, then copy"
                    )
            finally:
                close_lock(descriptor)

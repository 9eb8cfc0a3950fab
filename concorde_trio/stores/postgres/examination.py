"""Examining a PostgreSQL queue for ``doctor``, beside its worker or without one; nothing is written."""

from __future__ import annotations

import time
from contextlib import closing

import psycopg

from concorde_trio._sansio.diagnosis import PATIENCE, REPORT, Evidence
from concorde_trio.errors import StoreError
from concorde_trio.stores.database import Reads
from concorde_trio.stores.examination import RowCheck, examine
from concorde_trio.stores.postgres.connection import connect, schema_version
from concorde_trio.stores.postgres.copy_place import PostgresTables
from concorde_trio.stores.postgres.fleet_reads import leader_row
from concorde_trio.stores.postgres.pg_errors import passes, store_busy, store_error
from concorde_trio.stores.postgres.pg_sql import PostgresReads, migrations
from concorde_trio.stores.postgres.place import Place, place_of

_EXECUTED = "select run_id from concorde_executions join runs on runs.id = run_id where"

FLEET_CHECKS = (
    RowCheck("RUN-1", "runs have ended, and are still offered or executed", f"{_EXECUTED} ended_at is not null"),
    RowCheck(
        "RUN-1",
        "runs were taken, and are not marked as started",
        f"{_EXECUTED} member is not null and started_at is null",
    ),
    RowCheck(
        "RUN-1", "runs are offered, though they had started", f"{_EXECUTED} member is null and started_at is not null"
    ),
    RowCheck(
        "REC-2",
        f"members were not ended, though their lease was over {PATIENCE:.0f} s ago",
        "select id from concorde_members join concorde_leases on member = id "
        f"where state in ('live', 'draining') and until < clock_timestamp() - interval '{PATIENCE:.0f} seconds'",
        f"restart the leader (concorde-trio fleet says who that is), and another one leads; {REPORT}",
        cut=True,
    ),
)


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
                owners=owners,
                more=FLEET_CHECKS,
            )
    except psycopg.Error as error:
        if passes(error):
            raise store_busy(error, place, 0) from error
        raise store_error(error, place) from error


def is_served(database: Reads, place: Place) -> bool:
    """Whether a worker has the queue: a member that lives leads, or somebody holds the advisory lock."""
    if leader_row(database).lives:
        return True
    held = database.execute(
        "select 1 from pg_locks where locktype = 'advisory' and granted and objsubid = 1 "
        "and database = (select oid from pg_database where datname = current_database()) "
        "and (classid::bigint << 32 | objid::bigint) = ?",
        (place.worker_key,),
    )
    return held.fetchone() is not None


def owners(database: Reads) -> dict[str, bool]:
    """The runs that members have taken, and whether the member lives or has written how the run ended."""
    rows = database.execute(
        "select run_id, outcome is not null or (state in ('live', 'draining') and until > clock_timestamp()) "
        "from concorde_executions left join concorde_members on id = concorde_executions.member "
        "left join concorde_leases on concorde_leases.member = id where concorde_executions.member is not null"
    ).fetchall()
    return {run_id: bool(lives) for run_id, lives in rows}

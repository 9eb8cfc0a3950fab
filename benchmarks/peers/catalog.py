"""The peers: what each is, how it is run, what it needs, and what it does not do.

The law: each is run as its own documentation would have it for this work, at its best concurrency, with order a key where it has
a way to keep it, and brought to the disk as often as ours. What it lacks is what its documentation does not promise, not what we think of it.
"""

from __future__ import annotations

from typing import Literal

import attrs


@attrs.frozen(kw_only=True)
class Peer:
    """``needs``: what is installed into the environment ``environment`` (None: Python's own library is enough)."""

    about: str
    script: str
    lacks: str
    database: Literal["none", "sqlite", "postgres"]
    environment: str | None = None
    needs: tuple[str, ...] = ()
    way: Literal["ordered", "unordered"] = "ordered"


PEERS: dict[str, Peer] = {
    "serial": Peer(
        about="a loop over a table in SQLite, one job at a time",
        script="serial_worker",
        database="sqlite",
        lacks="nothing runs beside anything else; a job that a crash cut off stays running",
    ),
    "asyncio-locks": Peer(
        about="asyncio: a task a job, a lock a key, nothing stored",
        script="keyed_asyncio",
        database="none",
        lacks="durability; several locks at once without care for deadlocks",
    ),
    "procrastinate": Peer(
        about="procrastinate on PostgreSQL, a lock a key",
        script="procrastinate_worker",
        environment="procrastinate",
        needs=("procrastinate==3.10.0", "psycopg[binary,pool]>=3.3"),
        database="postgres",
        lacks="several locks a job",
    ),
    "pgqueuer": Peer(
        about="pgqueuer on PostgreSQL, an entrypoint a key, one job of each at a time",
        script="pgqueuer_worker",
        environment="pgqueuer",
        needs=("pgqueuer==1.6.0", "asyncpg>=0.30"),
        database="postgres",
        lacks="keys that are data (an entrypoint must be declared for each); several locks a job",
    ),
    "pgqueuer-unordered": Peer(
        about="pgqueuer on PostgreSQL, one entrypoint without a limit",
        script="pgqueuer_worker",
        environment="pgqueuer",
        needs=("pgqueuer==1.6.0", "asyncpg>=0.30"),
        database="postgres",
        way="unordered",
        lacks="order a key; locks",
    ),
    "dbos-sqlite": Peer(
        about="DBOS on SQLite, a queue partitioned by key",
        script="dbos_worker",
        environment="dbos",
        needs=("dbos==3.4.0",),
        database="sqlite",
        lacks="several locks a workflow; a start on notice (it polls)",
    ),
    "dbos-postgres": Peer(
        about="DBOS on PostgreSQL, a queue partitioned by key",
        script="dbos_worker",
        environment="dbos",
        needs=("dbos==3.4.0",),
        database="postgres",
        lacks="several locks a workflow; a start on notice (it polls)",
    ),
    "huey": Peer(
        about="huey on SQLite, one worker, so that there is order",
        script="huey_sqlite",
        environment="huey",
        needs=("huey==3.5.4",),
        database="sqlite",
        lacks="anything beside anything else; a task leaves the table when it is taken, and one that a crash cut off is lost without a word",
    ),
    "huey-threads": Peer(
        about="huey on SQLite, a thread a key, no order",
        script="huey_sqlite",
        environment="huey",
        needs=("huey==3.5.4",),
        database="sqlite",
        way="unordered",
        lacks="order a key; locks that wait (a task whose lock is taken fails); a task that a crash cut off is lost without a word",
    ),
}

"""What ``doctor`` finds in a PostgreSQL queue: the same, by the same checks."""

from __future__ import annotations

import pytest

from concorde_trio._sansio.diagnosis import diagnose
from concorde_trio.stores.urls import examine_postgres, postgres_store
from tests.stores.planted_faults import FAULTS, fill, start
from tests.stores.postgres_server import PostgresServer, postgres, psycopg

pytestmark = pytest.mark.slow

__all__ = ["postgres"]


def unbound(postgres: PostgresServer, schema: str) -> None:
    """Take away the constraints that forbid what is to be planted."""
    checks = postgres.execute(
        "select conrelid::regclass::text, conname from pg_constraint where connamespace = %s::regnamespace "
        "and contype in ('c', 'f')",
        [schema],
    )
    postgres.execute("; ".join(f"alter table {table} drop constraint {name}" for table, name in checks))


async def test_each_planted_fault_is_found_and_nothing_in_a_good_queue(postgres: PostgresServer) -> None:
    """Q-21: by its rule, with the row."""
    url = postgres.place()
    schema = url.rpartition("=")[2]
    async with postgres_store(url).open():
        pass
    unbound(postgres, schema)
    tables = ("signals", "runs", "sessions", "messages", "inputs")
    store = postgres_store(url)
    async with store.open():
        await fill(store)
    assert diagnose(examine_postgres(url)) == []
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"set search_path to {schema}")
        for table in (*tables, "concorde_meta"):
            connection.execute(f"create table kept_{table} as table {table}")
        for statement, rule, id_ in FAULTS:
            connection.execute(statement)
            assert [each.ids for each in diagnose(examine_postgres(url)) if each.rule == rule] == [(id_,)], statement
            for table in (*tables, "concorde_meta"):
                connection.execute(f"truncate {table}")
                connection.execute(f"insert into {table} overriding system value select * from kept_{table}")


async def test_a_run_is_its_members_while_that_lives_and_nobodys_after_its_end(postgres: PostgresServer) -> None:
    """Q-21: the same rows, with its member and without it; whether somebody leads is another question."""
    url = postgres.place()
    schema = url.rpartition("=")[2]
    store = postgres_store(url)
    async with store.open():
        await fill(store)
        async with store.enrol() as member:
            await start(store)
            postgres.execute(
                f"insert into {schema}.concorde_executions (run_id, position, epoch, member, taken_at) "
                "values ('run-parked-0', 2, 1, %s, 5)",
                [member.id],
            )
            evidence = examine_postgres(url)
            assert (evidence.served, diagnose(evidence)) == (False, [])
            async with member.lead() as lead:
                assert lead is not None
                assert examine_postgres(url).served
    evidence = examine_postgres(url)
    assert not evidence.served
    assert [(each.kind, each.ids) for each in diagnose(evidence)] == [("cut", ("run-parked-0",))]
    for change, rule in (
        ("update {}.concorde_executions set member = null, taken_at = null", "RUN-1"),
        ("update {}.runs set state = 'failed', error = 'why', ended_at = 6 where state = 'running'", "RUN-1"),
        ("update {}.concorde_members set state = 'live', ended_at = null", "REC-2"),
    ):
        postgres.execute(change.format(schema))
        if rule == "REC-2":
            long_ago = "now() - interval '2 minutes'"
            postgres.execute(
                f"insert into {schema}.concorde_leases select id, {long_ago} from {schema}.concorde_members"
            )
        assert rule in [each.rule for each in diagnose(examine_postgres(url))], change

"""``prune`` by age: sessions that nobody used since go too, and are counted before and after."""

from __future__ import annotations

import os
from pathlib import Path

import trio

from concorde_trio.stores import SqliteStore
from concorde_trio.testing.session_store_checks.samples import given, said, save
from tests.cli.running import Command


def test_prune_counts_and_removes_sessions(command: Command, household: Path) -> None:
    """STP-5: not those with a queued input; --dry-run says how many and removes none."""

    async def fill() -> None:
        store = SqliteStore(household)
        async with store.open():
            await store.apply([save(name, at=1.0) for name in ("old", "older", "waits")])
            await store.apply([said(1, session="old", at=1.0), given("i", "waits", at=1.0)])

    trio.run(fill)
    done = command("prune", "--older-than", "1d", "--dry-run", "--json")
    assert done.json["sessions"] == 2
    done = command("prune", "--older-than", "1d", "--yes")
    assert done.out.endswith("; 2 sessions not used since\n"), done.out
    done = command("prune", "--older-than", "1d", "--yes", "--json")
    assert (done.json["signals"], done.json["sessions"]) == (0, 0)


def test_the_command_prunes_outputs_too(command: Command, here: Path) -> None:
    """STP-5: those beside the database."""

    async def fill() -> None:
        store = SqliteStore(here / "concorde.db")
        async with store.open():
            await store.apply([save("old", at=1.0), save("waits", at=1.0), given("i", "waits", at=1.0)])

    trio.run(fill)
    outputs = here / "concorde.db.outputs"
    for name in ("old", "waits"):
        (outputs / name).mkdir(parents=True)
        (outputs / name / "a.txt").write_text("all of it")
        os.utime(outputs / name / "a.txt", (2, 2))
    assert command("prune", "--older-than", "1d", "--yes").status == 0
    assert [each.name for each in outputs.iterdir()] == ["waits"] and (outputs / "waits" / "a.txt").exists()

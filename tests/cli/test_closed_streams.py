"""A command whose stdout was closed before it began, as ``>&-`` does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import trio

from concorde_trio.stores.sqlite import SqliteStore


@pytest.mark.slow
def test_a_command_without_a_stdout_does_its_work_and_ends_well(tmp_path: Path) -> None:
    """SIG-1: a script that retries on a failure that was none would emit twice."""
    database = tmp_path / "queue.db"
    command = [sys.executable, "-m", "concorde_trio", "emit", "kind", "1", "--create", "--store", str(database)]
    done = subprocess.run(["/bin/sh", "-c", '"$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, "fault" in done.stderr) == (0, False)

    async def count() -> int:
        store = SqliteStore(database)
        async with store.open():
            return len(await store.pending(10))

    assert trio.run(count) == 1

"""One suite over all schedule stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from concorde_trio.stores import MemoryStore, SqliteStore
from concorde_trio.testing import schedule_store_checks
from concorde_trio.testing.schedule_store_checks.rows import Check, MakeStore, QueueStore


@pytest.fixture(params=["memory", "sqlite", "sqlite inline"])
def make_store(request: pytest.FixtureRequest) -> Iterator[MakeStore]:
    """A callable that makes a fresh store; files stand in memory where there is a place for it, since nothing crashes."""
    numbers = count()
    memory = Path("/dev/shm")
    folder = TemporaryDirectory(dir=memory if memory.is_dir() else None)
    tmp_path = Path(folder.name)
    makers: dict[str, Callable[[], QueueStore]] = {
        "memory": MemoryStore,
        "sqlite": lambda: SqliteStore(tmp_path / f"{next(numbers)}.db"),
        "sqlite inline": lambda: SqliteStore(tmp_path / f"{next(numbers)}.db", inline=True),
    }
    with folder:
        yield makers[request.param]


@pytest.mark.parametrize("check", schedule_store_checks.values(), ids=schedule_store_checks.keys())
async def test_every_store(check: Check, make_store: MakeStore) -> None:
    """SCH, SIG: the rule is in the docstring of each check."""
    await check(make_store)


def test_every_check_names_its_rule() -> None:
    """The suite is read by people who write a store."""
    for name, check in schedule_store_checks.items():
        assert check.__doc__, name
        assert check.__doc__.split()[0].rstrip(".,:").split("-")[0] in ("SCH", "SIG"), name

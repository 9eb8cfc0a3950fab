"""The stores that every suite of this folder goes over; those that need a server are made by their own file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pytest

from concorde_trio.stores import MemoryStore, SqliteStore

MakeStore: TypeAlias = Callable[[], MemoryStore | SqliteStore]


@pytest.fixture(params=["memory", "sqlite", "sqlite inline"])
def make_store(request: pytest.FixtureRequest) -> Iterator[MakeStore]:
    """A callable that makes a fresh store; files stand in memory where there is a place for it, since nothing crashes."""
    numbers = count()
    memory = Path("/dev/shm")
    folder = TemporaryDirectory(dir=memory if memory.is_dir() else None)
    tmp_path = Path(folder.name)
    makers: dict[str, MakeStore] = {
        "memory": MemoryStore,
        "sqlite": lambda: SqliteStore(tmp_path / f"{next(numbers)}.db"),
        "sqlite inline": lambda: SqliteStore(tmp_path / f"{next(numbers)}.db", inline=True),
    }
    with folder:
        yield makers[request.param]

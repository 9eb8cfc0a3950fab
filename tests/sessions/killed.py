"""A program that lives a session's life in one child after another, each of which kills itself one checkpoint later.

Run as ``python -m tests.sessions.killed DOOR FOLDER``: child n leaves ``FOLDER/n.db`` behind, and what it was told was accepted in
``n.txt``. It ends after the first child that came to the end of the life, and prints how many were killed.

The law: the parent has no thread and no store open, so a fork is a fresh process, only cheaper.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path

import trio

from concorde_trio.stores.sqlite import SqliteStore
from tests.sessions.life import Life, process
from tests.signals.stage import play
from tests.signals.test_worker_checkpoints import AtCheckpoint


class Written(list[str]):
    """What was accepted, on disk at once."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def append(self, input_id: str) -> None:
        with self._path.open("a") as file:
            print(input_id, file=file)


def live_and_die(door: str, folder: Path, at: int) -> None:
    """The life, until this process kills itself before step ``at``."""

    instrument = AtCheckpoint(at, lambda: os.kill(os.getpid(), signal.SIGKILL))

    async def main() -> None:
        async with process(SqliteStore(folder / f"{at}.db", inline=True), worker=door == "worker") as life:
            assert isinstance(life, Life)
            life.accepted = Written(folder / f"{at}.txt")
            await life.live()

    play(main, instruments=(instrument,))


def children(door: str, folder: Path) -> int:
    """One child for each checkpoint; how many were killed."""
    at = 1
    while True:
        child = os.fork()
        if child == 0:
            try:
                live_and_die(door, folder, at)
                os._exit(0)
            except BaseException:  # noqa: BLE001 - a child must not go on as its parent
                traceback.print_exc()
                os._exit(1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            return at - 1
        if status != -signal.SIGKILL:
            raise SystemExit(f"the child of checkpoint {at} ended with {status}")
        at += 1


if __name__ == "__main__":
    trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[attr-defined]  # as under pytest
    print(children(sys.argv[1], Path(sys.argv[2])))

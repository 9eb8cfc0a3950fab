"""One worker for a file, and none before an earlier one's programs are dead."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from concorde_trio.errors import QueueTaken
from concorde_trio.stores import SqliteStore

OWN = """
import sys, trio
from concorde_trio.stores import SqliteStore

async def main():
    store = SqliteStore(sys.argv[1])
    async with store.open(), store.own():
        print("owned", flush=True)
        await trio.sleep_forever()

trio.run(main)
"""


async def test_who_owns_it_is_named(tmp_path: Path) -> None:
    """REC-1: the process, the machine and since when; another spelling of the path is the same queue."""
    store = SqliteStore(tmp_path / "q.db")
    other = SqliteStore(tmp_path / "." / ".." / tmp_path.name / "q.db")
    async with store.open(), other.open():
        async with store.own():
            since = r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d; stop it"
            with pytest.raises(QueueTaken, match=rf"process {os.getpid()} on \S+ {since}") as caught:
                async with other.own():
                    raise AssertionError("two workers own one queue")
            assert str(store.path) in str(caught.value)
            assert "serve --wait" in str(caught.value) and "wait_for_queue=True" in str(caught.value)
        async with other.own():
            pass


async def test_programs_of_an_earlier_worker_are_waited_for(tmp_path: Path) -> None:
    """REC-6: also without wait=True, and told; then the lock is let go for the guards to come."""
    store = SqliteStore(tmp_path / "q.db")
    async with store.open():
        assert store.programs_lock is not None
        guard = os.open(store.programs_lock, os.O_RDWR | os.O_CREAT)
        fcntl.flock(guard, fcntl.LOCK_SH)
        told: list[str] = []
        owned = trio.Event()

        async def own() -> None:
            async with store.own(waiting=told.append):
                owned.set()
                new = os.open(str(store.programs_lock), os.O_RDWR)
                fcntl.flock(new, fcntl.LOCK_SH | fcntl.LOCK_NB)
                os.close(new)

        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(own)
                while not told:
                    await trio.sleep(0.01)
                assert not owned.is_set()
                assert re.search("programs of an earlier worker", told[0])
                with pytest.raises(QueueTaken):
                    async with store.own():
                        raise AssertionError("it waits for programs, and owns the queue already")
                os.close(guard)
        assert owned.is_set()
        assert len(told) == 1


@pytest.mark.slow
async def test_a_killed_worker_owns_nothing(tmp_path: Path) -> None:
    """REC-1: the system lets go, and a stale name in the file stops nobody."""
    store = SqliteStore(tmp_path / "q.db")
    process = _start_owner(store.path)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "owned\n"
        async with store.open():
            with pytest.raises(QueueTaken, match=f"process {process.pid} "):
                async with store.own():
                    raise AssertionError("two workers own one queue")
            with trio.fail_after(20):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_kill_when_blocked, process)
                    told: list[str] = []
                    async with store.own(wait=True, waiting=told.append):
                        assert f"process {process.pid} " in told[0]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]


def _start_owner(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", OWN, str(path)], stdout=subprocess.PIPE, text=True)


async def _kill_when_blocked(process: subprocess.Popen[str]) -> None:
    await trio.sleep(0.1)
    process.send_signal(signal.SIGKILL)

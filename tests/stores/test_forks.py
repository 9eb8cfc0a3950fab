"""A child that a handler forks must not hold what its parent held (REC-1)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from concorde_trio.processes.fork_safety import close_lock
from concorde_trio.stores.sqlite_turnstile import open_lock_file, try_lock


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_keeps_no_lock_of_its_parent(tmp_path: Path) -> None:
    """REC-1: the lock goes with the process that took it, although a child of its lives on."""
    path = tmp_path / "lock"
    lock = open_lock_file(path)
    assert try_lock(lock)
    ready, child_ready = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(child_ready, b"x")
        signal.pause()
        os._exit(0)
    try:
        os.read(ready, 1)
        close_lock(lock)
        other = open_lock_file(path)
        assert try_lock(other)
        close_lock(other)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready)
        os.close(child_ready)

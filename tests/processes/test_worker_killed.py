"""What becomes of programs whose worker is killed with SIGKILL."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from concorde_trio.processes.start import GUARD, request
from concorde_trio.processes.sweep import new_marker, sweep_queue
from tests.processes.census import PATH, Census, is_alive, parent_of, until

pytestmark = pytest.mark.slow

WORKER = """
import os, sys, time, trio
from pathlib import Path
from concorde_trio.processes.runner import open_program
from concorde_trio.processes.sweep import new_marker

label, queue, lock, path, count, code, forks = sys.argv[1:]

async def one():
    seen = trio.Event()
    def on_stdout(data):
        if b"ready" in data: seen.set()
    async with open_program(["sh", "-c", code], env={"PATH": path, "LABEL": label}, cwd="/tmp",
                            marker=new_marker(queue), programs_lock=Path(lock), on_stdout=on_stdout,
                            ladder=[(15, 3600.0)]) as program:
        await seen.wait()
        if forks == "forks":
            fork = os.fork()
            while fork == 0:
                time.sleep(600)  # it holds every socket of the worker open
            print("fork", fork, flush=True)
        print("ready", program.pid, flush=True)
        await trio.sleep_forever()

async def main():
    async with trio.open_nursery() as nursery:
        for _ in range(int(count)):
            nursery.start_soon(one)

trio.run(main)
"""

CODE = (
    "setsid sleep $LABEL & (sleep $LABEL &); nohup sleep $LABEL >/dev/null 2>&1 & env -i setsid sleep $LABEL & "
    "trap '' TERM INT; echo ready; sleep $LABEL; sleep $LABEL"
)


def queue_of(census: Census) -> str:
    """A queue that nobody else has, not even another run of these tests at the same time."""
    return "killed" + census.label.replace(".", "")


@contextlib.contextmanager
def worker(
    census: Census, lock: Path, count: int, code: str = CODE, forks: str = ""
) -> Iterator[subprocess.Popen[bytes]]:
    """A process with Trio in it that runs programs."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, census.label, queue_of(census), str(lock), PATH, str(count), code, forks],
        stdout=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def lines(process: subprocess.Popen[bytes], word: bytes, count: int) -> list[int]:
    """The pids of ``count`` lines that begin with ``word``."""
    assert process.stdout is not None
    found: list[int] = []
    while len(found) < count:
        line = process.stdout.readline().split()
        assert line, "the worker ended"
        if line[0] == word:
            found.append(int(line[1]))
    return found


def is_free(lock: Path) -> bool:
    """Whether an exclusive flock can be had."""
    with lock.open("rb+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


async def test_programs_of_a_killed_worker_die_and_only_then_the_lock_is_free(census: Census, tmp_path: Path) -> None:
    """REC-6: nothing escapes, and recovery can wait for it."""
    lock = tmp_path / "programs.lock"
    with worker(census, lock, 3) as process:
        leaders = await trio.to_thread.run_sync(lines, process, b"ready", 3)
        guards = [parent_of(pid) for pid in leaders]
        assert not is_free(lock)
        process.kill()
        await trio.to_thread.run_sync(process.wait)

        def dead_when_free() -> bool:
            free = is_free(lock)
            if free:
                assert census.alive() == []
            return free

        await until(dead_when_free)
        await until(lambda: not any(is_alive(pid) for pid in guards))
    assert await sweep_queue(queue_of(census)) == []


async def test_a_fork_of_the_worker_that_lives_on_does_not_keep_its_programs_alive(
    census: Census, tmp_path: Path
) -> None:
    """REC-6: it holds the control socket open, but it is not the worker."""
    lock = tmp_path / "programs.lock"
    with worker(census, lock, 1, forks="forks") as process:
        [fork] = await trio.to_thread.run_sync(lines, process, b"fork", 1)
        [leader] = await trio.to_thread.run_sync(lines, process, b"ready", 1)
        try:
            process.kill()
            await until(lambda: not is_alive(leader))
            await until(lambda: is_free(lock))
            assert is_alive(fork)
        finally:
            os.kill(fork, signal.SIGKILL)
        await until(lambda: census.alive() == [])


async def test_the_end_of_the_control_socket_alone_ends_the_tree(census: Census) -> None:
    """REC-6: where no pidfd tells of the worker's end."""
    ours, theirs = socket.socketpair()
    frame = request(
        ["sh", "-c", "setsid sleep $LABEL & echo ready; sleep $LABEL"], census.env, "/tmp", [], new_marker("q")
    )
    with ours, theirs:
        guard = await trio.lowlevel.open_process(
            [sys.executable, "-I", "-S", str(GUARD), str(theirs.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        ours.sendall(frame)
        assert guard.stdout is not None
        assert await guard.stdout.receive_some() == b"ready\n"
        await until(lambda: len([line for line in census.alive() if line.split()[1] == "sleep"]) == 2)
    assert await guard.wait() == 0
    assert census.alive() == []
    await guard.stdout.aclose()


async def test_half_a_request_starts_nothing(census: Census, tmp_path: Path) -> None:
    """REC-6: a worker that dies while it asks."""
    frame = request(["touch", str(tmp_path / "started")], census.env, "/tmp", [], new_marker("q"))
    for size in (0, 3, 4, len(frame) - 1):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            guard = await trio.lowlevel.open_process(
                [sys.executable, "-I", "-S", str(GUARD), str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
            theirs.close()
            ours.sendall(frame[:size])
        assert await guard.wait() == 0
    ladder = [(int(signal.SIGCONT), 3600.0)]  # it could do its work before it is killed
    frame = request(["touch", str(tmp_path / "started")], census.env, "/tmp", ladder, new_marker("q"))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(frame)
        ours.close()  # whole, but its worker is gone before it is read
        guard = await trio.lowlevel.open_process(
            [sys.executable, "-I", "-S", str(GUARD), str(theirs.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        assert await guard.wait() == 0
    assert not (tmp_path / "started").exists()


async def test_a_worker_killed_while_it_starts_programs_leaves_none(census: Census, tmp_path: Path) -> None:
    """REC-6: at any moment of the start-up."""
    lock = tmp_path / "programs.lock"
    for wait_for in range(1, 6):
        with worker(census, lock, 6, code="setsid sleep $LABEL & echo ready; sleep $LABEL") as process:
            await trio.to_thread.run_sync(lines, process, b"ready", wait_for)  # the others are just being started
            process.kill()
            await until(lambda: is_free(lock))
            assert census.alive() == []


async def test_a_worker_and_its_guards_killed_together_leave_their_programs_to_the_sweep(
    census: Census, tmp_path: Path
) -> None:
    """REC-6: the next worker sweeps by the queue's marker."""
    lock = tmp_path / "programs.lock"
    with worker(census, lock, 2, code="setsid sleep $LABEL & trap '' TERM; echo ready; sleep $LABEL") as process:
        leaders = await trio.to_thread.run_sync(lines, process, b"ready", 2)
        guards = [parent_of(pid) for pid in leaders]
        process.send_signal(signal.SIGSTOP)
        for pid in guards:
            os.kill(pid, signal.SIGKILL)
        process.kill()
        await until(lambda: is_free(lock))
        assert census.alive() != []
        queue = queue_of(census)
        assert await sweep_queue(queue[:-1]) == []
        assert await sweep_queue(f"{queue}.0") == []
        assert len(await sweep_queue(queue)) >= 4
        assert census.alive() == []

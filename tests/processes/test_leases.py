"""Programs that live under a lease: whatever becomes of the process that started them, they are gone when it is over."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from concorde_trio.errors import ProgramNotStarted
from concorde_trio.processes.programs_lease import ProgramsLease
from concorde_trio.processes.runner import open_program
from concorde_trio.processes.start import GUARD, request
from concorde_trio.processes.sweep import new_marker
from tests.processes.census import PATH, Census, Seen, until

pytestmark = pytest.mark.slow

TREE = "setsid sleep $LABEL & (env -i setsid sleep $LABEL &); trap '' TERM INT; echo ready; sleep $LABEL; sleep $LABEL"

HOLDER = """
import sys, time, trio
from concorde_trio.processes.programs_lease import ProgramsLease
from concorde_trio.processes.runner import open_program
from concorde_trio.processes.sweep import new_marker

label, path, code, seconds = sys.argv[1:]
lease = ProgramsLease()

async def main():
    seen = trio.Event()
    def on_stdout(data):
        if b"ready" in data: seen.set()
    with lease.held():
        async with open_program(["sh", "-c", code], env={"PATH": path, "LABEL": label}, cwd="/tmp",
                                marker=new_marker("q"), on_stdout=on_stdout) as program:
            await seen.wait()
            print("ready", flush=True)
            line = sys.stdin.readline()  # blocks the loop: nothing here ends anything
            exit = await program.wait()
            print("told", exit.signal, flush=True)
    print("ended", program.ending.exit.signal, flush=True)

lease.renew(time.monotonic() + float(seconds))
trio.run(main)
"""


@contextlib.contextmanager
def holder(census: Census, seconds: float) -> Iterator[subprocess.Popen[bytes]]:
    """A process with Trio in it that runs one program under a lease of so many seconds."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, census.label, PATH, TREE, str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_the_tree_of_a_stopped_process_is_gone_when_its_lease_is_over(census: Census) -> None:
    """REC-6: while the process is stopped (SIGSTOP), by the guard's own clock; its going on later does no harm."""
    with holder(census, 2.5) as process:
        assert process.stdout is not None
        assert await trio.to_thread.run_sync(process.stdout.readline) == b"ready\n"
        process.send_signal(signal.SIGSTOP)
        await until(lambda: len(trees(census)) >= 3)
        await until(lambda: not trees(census))
        process.send_signal(signal.SIGCONT)
        told, _ = await trio.to_thread.run_sync(process.communicate, b"go on\n")
        assert told.splitlines() == [b"told 9", b"ended 9"]
        assert process.returncode == 0


def trees(census: Census) -> list[str]:
    """What the program started, without the process that holds the lease."""
    return [line for line in census.alive() if "programs_lease" not in line]


async def test_a_program_lives_on_while_its_lease_is_renewed_and_not_after(census: Census) -> None:
    """REC-6: each renewal reaches the guard, one that tells less than is known changes nothing."""
    lease = ProgramsLease()
    begun = time.monotonic()
    lease.renew(begun + 2.0)
    seen = Seen(b"ready")
    with lease.held():
        async with open_program(
            ["sh", "-c", TREE], env=census.env, cwd="/tmp", marker=new_marker("q"), on_stdout=seen
        ) as program:
            await seen.wait()
            lease.renew(begun + 2.6)
            lease.renew(begun + 0.1)
            exit = await program.wait()
            assert time.monotonic() >= begun + 2.6  # on the same clock as the guard's
            assert exit.signal == signal.SIGKILL
            lease.renew(begun + 3600)  # too late
            await until(lambda: census.alive() == [])
            assert program.ending is None  # nobody here has asked for the end


async def test_a_lease_begins_its_end_by_the_ladder_and_ends_what_was_left_running_too(census: Census) -> None:
    """REC-6: half a second is left to a program that heeds it; one may have ended long before, but for its background."""
    lease = ProgramsLease()
    lease.renew(time.monotonic() + 2.0)

    async def heeds() -> None:
        code = "setsid sleep $LABEL & trap 'echo bye; exit 7' TERM; echo ready; sleep $LABEL & wait"
        async with open_program(["bash", "-c", code], env=census.env, cwd="/tmp", marker=new_marker("q")) as program:
            exit = await program.wait()
            await until(lambda: census.alive() == [])
        assert (exit.code, program.stdout.text()) == (7, "ready\nbye\n")

    async def leaves() -> None:
        code = ["sh", "-c", "setsid sleep $LABEL & exit 3"]
        async with open_program(code, env=census.env, cwd="/tmp", marker=new_marker("q")) as program:
            assert (await program.wait()).code == 3
            assert census.alive() != []
            await until(lambda: census.alive() == [])

    with lease.held():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(heeds)
            nursery.start_soon(leaves)


async def test_nothing_is_started_under_a_lease_that_is_over(census: Census, tmp_path: Path) -> None:
    """REC-6: neither by the process, nor by a guard whose request came late."""
    lease = ProgramsLease()
    with lease.held(), pytest.raises(ProgramNotStarted, match="the lease of this process on its queue is over"):
        async with open_program(["true"], env=census.env, cwd="/tmp", marker=new_marker("q")):
            pytest.fail("it was started")
    late = request(["touch", str(tmp_path / "started")], census.env, "/tmp", [], new_marker("q"), time.monotonic())
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            guard = await trio.lowlevel.open_process(
                [sys.executable, "-I", "-S", str(GUARD), str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        ours.sendall(late)
        assert await guard.wait() == 0
        assert b"refused" in ours.recv(4096)
    assert not (tmp_path / "started").exists()


async def test_a_program_without_a_lease_lives_as_long_as_its_process(census: Census) -> None:
    """REC-6: a queue on one machine has no lease, and a lease that another task holds is none of its business."""
    lease = ProgramsLease()
    seen = Seen(b"ready")
    async with trio.open_nursery() as nursery:

        async def holds() -> None:
            with lease.held():
                await trio.sleep_forever()

        nursery.start_soon(holds)
        async with open_program(
            ["sh", "-c", "echo ready; read line; echo $line"],
            env=census.env,
            cwd="/tmp",
            marker=new_marker("q"),
            on_stdout=seen,
            stdin=b"still here\n",
        ) as program:
            await seen.wait()
            assert (await program.wait()).code == 0
            assert program.stdout.text() == "ready\nstill here\n"
        nursery.cancel_scope.cancel()

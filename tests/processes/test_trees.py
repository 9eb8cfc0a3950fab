"""Whole trees of processes, and their ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import trio

from concorde_trio.errors import ProgramError
from concorde_trio.processes.program import Program
from concorde_trio.processes.runner import open_program
from concorde_trio.processes.sweep import new_marker
from tests.processes.census import Census, Seen, is_alive, parent_of, python, until

pytestmark = pytest.mark.slow

LEAVE_BEHIND = {
    "background": "(sleep $LABEL &)",
    "setsid": "setsid sleep $LABEL & ",
    "nohup": "nohup sleep $LABEL >/dev/null 2>&1 &",
    "double_fork": "(setsid sh -c 'sleep $LABEL & sleep $LABEL &' &)",
    "only_stderr_held": "sleep $LABEL >/dev/null </dev/null &",
    "only_stdout_held": "sleep $LABEL 2>/dev/null </dev/null &",
    "hidden": "env -i setsid sleep $LABEL &",
    "hidden_deep": '(env -i setsid sh -c "sleep $LABEL & sleep $LABEL" &)',
    "stopped": "sh -c 'kill -STOP $$; sleep $LABEL' & ",
    "deaf": "sh -c \"trap '' TERM INT HUP QUIT; sleep $LABEL; sleep $LABEL\" & ",
    "respawning": "setsid sh -c 'while true; do sleep $LABEL; done' &",
}
"""A shell's ways to leave something running."""


def started(census: Census) -> bool:
    """Whether a sleep (or a stopped shell) of this test has been started."""
    return any("sleep" in line for line in census.alive())


@pytest.mark.parametrize("way", LEAVE_BEHIND)
async def test_what_a_program_left_running_is_ended_with_it_and_listed(census: Census, way: str) -> None:
    """REC-6, SES-8: the end of the leader is the end of the command, whatever holds its pipes."""
    with trio.fail_after(60):
        async with open_program(
            ["sh", "-c", f"{LEAVE_BEHIND[way]}\necho said; echo complained >&2; exit 3"],
            env=census.env,
            cwd="/tmp",
            marker=new_marker("q"),
        ) as program:
            exit = await program.wait()
            assert exit.code == 3
            assert program.stdout.text() == "said\n"
            assert program.stderr.text() == "complained\n"
            assert exit.running
    assert program.ending is not None
    assert program.ending.swept_count >= 1
    assert len(program.ending.swept) == program.ending.swept_count
    assert {one.name for one in program.ending.swept} <= {"sleep", "sh", "setsid", "env", "nohup"}
    assert census.alive() == []


@pytest.mark.parametrize("way", LEAVE_BEHIND)
async def test_a_cancelled_program_and_all_it_started_is_ended(census: Census, way: str) -> None:
    """REC-6, RUN-6: whatever the outcome, and descendants in sessions of their own."""
    with trio.fail_after(60), trio.CancelScope() as scope:
        seen = Seen(b"ready")
        async with open_program(
            ["sh", "-c", f"{LEAVE_BEHIND[way]}\necho ready; sleep $LABEL"],
            env=census.env,
            cwd="/tmp",
            marker=new_marker("q"),
            on_stdout=seen,
        ):
            await seen.wait()
            await until(lambda: started(census))
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert census.alive() == []


async def test_a_program_that_ignores_the_ladder_is_killed_after_it(census: Census) -> None:
    """REC-6: the ladder, then SIGKILL of everything."""
    seen = Seen(b"ready")
    code = "trap 'echo got int' INT; trap 'echo got term' TERM; echo ready; while true; do sleep $LABEL & wait; done"
    async with open_program(
        ["bash", "-c", code],
        env=census.env,
        cwd="/tmp",
        marker=new_marker("q"),
        on_stdout=seen,
        ladder=[(signal.SIGINT, 0.5), (signal.SIGTERM, 0.5)],
    ) as program:
        await seen.wait()
        program.stop()
        program.stop()
        exit = await program.wait()
    assert exit.signal == signal.SIGKILL
    assert str(exit) == "killed by SIGKILL"
    assert program.stdout.text().splitlines() == ["ready", "got int", "got term"]


async def test_a_program_that_heeds_the_first_step_gets_no_other(census: Census) -> None:
    """REC-6: terminate, then kill after a grace; what ends in the grace is not killed."""
    seen = Seen(b"ready")
    code = "trap 'echo bye; exit 7' TERM; echo ready; sleep $LABEL & wait"
    async with open_program(
        ["bash", "-c", code], env=census.env, cwd="/tmp", marker=new_marker("q"), on_stdout=seen, ladder=[(15, 3600.0)]
    ) as program:
        await seen.wait()
        program.stop()
        exit = await program.wait()
    assert (exit.code, program.stdout.text()) == (7, "ready\nbye\n")


async def test_a_stopped_program_can_be_ended(census: Census) -> None:
    """REC-6: a program in state T acts on no SIGTERM unless it is continued."""
    seen = Seen(b"ready")
    async with open_program(
        ["sh", "-c", "trap 'exit 9' TERM; echo ready; kill -STOP $$; sleep $LABEL"],
        env=census.env,
        cwd="/tmp",
        marker=new_marker("q"),
        on_stdout=seen,
        ladder=[(signal.SIGTERM, 3600.0)],
    ) as program:
        await seen.wait()
        pid = program.pid
        assert pid is not None
        await until(lambda: Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T")
        program.stop()
        assert (await program.wait()).code == 9


FORK_BOMB = """
import os, sys, time
def burst(depth):
    for _ in range(4):
        if os.fork() == 0:
            if depth % 2: os.setsid()
            if depth: burst(depth - 1)
            else: os.write(1, b"deep\\n")
            while True:
                try:
                    if os.fork() == 0: time.sleep(0.02); os._exit(0)
                    os.wait()
                except OSError: pass
burst(2)
time.sleep(600)
"""


async def test_a_modest_fork_bomb_is_ended(census: Census) -> None:
    """REC-6: killed until nothing is found, faster than it grows."""
    seen = Seen(b"deep\n" * 10)
    async with open_program(
        python(FORK_BOMB), env=census.env, cwd="/tmp", marker=new_marker("q"), on_stdout=seen, ladder=[]
    ) as program:
        await seen.wait()
    assert program.ending is not None
    assert program.ending.swept_count >= 10
    assert len(program.ending.swept) <= 50
    assert census.alive() == []


async def test_many_programs_start_and_end_at_once(census: Census) -> None:
    """REC-6: forty at once, each with something left behind."""
    endings = []

    async def one() -> None:
        async with open_program(
            ["sh", "-c", "setsid sleep $LABEL & echo done"], env=census.env, cwd="/tmp", marker=new_marker("q")
        ) as program:
            await program.wait()
        endings.append((program.stdout.text(), program.ending and program.ending.swept_count))

    async with trio.open_nursery() as nursery:
        for _ in range(40):
            nursery.start_soon(one)
    assert endings == [("done\n", 1)] * 40


async def test_adopted_orphans_that_end_are_reaped_while_the_program_works(census: Census) -> None:
    """REC-6: a long run piles up no zombies."""
    seen = Seen(b"ready")
    async with open_program(
        ["bash", "-c", "for i in {1..30}; do (true & ) ; done; echo ready; sleep $LABEL"],
        env=census.env,
        cwd="/tmp",
        marker=new_marker("q"),
        on_stdout=seen,
    ) as program:
        await seen.wait()
        assert program.pid is not None
        guard = parent_of(program.pid)
        await until(lambda: len(_children(guard)) == 1)


def _children(pid: int) -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and parent_of(int(name)) == pid]


async def test_a_guard_that_is_killed_leaves_the_rest_to_the_worker(census: Census) -> None:
    """REC-6: what carries the marker is swept."""
    seen = Seen(b"ready")
    async with open_program(
        ["sh", "-c", "setsid sleep $LABEL & (sleep $LABEL &); echo ready; sleep $LABEL"],
        env=census.env,
        cwd="/tmp",
        marker=new_marker("q"),
        on_stdout=seen,
    ) as program:
        await seen.wait()
        await until(lambda: len([line for line in census.alive() if line.split()[1] == "sleep"]) == 3)
        assert program.pid is not None
        os.kill(parent_of(program.pid), signal.SIGKILL)
        with pytest.raises(ProgramError, match="its guard was killed from outside"):
            await program.wait()
    assert program.ending is not None
    assert program.ending.exit is None
    assert program.ending.swept_count == 4
    assert census.alive() == []


async def test_a_guard_that_is_told_to_end_ends_its_tree(census: Census) -> None:
    """REC-6: a service manager's SIGTERM to everything leaves nothing; Ctrl-C's SIGINT is not the guard's business."""
    seen = Seen(b"ready")
    async with open_program(
        ["sh", "-c", "echo ready; sleep $LABEL"], env=census.env, cwd="/tmp", marker=new_marker("q"), on_stdout=seen
    ) as program:
        await seen.wait()
        assert program.pid is not None
        guard = parent_of(program.pid)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
            os.kill(guard, number)
        assert is_alive(program.pid)
        os.kill(guard, signal.SIGTERM)
        assert (await program.wait()).signal == signal.SIGTERM


async def test_programs_are_in_no_group_of_ours(census: Census) -> None:
    """REC-6: Ctrl-C in our terminal reaches neither guard nor program."""
    seen = Seen(b"ready")
    async with open_program(
        ["sh", "-c", "echo ready; sleep $LABEL"], env=census.env, cwd="/tmp", marker=new_marker("q"), on_stdout=seen
    ) as program:
        await seen.wait()
        assert program.pid is not None
        guard = parent_of(program.pid)
        assert os.getsid(program.pid) == os.getpgid(program.pid) == program.pid
        assert os.getsid(guard) == os.getpgid(guard) == guard
        assert parent_of(guard) == os.getpid()


async def test_an_error_in_the_block_ends_the_tree_and_travels_as_it_is(census: Census) -> None:
    """RUN-3: no group around it."""
    program: Program | None = None
    with pytest.raises(LookupError, match="mine") as caught:
        async with open_program(
            ["sh", "-c", "sleep $LABEL"], env=census.env, cwd="/tmp", marker=new_marker("q")
        ) as program:
            raise LookupError("mine")
    assert type(caught.value) is LookupError
    assert program is not None
    assert program.ending is not None
    assert census.alive() == []


async def test_an_error_of_on_stdout_ends_the_block_and_leaves_it(census: Census) -> None:
    """REC-6: a reader that breaks leaves no process."""

    def broken(data: bytes) -> None:
        raise LookupError(f"cannot read {data!r}")

    with pytest.raises(LookupError, match="cannot read b'hello"):
        async with open_program(
            ["sh", "-c", "echo hello; sleep $LABEL"],
            env=census.env,
            cwd="/tmp",
            marker=new_marker("q"),
            on_stdout=broken,
        ) as program:
            await program.wait()
    assert census.alive() == []


async def test_a_guard_that_hangs_is_given_up_and_its_tree_ended_by_the_worker(
    census: Census, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-6: the end of a block is bounded."""
    monkeypatch.setattr("concorde_trio.processes.program.PATIENCE", 0.3)
    seen = Seen(b"ready")
    async with open_program(
        ["sh", "-c", "setsid sleep $LABEL & echo ready; sleep $LABEL"],
        env=census.env,
        cwd="/tmp",
        marker=new_marker("q"),
        on_stdout=seen,
        ladder=[],
    ) as program:
        await seen.wait()
        assert program.pid is not None
        os.kill(parent_of(program.pid), signal.SIGSTOP)
    assert census.alive() == []
    assert census.guards() == []


async def test_a_tree_that_cannot_be_ended_is_an_error_and_its_guard_stays(
    census: Census, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-6: the programs lock is held while anything of it lives."""
    monkeypatch.setattr("concorde_trio.processes.program.PATIENCE", 0.3)
    monkeypatch.setattr("concorde_trio.processes.guard.kill", lambda pid, started: None)
    seen = Seen(b"ready")
    guard = 0
    with pytest.raises(
        ProgramError, match=r"still there .* though killed: .*sh \(.* The guard \d+ of the program 'sh'"
    ):
        async with open_program(
            ["sh", "-c", "echo ready; sleep $LABEL"],
            env=census.env,
            cwd="/tmp",
            marker=new_marker("q"),
            on_stdout=seen,
            ladder=[],
        ) as program:
            await seen.wait()
            assert program.pid is not None
            guard = parent_of(program.pid)
            os.kill(guard, signal.SIGSTOP)
    assert is_alive(guard)
    os.kill(guard, signal.SIGCONT)
    assert await program._guarded.process.wait() == 0
    assert census.alive() == []

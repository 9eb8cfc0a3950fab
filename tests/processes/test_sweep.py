"""The sweep by the marker in the environment."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from concorde_trio.errors import ProgramError, UsageError
from concorde_trio.processes import guard
from concorde_trio.processes.sweep import new_marker, sweep_marker, sweep_queue
from tests.processes.census import Census, is_alive, python

pytestmark = pytest.mark.slow


def sleeper(census: Census, marker: str) -> subprocess.Popen[bytes]:
    """A process with a marker."""
    return subprocess.Popen(["sleep", census.label], env={"A": "b", "CONCORDE_RUN_ID": marker})


def test_a_marker_is_the_queue_and_a_random_number() -> None:
    """REC-6: no two runs have the same."""
    assert re.fullmatch(r"a\.b\.[0-9a-f]{32}", new_marker("a.b"))
    assert new_marker("q") != new_marker("q")
    for queue in ("", "a b", "a\n", "é", "x" * 201):
        with pytest.raises(UsageError, match="printable ASCII"):
            new_marker(queue)


async def test_a_queue_is_swept_and_one_with_a_similar_name_is_not(census: Census) -> None:
    """REC-6: another worker's programs are another's."""
    queue = f"q-{census.label}"
    markers = [
        new_marker(queue),
        new_marker(f"{queue}.1"),
        new_marker(f"x{queue}"),
        f"{queue}.short",
        f"{new_marker(queue)}0",
    ]
    processes = [sleeper(census, marker) for marker in markers]
    try:
        swept = await sweep_queue(queue)
        assert [(one.pid, one.name) for one in swept] == [(processes[0].pid, "sleep")]
        assert [is_alive(process.pid) for process in processes] == [False, True, True, True, True]
        assert str(swept[0]) == f"sleep ({processes[0].pid})"
        await sweep_marker(markers[1])
        assert not is_alive(processes[1].pid)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_sweep_never_ends_the_sweeper(census: Census) -> None:
    """REC-6: a worker that is itself a run of another queue has a marker too."""
    queue = f"q-{census.label}"
    code = (
        "import os, sys, trio\n"
        "from concorde_trio.processes.sweep import sweep_queue\n"
        "print(len(trio.run(sweep_queue, sys.argv[1])), os.getpid())"
    )
    done = subprocess.run(
        [*python(code), queue],
        env={**os.environ, "CONCORDE_RUN_ID": new_marker(queue)},
        capture_output=True,
        check=True,
    )
    assert done.stdout.split()[0] == b"0"


async def test_what_cannot_be_ended_is_named(census: Census, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-6: recovery does not go on while something of a run may live."""
    monkeypatch.setattr(guard, "kill", lambda pid, started: None)
    marker = new_marker("q")
    with sleeper(census, marker) as process:
        try:
            with pytest.raises(ProgramError, match=rf"still there after 0.1 s, though killed: sleep \({process.pid}\)"):
                await sweep_marker(marker, time_limit=0.1)
        finally:
            process.kill()


def test_a_pid_that_was_given_to_another_process_is_not_killed(census: Census) -> None:
    """REC-6: the start time tells them apart."""
    with subprocess.Popen(["sleep", census.label]) as process:
        try:
            [(pid, started)] = [one for one in guard.descendants(os.getpid()) if one[0] == process.pid]
            guard.kill(pid, started - 1)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.3)
            guard.kill(pid, started)
            assert process.wait() == -9
            guard.kill(pid, started)
        finally:
            process.kill()


def test_a_process_whose_parent_ended_while_we_looked_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-6: a scan of the process table is no snapshot; an inconsistent one is made again."""
    first = {1: (0, 10, True), 7: (1, 11, True), 9: (8, 13, True)}  # 8, child of 7 and parent of 9, is gone by now
    then = {1: (0, 10, True), 7: (1, 11, True), 9: (7, 13, True)}
    tables = iter([first, then])
    now: dict[int, tuple[int, int, bool]] = {}

    def pids() -> list[int]:
        now.clear()
        now.update(next(tables))
        return list(now)

    monkeypatch.setattr(guard, "_pids", pids)
    monkeypatch.setattr(guard, "_stat", now.get)
    assert guard.descendants(1) == [(7, 11), (9, 13)]

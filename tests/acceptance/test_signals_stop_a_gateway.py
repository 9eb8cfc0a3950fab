"""A gateway in a process of its own, stopped as people and service managers stop one."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("gateway_program.py")


@contextmanager
def served(database: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(PROGRAM), str(database)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        read_to(process, "RunStarted")
        yield process
    finally:
        process.kill()
        process.communicate()


def read_to(process: subprocess.Popen[str], wanted: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == wanted:
            return
    raise AssertionError(f"the gateway ended with {process.wait()} before it said {wanted}: {process.stderr.read()}")  # type: ignore[union-attr]


def states(database: Path) -> list[tuple[str, str | None]]:
    rows = sqlite3.connect(database)
    try:
        return rows.execute("select state, error from runs order by position").fetchall()
    finally:
        rows.close()


@pytest.mark.slow
@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT], ids=lambda asked: asked.name)
def test_the_first_signal_drains_a_second_parks_a_third_cancels(tmp_path: Path, asked: signal.Signals) -> None:
    """STP-4: each later stop is stricter; what waits is parked, what runs is cancelled and written down."""
    database = tmp_path / "queue.db"
    with served(database) as process:
        for mode in ("drain", "park", "cancel"):
            process.send_signal(asked)
            read_to(process, f"WorkerStopping {mode}")
        read_to(process, "WorkerStopped")
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert states(database) == [("cancelled", "the worker was stopped"), ("pending", None)]


@pytest.mark.slow
def test_what_was_killed_is_failed_and_what_waited_runs_at_the_next_start(tmp_path: Path) -> None:
    """REC-2, REC-3: after SIGKILL the run that had started is failed, and the one behind it starts, with no one's help."""
    database = tmp_path / "queue.db"
    with served(database) as process:
        process.kill()
        process.wait(30)
    assert [state for state, _ in states(database)] == ["running", "pending"]
    with served(database):
        assert states(database)[:2] == [
            ("failed", "the worker stopped while it ran; it is not run again"),
            ("running", None),
        ]

"""A cancel at any step of a program's life leaves no process and no file descriptor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from concorde_trio.processes.runner import open_program
from concorde_trio.processes.sweep import new_marker
from tests.processes.census import Census

pytestmark = pytest.mark.slow


class CancelAtStep(trio.abc.Instrument):
    """Cancels ``scope`` before the step of this number, of any task but Trio's own and the test's outer ones."""

    def __init__(self, step: int, scope: trio.CancelScope) -> None:
        self._left = step
        self._scope = scope

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._left -= 1
        if self._left == 0:
            self._scope.cancel("at this very step")


async def life(census: Census, lock: Path) -> None:
    """From start to end, with something left running, a prompt that nobody reads, and output."""
    async with open_program(
        ["sh", "-c", "setsid sleep $LABEL & (sleep $LABEL &) ; echo said; exit 1"],
        env=census.env,
        cwd="/tmp",
        marker=new_marker("q"),
        stdin=b"x" * 200_000,
        programs_lock=lock,
        ladder=[(15, 0.2)],
    ) as program:
        await program.wait()


async def test_a_cancel_at_every_step_leaves_no_process(census: Census, tmp_path: Path) -> None:
    """REC-6: start-up is no exception."""
    await life(census, tmp_path / "lock")
    descriptors = len(os.listdir("/proc/self/fd"))
    cancelled = 0
    for step in range(1, 400):
        scope = trio.CancelScope()
        instrument = CancelAtStep(step, scope)
        with scope:
            trio.lowlevel.add_instrument(instrument)
            try:
                await life(census, tmp_path / "lock")
            finally:
                trio.lowlevel.remove_instrument(instrument)
        assert census.alive() == []
        assert census.guards() == []
        assert len(os.listdir("/proc/self/fd")) == descriptors
        if not scope.cancelled_caught and not scope.cancel_called:
            break
        cancelled += 1
    else:
        raise AssertionError("it takes more steps than are tried")
    assert cancelled > 20

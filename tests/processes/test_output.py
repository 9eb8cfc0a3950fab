"""Output of any size, and input that nobody wants."""

from __future__ import annotations

import resource

import pytest
import trio

from concorde_trio.processes.capture import Capture
from concorde_trio.processes.runner import open_program
from concorde_trio.processes.sweep import new_marker
from tests.processes.census import Census, Seen

pytestmark = pytest.mark.slow


async def test_a_hundred_megabytes_are_drained_and_few_kept(census: Census) -> None:
    """REC-6: both streams are bounded and drained to the end."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    counted = 0

    def count(data: bytes) -> None:
        nonlocal counted
        counted += len(data)

    async with open_program(
        ["sh", "-c", "head -c 50000000 /dev/zero >&2 & head -c 100000000 /dev/zero; wait; echo end"],
        env=census.env,
        cwd="/tmp",
        marker=new_marker("q"),
        on_stdout=count,
        stdout=Capture(10, 4),
    ) as program:
        exit = await program.wait()
    assert exit.code == 0
    assert counted == program.stdout.total == 100_000_004
    assert program.stderr.total == 50_000_000
    assert program.stdout.tail == b"end\n"
    assert len(program.stderr.head + program.stderr.tail) == 65536
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KiB


@pytest.mark.parametrize(
    "code", ["exec 0<&-; sleep 0.1", "exit 0", "setsid sleep $LABEL <&0 & exit 0", "head -c 10 >/dev/null"]
)
async def test_a_long_prompt_to_a_program_that_does_not_read_it_hangs_nobody(census: Census, code: str) -> None:
    """RUN-4: a broken pipe while it is fed is the program's own affair."""
    with trio.fail_after(60):
        async with open_program(
            ["sh", "-c", code], env=census.env, cwd="/tmp", marker=new_marker("q"), stdin=b"x" * 1_500_000
        ) as program:
            assert (await program.wait()).code == 0


async def test_a_long_prompt_is_fed_while_output_comes(census: Census) -> None:
    """RUN-4: no deadlock when both pipes are full."""
    async with open_program(
        ["cat"], env=census.env, cwd="/tmp", marker=new_marker("q"), stdin=b"x" * 5_000_000
    ) as program:
        assert (await program.wait()).code == 0
    assert program.stdout.total == 5_000_000


async def test_a_background_flood_does_not_keep_the_command_from_ending(census: Census) -> None:
    """SES-8: it returns with what was printed, however much comes after."""
    with trio.fail_after(60):
        async with open_program(
            ["sh", "-c", "echo first; yes $LABEL & exit 4"], env=census.env, cwd="/tmp", marker=new_marker("q")
        ) as program:
            assert (await program.wait()).code == 4
            assert program.stdout.head.startswith(b"first\n")


async def test_a_cancelled_program_may_still_say_its_last_words(census: Census) -> None:
    """REC-6: its output is drained while it is being stopped, or it would hang on a full pipe."""
    code = "trap 'head -c 3000000 /dev/zero; echo bye; exit 0' TERM; echo ready; sleep $LABEL & wait"
    seen = Seen(b"ready")
    with trio.fail_after(60), trio.CancelScope() as scope:
        async with open_program(
            ["bash", "-c", code],
            env=census.env,
            cwd="/tmp",
            marker=new_marker("q"),
            on_stdout=seen,
            ladder=[(15, 3600.0)],
        ) as program:
            await seen.wait()
            scope.cancel()
            await program.wait()
    assert program.stdout.total == 3_000_010
    assert program.ending is not None
    assert program.ending.exit is not None
    assert program.ending.exit.code == 0

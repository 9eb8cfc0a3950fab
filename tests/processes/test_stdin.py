"""Programs that are fed while they run."""

from __future__ import annotations

import pytest
import trio

from concorde_trio.processes.runner import open_program
from concorde_trio.processes.sweep import new_marker
from tests.processes.census import Census, Seen

pytestmark = pytest.mark.slow


async def test_a_channel_feeds_a_program_piece_by_piece(census: Census) -> None:
    """Each piece is there before the next is sent; closing the channel is the end of its input."""
    feed, stdin = trio.open_memory_channel[bytes](0)
    first = Seen(b"first\n")
    async with open_program(
        ["cat"], env=census.env, cwd="/", marker=new_marker("tests"), stdin=stdin, on_stdout=first
    ) as program:
        await feed.send(b"first\n")
        await first.wait()
        await feed.send(b"x" * 1_000_000)
        await feed.aclose()
        assert str(await program.wait()) == "exit status 0"
    assert program.stdout.total == 1_000_006


async def test_whoever_feeds_a_program_hears_that_it_reads_no_more(census: Census) -> None:
    """The channel's sender gets BrokenResourceError instead of waiting for ever."""
    feed, stdin = trio.open_memory_channel[bytes](0)
    async with open_program(["true"], env=census.env, cwd="/", marker=new_marker("tests"), stdin=stdin) as program:
        await program.wait()
        with trio.fail_after(30), pytest.raises(trio.BrokenResourceError):
            while True:
                await feed.send(b"anybody?\n")

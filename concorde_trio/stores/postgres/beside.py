"""A task beside a block: it lives as long as the block, and its failure ends the block.

The law: the exception of the block, or of the task, goes on as it is and in no group. The task's counts more, since the
block was cancelled for it, and what it raised then is a consequence.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def beside(task: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run ``task`` while the block runs. If it raises, the block is cancelled, and what it raised is raised here."""
    failure: Exception | None = None
    raised: BaseException | None = None
    block = trio.CancelScope()

    async def run() -> None:
        nonlocal failure
        try:
            await task()
        except Exception as error:  # noqa: BLE001  Raised again, in the task of the block.
            failure = error
            block.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        try:
            with block:
                yield
        except trio.Cancelled:
            raise
        except BaseException as error:  # noqa: BLE001, ASYNC103  Raised again below, outside the nursery and its group.
            raised = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure from raised
    if raised is not None:
        raise raised

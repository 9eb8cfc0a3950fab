"""What a tool is called with, for tests of tools: the end of the block is the end of the run."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import trio

from concorde_trio.failures import alone
from concorde_trio.sessions.tool import Leftover, ToolContext

_numbers = itertools.count(1)


@attrs.define
class ListedWork:
    """A leftover as a tool listed it. ``is_over``: it was seen to end. ``result``: what it gave then."""

    leftover: Leftover
    is_over: bool = False
    result: str | None = None
    over: trio.Event = attrs.Factory(trio.Event)

    def ended(self, result: str | None = None, /) -> None:
        """What the tool calls."""
        if not self.is_over:
            self.is_over, self.result = True, result
            self.over.set()


@attrs.frozen(kw_only=True)
class FakeToolContext(ToolContext):
    """A ToolContext that remembers. ``leftovers``: what was listed, in order."""

    leftovers: list[ListedWork]

    def another(self, **changes: Any) -> FakeToolContext:
        """The same for another call: its own ``call_id``, and what ``changes`` says."""
        return attrs.evolve(self, **{"call_id": f"call-{next(_numbers)}", **changes})


@contextlib.asynccontextmanager
async def tool_context(
    *,
    session: str = "test",
    env: Mapping[str, str] | None = None,
    outputs: Path | None = None,
    queue: str = "tests",
    programs_lock: Path | None = None,
) -> AsyncIterator[FakeToolContext]:
    """A context to call a tool with: ``result = await my_tool.call({"city": "Rome"}, context)``.

    What the tool keeps (``ToolContext.keep``) is cancelled when the block is left, as at the end of a run; what it raises
    is raised. ``outputs``: a folder (default: a temporary one, gone with the block).
    """
    leftovers: list[ListedWork] = []

    def left(leftover: Leftover) -> ListedWork:
        leftovers.append(work := ListedWork(leftover))
        return work

    with contextlib.ExitStack() as stack:
        if outputs is None:
            outputs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="concorde-outputs-")))
        try:
            async with trio.open_nursery() as nursery:
                yield FakeToolContext(
                    session=session,
                    call_id=f"call-{next(_numbers)}",
                    env=dict(env or {}),
                    outputs=outputs,
                    queue=queue,
                    programs_lock=programs_lock,
                    left=left,
                    keep=nursery.start_soon,
                    leftovers=leftovers,
                )
                nursery.cancel_scope.cancel("the run is over")
        except BaseExceptionGroup as group:
            error = alone(group)
            if error is None:
                raise
            raise error from error.__cause__  # the nursery is no business of the test's

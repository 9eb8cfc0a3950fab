"""What a tool's program lives under does not depend on who first asked for its session."""

from __future__ import annotations

import trio
import trio.testing

from concorde_trio import MemoryStore, SessionHarness, tool
from concorde_trio._sansio.model_events import CallStarted, ModelRequest, ReplyEnd, StopReason, TextDelta
from concorde_trio.messages import Role
from concorde_trio.models.scripted import Script, ScriptedModel
from concorde_trio.processes.programs_lease import ProgramsLease, current_lease


def answer(request: ModelRequest) -> Script:
    """Call the tool once, then say so."""
    if request.messages[-1].role is Role.TOOL:
        return [(0, TextDelta("done")), (0, ReplyEnd())]
    return [(0, CallStarted(0, "c1", "look")), (0, ReplyEnd(StopReason.CALLS))]


async def test_a_call_is_under_the_lease_of_its_harness_whoever_opened_the_session(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """REC-6: a request or a command may open it, and what it starts then must end with the lease all the same."""
    found: list[ProgramsLease | None] = []

    @tool
    async def look() -> str:
        """Look which lease there is."""
        found.append(current_lease())
        return "seen"

    mine, other = ProgramsLease(), ProgramsLease()
    harness = SessionHarness(store=MemoryStore(), model=ScriptedModel(answer), tools=[look])

    async def serve(task_status: trio.TaskStatus[None]) -> None:
        with mine.held():
            async with harness.open():
                task_status.started()
                await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        await nursery.start(serve)
        await harness.turn("ann", "from outside of any lease")
        with other.held():
            await harness.turn("bob", "from under another one")
        assert current_lease() is None
        nursery.cancel_scope.cancel()
    assert found == [mine, mine]

"""Sessions of a fleet: one loop in a run at a time, wherever that is, and nothing that was said is lost with a process."""

from __future__ import annotations

import pytest
import trio

from concorde_trio import FunctionRuntime, InProcessRuntime, ReplyEnd, RunOutcome, RunPrompt, TextDelta
from concorde_trio._sansio.model_events import ModelRequest
from concorde_trio._sansio.session_changes import LinkInputs
from concorde_trio.errors import SessionElsewhere
from concorde_trio.messages import InputState, Role
from concorde_trio.records import SignalState
from concorde_trio.signals.runtime import executing
from concorde_trio.signals.store import SignalFilter
from tests.fleet.members import SOON, Fleet, settled, until
from tests.stores.postgres_server import PostgresServer, postgres

pytestmark = pytest.mark.slow

__all__ = ["postgres"]


@pytest.fixture
def fleet(postgres: PostgresServer) -> Fleet:
    """A queue of its own."""
    return Fleet(postgres, postgres.place())


class Echo:
    """A model that says who it is, and how much it was told before; it waits where the fleet holds the session."""

    context_window = None

    def __init__(self, fleet: Fleet, name: str) -> None:
        self.name = name
        self._fleet = fleet

    async def stream(self, request: ModelRequest, on_event: object, /) -> None:
        """One reply."""
        said = str(request.messages[-1].text)
        self._fleet.started.append((self.name, said))
        if said in self._fleet.go_on:
            await self._fleet.go_on[said].wait()
        on_event(TextDelta(f"{self.name}: {len(request.messages)}"))  # type: ignore[operator]
        on_event(ReplyEnd())  # type: ignore[operator]


def where(fleet: Fleet, said: str) -> str:
    """The member whose model was told this, none yet if empty."""
    return next((member for member, text in fleet.started if text == said), "")


async def delivered(runtime: InProcessRuntime, input_id: str) -> None:
    """Wait until an input is in the transcript."""
    with trio.fail_after(SOON):
        while True:
            stored = await runtime.sessions.store.input(input_id)
            if stored is not None and stored.state is not InputState.QUEUED:
                assert stored.state is InputState.DELIVERED
                return
            await trio.sleep(0.01)


async def test_a_session_goes_on_wherever_its_next_run_is(fleet: Fleet) -> None:
    """SES-0, SES-17, SES-20: input is sent to any member, runs are taken by either, and each sees all that was said before."""
    runtimes = {name: InProcessRuntime(model=Echo(fleet, name)) for name in ("a", "b")}
    async with (
        fleet.member("a", runtime=runtimes["a"], capacity=1),
        fleet.member("b", runtime=runtimes["b"], capacity=1),
    ):
        for turn in range(4):
            # Whoever takes this has no room for the other.
            busy = f"busy {turn}"
            gate = fleet.held(busy)
            await runtimes["a"].sessions.submit("one", busy)
            await until(lambda said=busy: where(fleet, said) != "")  # type: ignore[misc]
            await runtimes["ab"[turn % 2]].sessions.submit("ann", f"hello {turn}", id=f"ann{turn}")
            await delivered(runtimes["a"], f"ann{turn}")
            await until(lambda said=f"hello {turn}": where(fleet, said) != "")  # type: ignore[misc]
            assert where(fleet, f"hello {turn}") != where(fleet, busy)
            gate.set()
            await until(lambda: fleet.sql("select count(*) from {}.signals where settled_at is null") == [(0,)])
        messages = await runtimes["a"].sessions.store.messages("ann", limit=50)
    assert [message.role for message in messages] == [Role.USER, Role.ASSISTANT] * 4
    assert [message.text for message in messages if message.role is Role.USER] == [f"hello {turn}" for turn in range(4)]
    assert [str(message.text).partition(": ")[2] for message in messages if message.role is Role.ASSISTANT] == [
        "1",
        "3",
        "5",
        "7",
    ]


async def test_what_a_dead_member_had_queued_runs_elsewhere_and_its_prompt_does_not(fleet: Fleet) -> None:
    """SES-20, SES-21, REC-2: nothing that was accepted is lost; the run that was cut is closed, and never run again."""
    runtimes = {name: InProcessRuntime(model=Echo(fleet, name)) for name in ("leader", "other")}
    fleet.held("busy")
    fleet.held("long")
    async with fleet.member("leader", runtime=runtimes["leader"], capacity=1) as leader:
        await runtimes["leader"].sessions.submit("x", "busy")
        await until(lambda: ("leader", "busy") in fleet.started)
        async with fleet.member("other", runtime=runtimes["other"], capacity=1):
            await runtimes["leader"].sessions.submit("ann", "long")
            await until(lambda: ("other", "long") in fleet.started)
            with pytest.raises(SessionElsewhere):
                await runtimes["leader"].sessions.interrupt("ann")
            await runtimes["other"].sessions.submit("ann", "queued there", id="there")
            await runtimes["leader"].sessions.submit("ann", "sent here", id="here")
            await fleet.end_lease(await fleet.executing("ann"))
            await until(lambda: fleet.sql("select count(*) from {}.runs where state = 'failed'") == [(1,)])
            fleet.go_on["busy"].set()
            await delivered(runtimes["leader"], "there")
            await delivered(runtimes["leader"], "here")
            assert ("leader", "long") not in fleet.started
            failed = await leader.store.signals(SignalFilter(state=SignalState.FAILED))
            assert len(failed) == 1
            fleet.go_on["long"].set()
    told = [said for _, said in fleet.started if said != "busy"]
    # The one that waited in the loop came first, and joins the run of the other (SES-10).
    assert told[0] == "long"
    assert told[1].splitlines()[1:] == ["queued there", "---", "sent here"]
    assert len(told) == 2


async def test_what_cannot_be_stored_with_an_end_fails_that_run_alone(fleet: Fleet) -> None:
    """REC-5: the member goes on, and so does whatever it runs beside."""

    async def work(prompt: RunPrompt) -> RunOutcome:
        if prompt.session == "bad":
            here = executing.get()
            assert here is not None
            here.with_end.append(LinkInputs(("no such input",), "no such signal"))
        return RunOutcome.ok("done")

    async with fleet.member("a", runtime=FunctionRuntime(work)) as worker:
        bad, good = await worker.emit("errand", "bad"), await worker.emit("errand", "good")
        failed = await settled(worker, bad)
        assert failed.state is SignalState.FAILED and "cannot be stored" in (failed.error or "")
        assert (await settled(worker, good)).state is SignalState.DONE

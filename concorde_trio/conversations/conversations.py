"""The sessions of one worker, while it works: what is routed, what was left by a crash, what a stop means for them (SES-20).

The law: an input is, at every commit, linked to a signal that is not settled, or settled, or in a session's queue: with a
run in flight, or with a later input that is linked, whose run takes both. What a crash left otherwise is put right before
anything is claimed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import trio

from concorde_trio.conversations.fleet_door import FleetDoor
from concorde_trio.conversations.hearing import hear
from concorde_trio.conversations.run_turns import handed_over, run_turns
from concorde_trio.conversations.session_input import SESSION_INPUT, signal_for
from concorde_trio.errors import WrongState
from concorde_trio.events import Event, Pruned, RunEnded, SignalSettled, WorkerStopping
from concorde_trio.messages import InputState
from concorde_trio.records import RunOutcome, RunPrompt, SignalState
from concorde_trio.sessions.harness import SessionHarness
from concorde_trio.sessions.local_host import Surroundings
from concorde_trio.sessions.loop import SessionLoop
from concorde_trio.sessions.output_folders import remove_outputs
from concorde_trio.signals.runtime import RuntimeContext, executing
from concorde_trio.signals.store import SignalStore

CUT = "the run was stopped"
"""Why a run is cut, as its calls' results say, unless the worker stops."""


class Conversations:
    """Joins a harness with the worker that opened its runtime."""

    def __init__(self, harness: SessionHarness, *, now: Callable[[], float] = time.time) -> None:
        self.harness = harness
        self._now = now
        self._stopping = False
        self._fleet: FleetDoor | None = None
        self._cut_by = CUT
        self._handing: dict[str, SessionLoop] | None = None  # by the run that leaves something, until its end is stored

    @asynccontextmanager
    async def open(self, context: RuntimeContext, surroundings: Surroundings) -> AsyncIterator[None]:
        """Serve the sessions of this worker's store until the block is left."""
        self._stopping, self._cut_by = False, CUT
        fleet = FleetDoor(self.harness.store, context.store) if context.fleet and context.store is not None else None
        self._fleet = fleet
        async with (
            self.harness.serve(signal_for=signal_for, surroundings=surroundings, publish=context.publish, fleet=fleet),
            trio.open_nursery() as nursery,
        ):
            if context.store is not None and fleet is None:
                await self._recover(context.store)
            self._handing = None if context.bus is None else {}
            if context.bus is not None:
                context.bus.call(partial(self._note, nursery, context.store, surroundings.outputs))
            yield
            nursery.cancel_scope.cancel("the runtime is closed")

    async def _recover(self, store: SignalStore) -> None:
        """Every session with an unsettled input is loaded: that routes what was not; then what waits for nothing is settled."""
        for name in dict.fromkeys(each.session for each in await self.harness.store.unsettled_inputs()):
            loop = await self.harness.loop(name)
            for signal_id in {each.signal_id for each in loop.machine.linked.values()}:
                record = await store.signal(signal_id)
                if record is None or record.state in (SignalState.DONE, SignalState.FAILED):
                    await loop.ask(partial(loop.machine.signal_settled, signal_id))

    def _note(self, nursery: trio.Nursery, store: SignalStore | None, outputs: Path, event: Event) -> None:
        if isinstance(event, SignalSettled) and event.kind == SESSION_INPUT:
            if self._fleet is not None:
                nursery.start_soon(self._fleet.signal_over, event.signal_id, self._now())
                return
            known = False
            for loop in self.harness.loops.values():
                if any(each.signal_id == event.signal_id for each in loop.machine.linked.values()):
                    known = True
                    loop.tell(partial(loop.machine.signal_settled, event.signal_id))
            if not known and store is not None:
                nursery.start_soon(self._settle_unheard, store, event.signal_id)
        elif isinstance(event, RunEnded):
            if self._handing:
                handed_over(self._handing, event.run_id)
        elif isinstance(event, Pruned) and event.sessions:
            nursery.start_soon(remove_outputs, outputs, self.harness.store)
        elif isinstance(event, WorkerStopping):
            self._stopping = True
            if event.mode == "cancel":
                self._cut_by = "the worker was stopped"
            for loop in self.harness.loops.values():
                if loop.machine.run is not None:
                    loop.tell(loop.machine.no_more_turns)

    async def _settle_unheard(self, store: SignalStore, signal_id: str) -> None:
        """The signal is over; if its input is one that no loop here has heard of, and no run took it, it is cancelled."""
        record = await store.signal(signal_id)
        payload = None if record is None else record.payload
        input_id = payload.get("input") if isinstance(payload, dict) else None
        stored = await self.harness.store.input(input_id) if isinstance(input_id, str) else None
        if stored is None or stored.state is not InputState.QUEUED or stored.signal_id != signal_id:
            return
        with suppress(WrongState):  # closed meanwhile: the next start settles it
            loop = await self.harness.loop(stored.session)
            machine = loop.machine
            await loop.ask(partial(machine.signal_settled, signal_id), before=partial(hear, self.harness.store, loop))

    async def settle_left(self, sessions: Collection[str] | None, but: Collection[str]) -> None:
        """In a fleet, for its leader: put right what a process left that is gone; see ``FleetDoor.settle_left``."""
        if self._fleet is not None:
            await self._fleet.settle_left(sessions, but, self._now())

    async def run(self, prompt: RunPrompt) -> RunOutcome:
        """Execute a run."""
        return await run_turns(
            self.harness,
            prompt,
            executing.get(),
            stopping=lambda: self._stopping,
            cut_by=lambda: self._cut_by,
            handing=self._handing,
            now=self._now,
        )

"""Playing a scenario through the real worker, on a virtual clock.

The law of this module: it decides nothing. It emits when the scenario says so and listens; the order of what happens
at one instant is the worker's (LCK-5), which waits until everything of that instant has been said.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import trio
import trio.testing

from concorde_trio.errors import InternalError
from concorde_trio.events import Event
from concorde_trio.signals.worker import SignalWorker, open_worker
from concorde_trio.simulate.actors import Script, ScriptedRuntime
from concorde_trio.simulate.running import run_virtually
from concorde_trio.simulate.scenario import SignalScenario
from concorde_trio.simulate.ticks import Ticks
from concorde_trio.simulate.trace import Trace
from concorde_trio.stores.memory import MemoryStore

STOP_GRACE = 10.0
"""Seconds that a cancelling stop waits for what it cancelled (STP-3)."""


def play_scenario(scenario: SignalScenario) -> dict[str, Any]:
    """Play it to its end; the result. Raises InternalError if it does not end in the time it can take."""
    return run_virtually(partial(_play, scenario))


async def _play(scenario: SignalScenario) -> dict[str, Any]:
    limits = [STOP_GRACE, *(prompt.time_limit for prompt in scenario.prompts() if prompt.time_limit is not None)]
    ticks = Ticks.for_times(scenario.times(), limits=limits)
    trace = Trace(scenario)
    script = Script.of(scenario, ticks, trace)
    bound = _Bound(scenario, trace)
    options: dict[str, Any] = {
        "claim_ahead": scenario.claim_ahead,
        "max_running": scenario.max_running,
        "handle_time_limit": None,
        "post_time_limit": None,
        "stop_grace": ticks.of(STOP_GRACE),
        "sweep": None,  # nothing can be missed here, and a sweep would only make steps
        "settle": bound.settle,
        "wall_clock": trio.current_time,
    }
    over = trio.Event()

    def note(event: Event) -> None:
        trace.note(event)
        if not trace.open:
            over.set()

    async with open_worker(MemoryStore(), ScriptedRuntime(script), script.handlers(), **options) as worker:
        worker.bus.call(note)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bound.watch, ticks)
            nursery.start_soon(_emit, worker, script)
            nursery.start_soon(_stopped, worker, over)
            if scenario.stop is not None:
                nursery.start_soon(_stop, worker, ticks.of(scenario.stop.at), scenario.stop.mode)
            if trace.open:
                await over.wait()
            nursery.cancel_scope.cancel()
    return trace.result(ticks)


async def _emit(worker: SignalWorker, script: Script) -> None:
    """Every signal at its time; those of one instant in file order, before the worker looks."""
    order = sorted(enumerate(script.scenario.signals), key=lambda numbered: numbered[1].at)
    for number, signal in order:
        await trio.sleep_until(script.ticks.of(signal.at))
        script.trace.emitted(signal.id, await worker.emit(script.kinds[number], number))


async def _stop(worker: SignalWorker, at: float, mode: str) -> None:
    await trio.sleep_until(at)
    worker.stop(mode)


async def _stopped(worker: SignalWorker, over: trio.Event) -> None:
    """A stopped worker settles nothing more."""
    await worker.stopped.wait()
    over.set()


class _Bound:
    """Lets no fault of ours hang a play: it may take the time of all its parts one after the other, and no more."""

    def __init__(self, scenario: SignalScenario, trace: Trace) -> None:
        self._scenario = scenario
        self._trace = trace
        parts = len(scenario.signals) + sum(1 for _ in scenario.prompts())
        self._steps = 1_000 + 100 * parts

    async def settle(self) -> None:
        """What the worker awaits before it looks: until everything of this instant has been said."""
        self._steps -= 1
        if self._steps < 0:
            raise self._error("steps")
        await trio.testing.wait_all_tasks_blocked()

    async def watch(self, ticks: Ticks) -> None:
        """Raise once the virtual clock passes what the scenario can take."""
        await trio.sleep_until(ticks.of(sum(self._scenario.times()) + 2 * STOP_GRACE + 1))
        raise self._error("seconds")

    def _error(self, what: str) -> InternalError:
        left = ", ".join(repr(name) for name in self._trace.unsettled()[:5])
        return InternalError(
            f"the play did not end in the {what} it can take; not settled: {left or 'nothing'}. "
            "This is a fault of concorde_trio: please report it with the scenario"
        )

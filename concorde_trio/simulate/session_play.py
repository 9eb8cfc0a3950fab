"""Playing a scenario of one session through the real harness, on a virtual clock.

The law of this module: it decides nothing. It gives each part of the scenario its cue and listens; it is over when no cue
is left and the session waits for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import attrs
import trio
import trio.testing

from concorde_trio._sansio.session_terms import SessionSettings
from concorde_trio.errors import InternalError
from concorde_trio.messages import Message
from concorde_trio.sessions.harness import SessionHarness
from concorde_trio.sessions.host import Host
from concorde_trio.sessions.local_host import LocalHost, Surroundings
from concorde_trio.simulate.running import run_virtually
from concorde_trio.simulate.session_actors import NOWHERE, RemoteHost, ScenarioModel, scenario_tool
from concorde_trio.simulate.session_cues import SUMMARY, Cues
from concorde_trio.simulate.session_script import TIMES, SessionScenario
from concorde_trio.simulate.session_trace import SessionTrace
from concorde_trio.simulate.ticks import Ticks
from concorde_trio.stores.memory import MemoryStore

NAME = "session"
_BEATS = 20_000
"""Heartbeats that a play may have at most: nothing that can be seen depends on one (SES-4)."""
_NEVER = 9e8
_PAGE = 1_000


def play_session(scenario: SessionScenario) -> dict[str, Any]:
    """Play it to its end; the result. Raises InternalError if it does not end in the time it can take."""
    return run_virtually(partial(_play, scenario))


async def _play(scenario: SessionScenario) -> dict[str, Any]:
    ticks = Ticks.for_times(scenario.times(), limits=scenario.limits())
    trace, cues = SessionTrace(ticks), Cues(ticks)
    model = ScenarioModel("model", scenario.model, cues, ticks)
    summary_model = ScenarioModel("summary model", scenario.summaries, cues, ticks, who=SUMMARY)
    order = {call.id: place for place, call in reversed(list(enumerate(scenario.calls())))}
    tools = [scenario_tool(name, terms, scenario.tools, order, cues, ticks) for name, terms in scenario.toolset.items()]
    store = MemoryStore()
    harness = SessionHarness(
        store=store,
        model=model,
        summary_model=summary_model,
        tools=tools,
        settings=_settings(scenario, ticks),
        outputs=NOWHERE,
        publish=trace.note,
        wall_clock=trio.current_time,
        jitter=lambda: 1.0,
        make_host=partial(_host, model, summary_model, scenario.remote),
    )
    for place, given in enumerate(scenario.inputs):
        act: Callable[[], Awaitable[object]] = partial(harness.interrupt, NAME)
        if given.text is not None:
            act = partial(_submit, harness, trace, place, given.text)
        cues.at(given.at, place, act)
    async with harness.open(), trio.open_nursery() as nursery:
        nursery.start_soon(_bound, ticks.of(scenario.longest()))
        await _give_cues(harness, cues, steps=1_000 + 50 * scenario.parts())
        loop = harness.loaded(NAME)
        status = "waiting_for_input" if loop is None else loop.machine.status
        locked = loop is not None and loop.machine.books.lock.is_locked()
        result = trace.result(await _messages(store), status=status, locked=locked)
        nursery.cancel_scope.cancel()
    faults = [*trace.faults, *(each.wrong for each in (model, summary_model) if each.wrong)]
    if faults:
        raise _fault(f"a rule was broken in the play: {'; '.join(faults)}")
    return result


async def _submit(harness: SessionHarness, trace: SessionTrace, place: int, text: str) -> None:
    receipt = await harness.submit(NAME, text, id=f"input-{place}")
    if not receipt.accepted:
        trace.rejected.append(place)


async def _give_cues(harness: SessionHarness, cues: Cues, *, steps: int) -> None:
    """Give one cue after the other, each once everything of the last one has happened, until nothing is left."""
    for _ in range(steps):
        await trio.testing.wait_all_tasks_blocked()
        loop = harness.loaded(NAME)
        timer = math.inf if loop is None else loop.machine.next_due()
        due = min(cues.next(), timer)
        if due == math.inf:
            return
        if due > trio.current_time():
            await trio.sleep_until(due)
        elif cues.next() <= due:
            await cues.give()
    raise _fault("the play did not end in the steps it can take")


async def _bound(until: float) -> None:
    """Let no fault of ours hang a play."""
    await trio.sleep_until(until)
    raise _fault("the play did not end in the seconds it can take")


def _fault(what: str) -> InternalError:
    return InternalError(f"{what}. This is a fault of concorde_trio: please report it with the scenario")


def _settings(scenario: SessionScenario, ticks: Ticks) -> SessionSettings:
    """The scenario's, in ticks. The session stays in memory, and is looked at no oftener than a long play can afford."""
    settings = scenario.settings
    times: dict[str, Any] = {name: _of(ticks, getattr(settings, name)) for name in TIMES}
    beat = max(settings.heartbeat, scenario.longest() / _BEATS)
    return attrs.evolve(settings, heartbeat=float(math.ceil(min(ticks.of(beat), _NEVER))), unload_after=_NEVER, **times)


def _of(ticks: Ticks, seconds: float | None) -> float | None:
    return None if seconds is None else ticks.of(seconds)


def _host(
    model: ScenarioModel, summary_model: ScenarioModel, remote: bool, nursery: trio.Nursery, harness: SessionHarness
) -> Host:
    """The harness's own, but that it writes no long output to a file; with ``remote``, one that stops nothing."""
    here = LocalHost(
        nursery,
        model=model,
        summary_model=summary_model,
        tools=harness.tools,
        surroundings=Surroundings(env={}, outputs=NOWHERE, queue=NAME),
        keep=lambda session, function: None,
        keep_over=None,
        wall_clock=trio.current_time,
    )
    return RemoteHost(here) if remote else here


async def _messages(store: MemoryStore) -> list[Message]:
    """All of the session's messages, in order."""
    found: list[Message] = []
    while page := await store.messages(NAME, after=found[-1].seq if found else 0, limit=_PAGE):
        found += page
    return found

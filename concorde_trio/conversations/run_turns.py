"""A run of the worker as turns of a session (SES-21).

The law: the run keeps its locks until its session is idle and its queue empty, and its outcome is that of the turn that took
its prompt. However it ends, also cancelled, the turn has ended, nothing that it started is left, and what is still queued
becomes signals in the commit that ends the run.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import trio

from concorde_trio._sansio.session_books import RunTerms
from concorde_trio._sansio.session_terms import TurnResult
from concorde_trio.conversations.hearing import hear, hear_all
from concorde_trio.errors import WrongState
from concorde_trio.messages import Input
from concorde_trio.records import RunOutcome, RunPrompt, RunState, Usage
from concorde_trio.sessions.harness import SessionHarness
from concorde_trio.sessions.loop import SessionLoop, TurnWaiter
from concorde_trio.sessions.store import SessionStore
from concorde_trio.signals.runtime import Execution

LEFT_RUNNING = 15.0
"""Seconds in which what a run's tools left running must have ended with it."""
HAND_OVER = 10.0
"""Seconds in which a loop must have handed over what is queued: one commit."""


async def run_turns(
    harness: SessionHarness,
    prompt: RunPrompt,
    execution: Execution | None,
    *,
    stopping: Callable[[], bool],
    cut_by: Callable[[], str],
    handing: dict[str, SessionLoop] | None,
    now: Callable[[], float],
) -> RunOutcome:
    """Execute a run. ``stopping``: whether the worker takes nothing new; ``cut_by``: why a run is cut now, in words.

    ``handing`` gets its loop, by the run's id, if it leaves something (None: nobody hears of ends): ``handed_over`` is to be called once its end is stored.
    """
    loop = await harness.loop_for_run(prompt.session)
    machine = loop.machine
    given = Input(
        id=f"prompt_{uuid.uuid4().hex if execution is None else execution.run_id}", text=prompt.text, at=now()
    )
    terms: RunTerms | None = None

    def begin() -> TurnWaiter:
        nonlocal terms
        terms = machine.begin_run(prompt.usage_limit)
        taken = machine.run_prompt(given, None if execution is None else execution.signal_id)
        if stopping():
            machine.no_more_turns()
        return loop.wait_for_turn([each.id for each in taken])

    try:
        with trio.CancelScope(shield=True):  # one commit: afterwards it is known whether the run has begun
            waiter = await loop.ask(begin, before=partial(hear_all, harness.store, loop))
        await waiter.done.wait()
        await loop.wait_until(lambda: machine.idle)
    finally:
        if terms is not None:
            with trio.move_on_after(harness.settings.stop_wait + LEFT_RUNNING, shield=True):
                await _end(loop, execution, harness.store, cut_by(), handing)
    if waiter.result is None:
        raise WrongState(f"session {prompt.session!r} was closed before the turn of its run ended")
    assert terms is not None
    return _outcome(waiter.result, terms.usage)


async def _end(
    loop: SessionLoop,
    execution: Execution | None,
    store: SessionStore,
    reason: str,
    handing: dict[str, SessionLoop] | None,
) -> None:
    """End the turn if it is still being taken, and all that was left running; then hand over what is queued."""
    machine = loop.machine
    try:
        if not machine.idle:

            def interrupt() -> None:
                machine.no_more_turns()
                machine.interrupt(reason)

            with suppress(WrongState):  # its loop is over, and with that everything it did
                await loop.ask(interrupt)
                await loop.wait_until(lambda: machine.idle)
        machine.no_more_turns()  # it is idle at this instant; what comes from now on gets a run of its own
        loop.kept.stop()
        await loop.kept.gone()
    finally:
        # Also when what was left running would not end in time: no input may stay where no run comes for it.
        with trio.move_on_after(HAND_OVER, shield=True):
            await _hand_over(loop, execution, store, handing)


async def _hand_over(
    loop: SessionLoop, execution: Execution | None, store: SessionStore, handing: dict[str, SessionLoop] | None
) -> None:
    """What is queued becomes signals (SES-21): by the loop, so that it is stored before the commit that links it."""
    machine = loop.machine

    async def look() -> None:
        if len(machine.books.queue):
            await hear(store, loop)

    def end() -> None:
        changes = machine.end_run()
        if execution is not None:
            execution.with_end += changes
            if changes and handing is not None:
                machine.handing_over, handing[execution.run_id] = True, loop
                execution.stored.append(partial(handed_over, handing, execution.run_id))

    try:
        with suppress(WrongState):  # the loop is over; the next one routes what it had
            await loop.ask(end, before=look)
    finally:
        machine.run = None  # whatever kept the loop from it: the next run of this session must be able to begin


def handed_over(handing: dict[str, SessionLoop], run_id: str) -> None:
    """The end of a run is stored: what waited for that, in the loop that left something, goes on."""
    loop = handing.pop(run_id, None)
    if loop is not None:
        loop.tell(loop.machine.handed_over)


def _outcome(turn: TurnResult, usage: Usage) -> RunOutcome:
    """As the turn ended that took its prompt; what all its turns used (SES-16)."""
    if turn.outcome == "ok":
        return RunOutcome.ok(turn.text, usage=usage)
    if turn.outcome == "limited":
        return RunOutcome.limited(turn.error or "", text=turn.text, usage=usage)
    if turn.outcome == "failed":
        return RunOutcome.failed(turn.error or "", text=turn.text, usage=usage)
    return RunOutcome(
        state=RunState.CANCELLED, error=turn.error or "its turn was interrupted", text=turn.text, usage=usage
    )

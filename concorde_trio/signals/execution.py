"""One run, executed: its Runtime is called, and whatever it does gives an outcome (RUN-3, RUN-5).

The law: nothing is written here, so that nothing can be half done when it is cancelled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from concorde_trio import spans
from concorde_trio.failures import describe, not_cancelled, travels
from concorde_trio.log_context import forget_run, note_run
from concorde_trio.records import Run, RunOutcome, RunState
from concorde_trio.signals.outcomes import outcome_of
from concorde_trio.signals.runtime import Execution, Runtime, executing
from concorde_trio.signals.stopper import Stopper
from concorde_trio.watchdog import named_work

logger = logging.getLogger("concorde_trio.worker")


@named_work(lambda here: f"run {here['run'].id}")
async def execute(
    runtime: Runtime, run: Run, kind: str, stopper: Stopper, log_failure: Callable[[str, BaseException], None]
) -> tuple[RunOutcome, Execution]:
    """The outcome of a run, and what its Runtime wants with its end. In a task of its own; what travels is raised.

    ``kind``: of its signal. ``log_failure``: keeps the traceback of what the Runtime raised.
    """
    outcome: object = None
    raised: BaseException | None = None
    execution = Execution(run_id=run.id, signal_id=run.signal_id)
    executing.set(execution)  # of this task alone
    note_run(run.id, run.signal_id, run.session)
    span = spans.opened(lambda tracer: tracer.open_run(run.id, run.signal_id, run.session, kind))
    try:
        with stopper.scope:
            outcome = await runtime.run(run.run_prompt)
    except BaseException as error:  # noqa: ASYNC103  A cancellation does travel.
        if travels(error):
            tell_end(f"run {run.id}", error)
            raise
        raised = error  # It fails this run alone (RUN-3).
        log_failure(f"run {run.id}", error)
    forget_run(run.id, run.session)
    ended = outcome_of(outcome, raised, stopper)
    span.end(None if ended.state is RunState.DONE else ended.state.value)
    return ended, execution  # noqa: ASYNC104  What travels was raised.


def tell_end(what: str, error: BaseException) -> None:
    """What travels ends the worker, so it is said where it came from."""
    cause = not_cancelled(error)
    if cause is not None and not isinstance(cause, GeneratorExit):
        logger.error("%s raised %s, which stops the worker", what, describe(error))

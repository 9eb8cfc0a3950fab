"""What the end of a run counts as, whatever its Runtime gave back (RUN-5, RUN-6).

The law: what leaves this module can be stored. A Runtime that returns rubbish fails its own run, and not the commit
that the ends of other runs share (REC-5).
"""

from __future__ import annotations

import trio

from concorde_trio.failures import describe
from concorde_trio.records import TEXT_LIMIT, RunOutcome, RunState, Usage, storable_text, usage_fault
from concorde_trio.signals.stopper import Stopper

ENDED = (RunState.DONE, RunState.FAILED, RunState.LIMITED, RunState.CANCELLED)


def outcome_of(returned: object, raised: BaseException | None, stopper: Stopper) -> RunOutcome:
    """The outcome of a run whose Runtime returned, or raised, or was stopped.

    One that was returned in the instant of the stop counts (RUN-6). After that the stop does, with what was returned
    or raised kept beside it.
    """
    if raised is not None:
        outcome = RunOutcome.failed(describe(raised))
    else:
        fault = _fault(returned)
        outcome = RunOutcome.failed(fault) if fault is not None else _storable(returned)
        if fault is None and (stopper.reason is None or trio.current_time() <= stopper.since):
            return outcome
    if stopper.reason is None:
        return outcome
    error = stopper.reason
    if raised is not None:
        error += f" (and while it was stopped: {describe(raised)})"
    return RunOutcome(state=stopper.state, error=error, text=outcome.text, usage=outcome.usage)


def _fault(returned: object) -> str | None:
    """Why this is no outcome; None when it is one."""
    if not isinstance(returned, RunOutcome):
        return _expected(type(returned).__name__)
    if not isinstance(returned.state, RunState):
        return _expected(f"a RunOutcome whose state is {type(returned.state).__name__}, no RunState")
    if returned.state not in ENDED:
        return _expected(f"a RunOutcome whose state is {returned.state}, which is no end")
    if returned.error is not None and not isinstance(returned.error, str):
        return _expected(f"a RunOutcome whose error is {type(returned.error).__name__}, no string")
    if returned.text is not None and not isinstance(returned.text, str):
        return _expected(f"a RunOutcome whose text is {type(returned.text).__name__}, no string")
    return None if returned.usage is None else _usage_fault(returned.usage)


def _usage_fault(usage: object) -> str | None:
    if not isinstance(usage, Usage):
        return _expected(f"a RunOutcome whose usage is {type(usage).__name__}, no Usage")
    fault = usage_fault(usage)
    return None if fault is None else _expected(fault)


def _kept(text: str) -> str:
    """An answer as far as it is kept: its beginning and its end."""
    if len(text) <= TEXT_LIMIT:
        return text
    half = TEXT_LIMIT // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"


def _expected(what: str) -> str:
    return storable_text(
        f"its runtime returned {what}; expected a RunOutcome: RunOutcome.ok(), .failed() or .limited()"
    )


def _storable(returned: object) -> RunOutcome:
    assert isinstance(returned, RunOutcome)
    error = None
    if returned.state is not RunState.DONE:
        error = storable_text(returned.error or "").strip()
        error = error or f"the run is {returned.state}, and its runtime gave no reason"
    text = None if returned.text is None else storable_text(_kept(returned.text))
    return RunOutcome(state=returned.state, error=error, text=text, usage=returned.usage)

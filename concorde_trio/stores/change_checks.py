"""What a change must say, whatever rows it meets: the checks that need no row, for every store.

The law: these are the same in all stores, and a change that breaks one writes nothing. What a change needs of the
row that it meets is the business of each store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from concorde_trio._sansio.changes import EndRun, QueueRuns, SettleSignal
from concorde_trio._sansio.lifecycle import (
    RUN_COLUMNS,
    RUN_ENDED,
    RUN_TRANSITIONS,
    SIGNAL_COLUMNS,
    SIGNAL_SETTLED,
)
from concorde_trio.errors import InvalidValue, StoreError
from concorde_trio.records import NewSignal, RunState

END_FROM: Mapping[RunState, frozenset[RunState]] = {
    ended: frozenset(before for before, after in RUN_TRANSITIONS.items() if ended in after) for ended in RUN_ENDED
}
"""From which states a run can end in which (RUN-2)."""


def check_settle(change: SettleSignal) -> None:
    """StoreError unless it settles, with an error exactly when it failed (SIG-4)."""
    if change.state not in SIGNAL_SETTLED:
        raise StoreError(f"a signal is settled as {_names(SIGNAL_SETTLED)}, not as {change.state!s}")
    _check_error("signal", change.signal_id, change.state, change.error, SIGNAL_COLUMNS[change.state].get("error"))


def check_end(change: EndRun) -> None:
    """StoreError unless it ends the run, with an error when that state has one (RUN-2)."""
    if change.state not in RUN_ENDED:
        raise StoreError(f"a run ends as {_names(RUN_ENDED)}, not as {change.state!s}")
    _check_error("run", change.run_id, change.state, change.error, RUN_COLUMNS[change.state].get("error"))


def check_queue(change: QueueRuns, last_position: int) -> int:
    """The highest position given out after it; StoreError if a run is not a new, pending run of this signal."""
    for run in change.runs:
        if run.signal_id != change.signal_id or run.state is not RunState.PENDING:
            raise StoreError(f"signal {change.signal_id} can queue its own pending runs only, not {run!r:.300}")
        if (run.started_at, run.ended_at, run.error, run.text, run.usage) != (None,) * 5:
            raise StoreError(f"a run that is queued has not started yet, but this has: {run!r:.300}")
        if run.position <= last_position:
            raise StoreError(
                f"run {run.id} has position {run.position}, but {last_position} was given out already; "
                "each run needs a higher one than all before it"
            )
        last_position = run.position
    if len({run.index for run in change.runs}) != len(change.runs):
        raise StoreError(f"two runs of signal {change.signal_id} have the same index")
    return last_position


def check_payloads(signals: Sequence[NewSignal], most: int | None) -> None:
    """InvalidValue if the JSON text of a payload has more bytes than a store takes (SIG-5); None: it takes all."""
    for new in signals if most is not None else ():
        check_size(new.payload, most)


def check_size(payload: str, most: int | None) -> None:
    """The same of one payload's text."""
    if most is not None and (size := len(payload.encode())) > most:
        raise InvalidValue(
            f"payload is {size:,} bytes of JSON, at most {most:,} are allowed in this store; "
            "keep the large part elsewhere and write its name here",
            place="payload",
        )


def _check_error(what: str, name: str, state: str, error: str | None, wanted: bool | None) -> None:
    if error == "" or (wanted is not None and (error is not None) != wanted):
        needs = {True: "a non-empty one", False: "none", None: "a non-empty one or none"}[wanted]
        raise StoreError(f"{what} {name} is to become {state}, with {error!r} as its error; it needs {needs}")


def _names(states: frozenset[RunState] | frozenset[object]) -> str:
    return " or ".join(sorted(str(state) for state in states))

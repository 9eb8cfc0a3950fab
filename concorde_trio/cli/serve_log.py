"""What ``serve`` logs of its worker: a line for each start and end of a run, and what a stop still waits for.

The law: ids, names, states and errors, which come masked (TAG-4); no payload and no prompt. It is called in the
worker's own task, so it reads nothing and waits for nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from concorde_trio import events
from concorde_trio.cli.show import first_line, lasting, visible
from concorde_trio.signals.views import LockView

LONGEST = 300
"""Characters of an error that are logged; all of it is in the queue."""
STOPPING = {
    "drain": "stopping: what is claimed reaches its end first{left}; ask again to park what waits",
    "park": "stopping: only what runs reaches its end{left}, what waits stays stored; ask again to cancel",
    "cancel": "stopping: what runs is cancelled{left}",
}
"""What is said of a stop, by its mode (STP-4)."""


class Told:
    """Logs events. ``locks``: the worker's, from which whoever asks for a stop hears what it still waits for."""

    def __init__(self, logger: logging.Logger, locks: Callable[[], list[LockView]]) -> None:
        self._logger = logger
        self._locks = locks
        self._started: dict[str, float] = {}

    def __call__(self, event: events.Event) -> None:
        """Take the next event."""
        match event:
            case events.SignalClaimed():
                about = {"signal_id": event.signal_id}
                self._logger.debug("signal %s (%s) is claimed", event.signal_id, visible(event.kind), extra=about)
            case events.RunStarted():
                self._started[event.run_id] = event.at
                self._logger.info(
                    "run %s starts in session %s", event.run_id, visible(event.session), extra=_about(event)
                )
            case events.RunEnded():
                self._run_ended(event)
            case events.SignalSettled():
                about = {"signal_id": event.signal_id}
                self._logger.debug("signal %s is %s", event.signal_id, event.state.value, extra=about)
            case events.WorkerStopping():
                self._logger.info("%s", STOPPING[event.mode].format(left=self._left(event.mode)))

    def _run_ended(self, event: events.RunEnded) -> None:
        started = self._started.pop(event.run_id, None)
        after = "" if started is None else f" after {lasting(event.at - started)}"
        error = visible(first_line(event.error))
        why = f": {error[:LONGEST]}{'...' if len(error) > LONGEST else ''}" if error else ""
        self._logger.info("run %s is %s%s%s", event.run_id, event.state.value, after, why, extra=_about(event))

    def _left(self, mode: str) -> str:
        states = {run.run_id: run.state for lock in self._locks() for run in (*lock.holders, *lock.waiting)}
        count = Counter(states.values())
        parts = [f"{count['running']} running"]
        if mode == "drain":
            parts.append(f"{count['waiting'] + count['ready']} waiting")
        if mode != "cancel" and count["held"]:
            parts.append(f"{count['held']} held for their signals' post phases")
        return f" ({', '.join(parts)})"


def _about(event: events.RunStarted | events.RunEnded) -> dict[str, str]:
    """What a line is about, for logs that are read by machine."""
    return {"run_id": event.run_id, "signal_id": event.signal_id, "session": event.session}

"""What becomes of each errand, from the worker's events: what the table and the lines of the demo show.

The law: it is told of things and shows them; nothing is decided by it, and the household is not checked by it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection

import attrs

from concorde_trio import events
from concorde_trio.demo.errands import Errand, Message
from concorde_trio.signals.views import WaitView


@attrs.define(kw_only=True)
class Row:
    """One errand. ``state``: queued, running, held (it has ended and keeps its locks), then done, failed, limited or
    cancelled. Times are wall-clock seconds."""

    message: Message
    errand: Errand
    run_id: str | None = None
    state: str = "sent"
    outcome: str = ""
    error: str | None = None
    queued: float | None = None
    started: float | None = None
    ended: float | None = None

    @property
    def lasted(self) -> float:
        """Seconds from its start to its end, or to now."""
        if self.started is None:
            return 0.0
        return (time.time() if self.ended is None else self.ended) - self.started


class Board:
    """All errands that were sent, in that order.

    ``why``: the worker's, for who waits for whom. ``holding``: the kinds whose handlers have a post phase. ``tell`` gets a
    row and some words about it whenever something happened.
    """

    def __init__(
        self, why: Callable[[str], WaitView | None], holding: Collection[str], tell: Callable[[Row, str], None]
    ) -> None:
        self.rows: list[Row] = []
        self.posts: dict[str, tuple[float, float | None]] = {}
        self._why = why
        self._holding = holding
        self._tell = tell
        self._of_signal: dict[str, list[Row]] = {}
        self._of_run: dict[str, Row] = {}
        self._early: dict[str, list[events.Event]] = defaultdict(list)

    def sent(self, message: Message, signal_id: str) -> None:
        """A message was sent, and this is its signal."""
        rows = [Row(message=message, errand=errand) for errand in message.errands]
        self.rows += rows
        self._of_signal[signal_id] = rows
        self._tell(rows[0], f'writes: "{message.about}"')
        for event in self._early.pop(signal_id, ()):
            self.take(event)

    def take(self, event: events.Event) -> None:
        """The next event. The worker may be faster than the answer that gives a message's signal its id."""
        signal_id = getattr(event, "signal_id", None)
        if signal_id is None:
            return
        rows = self._of_signal.get(signal_id)
        if rows is None:
            self._early[signal_id].append(event)
            return
        match event:
            case events.RunQueued():
                row = next(row for row in rows if row.run_id is None)
                row.run_id, row.state, row.queued = event.run_id, "queued", event.at
                self._of_run[event.run_id] = row
                if waits := self.waits(row):
                    self._tell(row, waits)
            case events.RunStarted():
                row = self._of_run[event.run_id]
                row.state, row.started = "running", event.at
                self._tell(row, "starts")
            case events.RunStopping():
                self._tell(self._of_run[event.run_id], "is told to stop")
            case events.RunEnded():
                row = self._of_run[event.run_id]
                row.state = row.outcome = event.state.value
                row.ended, row.error = event.at, event.error
                self._tell(row, f"{self.ending(row)} ({row.lasted:.1f} s)" if event.started else self.ending(row))
                if row.message.kind in self._holding:
                    row.state = "held"
            case events.PostStarted():
                self.posts[signal_id] = (event.at, None)
                self._tell(rows[0], "goes into the books")
            case events.PostEnded():
                self.posts[signal_id] = (self.posts[signal_id][0], event.at)
            case events.SignalSettled():
                for row in rows:
                    if not row.outcome:  # there were no runs
                        row.outcome, row.error = event.state.value, event.error
                    row.state = row.outcome

    def waits(self, row: Row) -> str:
        """For whom it waits, and on what; "" when it waits for nobody."""
        view = None if row.run_id is None else self._why(row.run_id)
        if view is None or not view.edges:
            return ""
        shared: dict[str, list[str]] = {}
        for edge in view.edges:
            blocker = self._of_run.get(edge.blocker.run_id)
            whom = "somebody" if blocker is None else str(blocker.errand.number)
            shared.setdefault(whom, []).append("session" if edge.space == "session" else edge.name)
        return "waits for " + ", ".join(f"{whom} ({', '.join(names)})" for whom, names in shared.items())

    def ending(self, row: Row) -> str:
        """How it ended, in a few words."""
        said = short_error(row.error)
        return row.outcome + (f": {said}" if said else "")


def short_error(error: str | None) -> str:
    """An error without the path of the program, and without what a person at the table knows already."""
    if error is None:
        return ""
    said = error.partition(" failed: ")[2] if error.startswith("the program ") else error
    said = (said or error).removesuffix(" (exit status 1)").removesuffix("; the program was stopped")
    return " ".join(said.removeprefix("usage limit reached: ").split())

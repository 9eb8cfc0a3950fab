"""What becomes of each errand, from the worker's events: what the table and the lines of the demo show.

The law: it is told of things and shows them; nothing is decided by it, and the household is not checked by it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection

import attrs

from concorde_trio import events
from concorde_trio._sansio.session_terms import WaitingOn
from concorde_trio.demo.errands import Errand, Message
from concorde_trio.messages import CallOutcome, InputState
from concorde_trio.signals.views import WaitView


@attrs.define(kw_only=True)
class Row:
    """One errand. ``state``: queued, running, held (it has ended and keeps its locks), then done, failed, limited or
    cancelled. ``waiting``, ``heard``: what was said meanwhile and is queued, or was taken. Times are wall-clock seconds."""

    message: Message
    errand: Errand
    run_id: str | None = None
    session: str | None = None
    waiting: list[str] = attrs.field(factory=list)
    heard: list[str] = attrs.field(factory=list)
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
    row and some words about it whenever something happened. ``waiting_on`` says what a session waits for (SES-12a).
    """

    def __init__(
        self,
        why: Callable[[str], WaitView | None],
        holding: Collection[str],
        tell: Callable[[Row, str], None],
        waiting_on: Callable[[str], WaitingOn | None] = lambda session: None,
    ) -> None:
        self.rows: list[Row] = []
        self.posts: dict[str, tuple[float, float | None]] = {}
        self._why = why
        self._holding = holding
        self._tell = tell
        self._waiting_on = waiting_on
        self._meanwhile: dict[str, str] = {}
        self._at_work: dict[str, Row] = {}
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
        if isinstance(event, events.SessionEvent):
            row = self._at_work.get(event.session)
            if row is not None:
                self._take_of_session(row, event)
            return
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
                row.state, row.started, row.session = "running", event.at, event.session
                self._at_work[event.session] = row
                self._tell(row, "starts")
            case events.RunStopping():
                self._tell(self._of_run[event.run_id], "is told to stop")
            case events.RunEnded():
                row = self._of_run[event.run_id]
                row.state = row.outcome = event.state.value
                row.ended, row.error = event.at, event.error
                self._at_work.pop(event.session, None)
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

    def says(self, input_id: str, text: str) -> None:
        """Somebody is about to say this to a session, as this input."""
        self._meanwhile[input_id] = text

    def _take_of_session(self, row: Row, event: events.SessionEvent) -> None:
        match event:
            case events.CallStarted():
                self._tell(row, f"runs {event.tool}")
            case events.CallEnded() if event.outcome is not CallOutcome.OK:
                self._tell(row, f"{event.tool}: {event.outcome}")
            case events.InputAccepted(input_id=given) if given in self._meanwhile:
                row.waiting.append(given)
                holds = (event.waits_for or "nothing").partition(" (call ")[0]
                self._tell(
                    row, f'is told meanwhile: "{self._meanwhile[given]}" ({len(row.waiting)} queued, held by {holds})'
                )
            case events.InputSettled(input_id=given) if given in row.waiting:
                row.waiting.remove(given)
                row.heard += [given] if event.state is InputState.DELIVERED else []
            case events.ModelRequested() if row.heard:
                self._tell(row, f"gets {len(row.heard)} queued inputs as one message")
                row.heard.clear()

    def doing(self, row: Row) -> str:
        """What the session of a running errand waits for, in a few words."""
        waiting = None if row.session is None else self._waiting_on(row.session)
        queued = f", {len(row.waiting)} queued" if row.waiting else ""
        if waiting is None or waiting.on == "input":
            return f"running{queued}"
        what = (waiting.about or "").partition(" (call ")[0] if waiting.on == "tool" else f"the {waiting.on}"
        since = "" if waiting.since is None else f" {waiting.since:.1f} s"
        return f"running: {what}{since}{queued}"

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

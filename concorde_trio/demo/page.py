"""A picture of the demo beside the dashboard: the timeline of the queue as it is now, drawn anew with each look.

No prompt, no payload: whoever reaches the server may look at it (SRV-6).
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import attrs

from concorde_trio.demo.errands import MESSAGES, Message
from concorde_trio.demo.household import Household
from concorde_trio.records import Run
from concorde_trio.signals.store import RunFilter, SignalFilter

_MOST = 200


def add_timeline(household: Household, posts: Mapping[str, tuple[float, float | None]]) -> None:
    """Add ``/timeline.svg`` to the household's app. ``posts``: when each signal's post phase was."""
    app = household.gateway.app

    @app.get("/timeline.svg")
    async def timeline() -> tuple[str, int, dict[str, str]]:
        drawing = await draw_timeline(household, posts, end=time.time())
        return drawing, 200, {"content-type": "image/svg+xml"}


async def draw_timeline(
    household: Household, posts: Mapping[str, tuple[float, float | None]], *, end: float | None = None
) -> str:
    """The last runs of the household's queue as an SVG document, up to ``end`` (wall-clock seconds)."""
    # Half a second's import, of which nothing is needed before the end.
    from concorde_trio.simulate.timeline import rows_from_records, timeline_svg

    store = household.gateway.store
    signals = await store.signals(SignalFilter(limit=_MOST))
    runs = await store.runs(RunFilter(limit=_MOST))
    messages = {errand.number: message for message in MESSAGES for errand in message.errands}
    known = {run.id: _errand(run) for run in runs}
    named = {run.id: _name(run, known[run.id], messages[known[run.id]]) for run in runs if known[run.id] in messages}
    rows = [attrs.evolve(row, run=named.get(row.run, row.run)) for row in rows_from_records(signals, runs, posts=posts)]
    return timeline_svg(rows, title="A household takes turns", end=end)


def _errand(run: Run) -> int:
    number = run.context.get("errand") if isinstance(run.context, dict) else None
    return number if isinstance(number, int) else 0


def _name(run: Run, errand: int, message: Message) -> str:
    # A fresh session names nobody, and the table of the demo does.
    person = f"{message.person}: " if run.session == f"run_{run.id}" else ""
    return f"{errand} {person}{message.about}"

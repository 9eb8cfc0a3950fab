"""Scenarios on a virtual clock, through the real code: signals through the worker, one session through its event loop.

``simulate`` and ``simulate_file`` give a result as JSON; ``timeline_svg`` draws one, or a real queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import trio

from concorde_trio.errors import UsageError
from concorde_trio.simulate.reading import Scenario, parse_scenario, read_scenario
from concorde_trio.simulate.scenario import SignalScenario
from concorde_trio.simulate.session_script import SessionScenario
from concorde_trio.simulate.timeline import TimelineRow, rows_from_records, rows_from_result, timeline_svg

__all__ = [
    "SessionScenario",
    "SignalScenario",
    "TimelineRow",
    "parse_scenario",
    "read_scenario",
    "rows_from_records",
    "rows_from_result",
    "simulate",
    "simulate_file",
    "timeline_svg",
]


def simulate(scenario: Mapping[str, Any] | Scenario) -> dict[str, Any]:
    """Play a scenario. It takes no time, whatever the scenario's clock says; times in it and in the result are seconds.

    Of signals: ``{"runs": ..., "signals": ..., "start_order": [...]}``. ``runs``: by id, ``state``, ``queued``, ``started``,
    ``ended`` (None: never; a run that was never queued is not there). ``signals``: by id, ``state``, ``settled``, ``post``
    (None: not run; otherwise ``started``, and what it was told: ``failed``, ``limited``).

    Of a session: ``transcript`` (user: ``text``; assistant: ``text``, ``calls``, ids; tool: ``call``, ``outcome``, ``text``) and its
    ``roles``; ``turns``: ``started``, ``ended``, ``outcome``; ``expired``: ``kind``, ``epoch`` or ``call``, ``waited``, ``reason``, ``at``;
    ``dropped``: ``kind``, ``epoch`` or ``call``, ``at``; ``abandoned``: ``call``, ``since``, ``ended``; ``requests``; ``status``; ``locked``;
    ``rejected``: places of inputs that a full queue refused.

    InvalidScenario, naming the field, for what is no scenario. Not being async it cannot be called in a Trio program
    (UsageError).
    """
    parsed = scenario if isinstance(scenario, SignalScenario | SessionScenario) else parse_scenario(scenario)
    if trio.lowlevel.in_trio_run():
        raise UsageError(
            "simulate has a clock of its own, so it cannot run inside a Trio program; "
            "write: await trio.to_thread.run_sync(simulate, scenario)"
        )
    # Only who plays pays for trio.testing, which brings pytest with it where that is installed.
    if isinstance(parsed, SessionScenario):
        from concorde_trio.simulate.session_play import play_session

        return play_session(parsed)
    from concorde_trio.simulate.play import play_scenario

    return play_scenario(parsed)


def simulate_file(path: str | Path) -> dict[str, Any]:
    """The same with a JSON file; InvalidScenario, with line and column, if it holds no JSON."""
    return simulate(read_scenario(path))

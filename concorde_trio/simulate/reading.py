"""What kind of scenario a file holds: of signals, or of one session.

The law of this module: a scenario is one or the other, and what is neither, or both, is told so before anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from concorde_trio.errors import InvalidScenario
from concorde_trio.simulate.fields import load_json, refuse, show
from concorde_trio.simulate.scenario import SignalScenario, parse_signal_scenario
from concorde_trio.simulate.session_scenario import parse_session_scenario
from concorde_trio.simulate.session_script import SessionScenario

Scenario: TypeAlias = SignalScenario | SessionScenario

_OF_A_SESSION = ("inputs", "model")


def read_scenario(path: str | Path) -> Scenario:
    """The scenario in a JSON file; InvalidScenario, naming the place, if it is none or cannot be read."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidScenario(f"{path}: expected a scenario file: {error.strerror}", place=str(path)) from None
    except UnicodeDecodeError as error:
        message = f"{path}: expected UTF-8, but byte {error.start} is {error.object[error.start]:#04x}"
        raise InvalidScenario(message, place=str(path)) from None
    return parse_scenario(load_json(text))


def parse_scenario(value: object) -> Scenario:
    """The scenario in a JSON value, of signals or of a session; InvalidScenario, naming the field, if it is none."""
    if not isinstance(value, Mapping):
        refuse("", "an object (a scenario of signals, or of a session)", value)
    session = [field for field in _OF_A_SESSION if field in value]
    if "signals" in value:
        if session:
            raise InvalidScenario(
                f"{session[0]}: this has signals and {' and '.join(session)}; a scenario is of signals, or of a session, "
                "which has inputs and model: make two of it",
                place=session[0],
            )
        return parse_signal_scenario(value)
    if session:
        return parse_session_scenario(value)
    names = ", ".join(show(name) for name in list(value)[:5]) or "an empty object"
    raise InvalidScenario(
        'the scenario: expected "signals" (a scenario of signals), or "inputs" and "model" (a scenario of a session), '
        f"got neither: {names}",
        place="the scenario",
    )

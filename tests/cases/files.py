"""Where the case files are: the copies here, and whatever the folder beside the project has that differs from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BESIDE = HERE.parents[2] / "shared" / "cases"


def signal_cases() -> dict[str, dict[str, Any]]:
    """By name, every scenario of signals."""
    return _cases("signals")


def session_cases() -> dict[str, dict[str, Any]]:
    """By name, every scenario of a session."""
    return _cases("sessions")


def _cases(folder: str) -> dict[str, dict[str, Any]]:
    found = {path.stem: json.loads(path.read_text()) for path in sorted((HERE / folder).glob("*.json"))}
    for path in sorted((BESIDE / folder).glob("*.json")):
        scenario = json.loads(path.read_text())
        if found.get(path.stem) != scenario:
            found[f"shared {path.stem}"] = scenario
    return found


def named_by(expected: Any, result: Any) -> Any:
    """What ``expected`` names of ``result``: a field that it does not name is not compared, an item of a list is."""
    if isinstance(expected, dict) and isinstance(result, dict):
        return {key: named_by(value, result.get(key, "not there")) for key, value in expected.items()}
    if isinstance(expected, list) and isinstance(result, list) and len(expected) == len(result):
        return [named_by(*pair) for pair in zip(expected, result, strict=True)]
    return result

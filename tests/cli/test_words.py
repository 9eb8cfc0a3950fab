"""Why a run waits, as a person reads it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from concorde_trio.cli.words import standing, why_in_words


def _run(name: str, state: str, **more: Any) -> dict[str, Any]:
    fields = {"session": "ann", "resources": [], "since": time.time() - 5, "posting": False, "unended": 0}
    return {**fields, "run_id": f"{name}-1", "signal_id": name, "state": state, **more}


def _edge(space: str, name: str, blocker: dict[str, Any], position: int) -> dict[str, Any]:
    return {"space": space, "name": name, "blocker": blocker, "position": position}


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({}, "ended, and held for its signal's post phase since"),
        ({"posting": True, "unended": 1}, "ended, and held for its signal's post phase since"),
        ({"unended": 2}, "ended, and held for the other runs of its signal since"),
    ],
)
def test_a_held_run_is_held_for_the_runs_that_have_not_ended_and_then_for_post(more: dict[str, Any], what: str) -> None:
    """LCK-4: post holds, and begins when all runs have ended."""
    assert standing(_run("a", "held", **more)).startswith(what)


def test_locks_that_are_missed_for_the_same_run_are_one_sentence() -> None:
    """LCK-7: the position is the waiting run's own."""
    one, two = _run("a", "running"), _run("b", "waiting")
    edges = [
        _edge("session", "ann", two, 12),
        _edge("resource", "stock", one, 2),
        _edge("resource", "till", one, 2),
        _edge("resource", "van", one, 1),
        _edge("resource", "bench", one, 23),
    ]
    waits = {"run": _run("c", "waiting"), "edges": edges, "root": one}
    lines = list(why_in_words({"id": "c-1", "signal_id": "c", "state": "pending", "waits_for": waits}))
    assert [line.partition(" (running")[0] for line in lines[2:5]] == [
        '  waits for run a-1 of signal a on resource "stock" and resource "till"',
        '  waits for run a-1 of signal a on resource "van"',
        '  waits for run a-1 of signal a on resource "bench"',
    ]
    assert lines[1].startswith('  waits for run b-1 of signal b on session "ann" (waiting since ')
    assert [line.rpartition("; ")[2] for line in lines[1:5]] == [
        f"this run is {place} in line" for place in ("12th", "2nd", "1st", "23rd")
    ]
    assert len(lines) == 6

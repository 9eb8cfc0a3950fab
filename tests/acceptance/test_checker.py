"""The checker of the kill test, on evidence made up for it: each planted fault is found, and nothing else is."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.acceptance.killing.checker import Cut, Evidence, faults


def _run(session: str, *resources: str) -> dict[str, Any]:
    return {"session": session, "resources": list(resources), "ms": 10}


def _line(at: float, what: str, who: str | int) -> dict[str, Any]:
    return {"at": at, "what": what, "pid": 1, ("run" if what.startswith("run") else "signal"): who}


def _life(run: str, start: float, end: float) -> list[dict[str, Any]]:
    return [_line(start, "run-start", run), _line((start + end) / 2, "run-beat", run), _line(end, "run-end", run)]


PAYLOADS = {
    0: {"n": 0, "kind": "strict.post", "runs": [_run("ann", "w")]},
    1: {"n": 1, "kind": "strict", "runs": [_run("bob", "w"), _run("bob")]},
}
JOURNAL = [
    _line(0.0, "handle-start", 0),
    *_life("0.0", 1.0, 2.0),
    _line(2.1, "post-start", 0),
    _line(2.2, "post-end", 0),
    *_life("1.0", 3.0, 4.0),
    *_life("1.1", 5.0, 6.0),
]
GOOD = Evidence(JOURNAL, PAYLOADS, {0: "done", 1: "done"}, [])
NOTHING = frozenset[int]()


def test_nothing_is_found_where_all_is_well() -> None:
    """LCK-2: the checker does not cry wolf."""
    assert faults(GOOD) == []


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"settled": {0: "done", 1: "processing"}}, "SIG-4: signal 1 is processing"),
        ({"journal": [*JOURNAL, _line(9, "run-start", "1.1")]}, "REC-2: run 1.1 was started 2 times"),
        ({"journal": [*JOURNAL, _line(9, "handle-start", 0)]}, "CLM-6: handle-start of signal 0 happened 2 times"),
        ({"journal": [*JOURNAL, _line(2.15, "post-start", 0)]}, "CLM-6: post-start of signal 0 happened 2 times"),
        ({"journal": [*JOURNAL, _line(3.5, "run-beat", "0.0")]}, "LCK-2, REC-6: on resource w"),
        ({"journal": [*_life("1.0", 0.1, 0.2), *JOURNAL[:5], *JOURNAL[8:]]}, "LCK-2: on resource w, run (1, 0)"),
        ({"journal": [*JOURNAL[:5], _line(3.5, "post-end", 0), *JOURNAL[6:]]}, "LCK-4: on resource w"),
        ({"settled": {0: "failed", 1: "done"}}, "REC-2: signal 0 failed, but no kill"),
        ({"cuts": [Cut(NOTHING, frozenset({1}), NOTHING)]}, "REC-2: signal 1 was cut by a kill, and is done"),
        ({"cuts": [Cut(frozenset({0, 1}), NOTHING, NOTHING)]}, "CLM-6: kill 0 cut 2 handles"),
        ({"left": [4711]}, "REC-6: process 4711 was left"),
        ({"journal": JOURNAL[:-1]}, "REC-3: signal 1 is done, but its run 1.1 never came to its end"),
    ],
)
def test_each_planted_fault_is_found(changes: dict[str, Any], found: str) -> None:
    """REC-2, REC-3, REC-6, CLM-6, LCK-2, LCK-4: each by its rule."""
    assert any(text.startswith(found) for text in faults(attrs.evolve(GOOD, **changes)))

"""The whole chain of who a run waits for, to its root, of the rows of a snapshot (LCK-7).

The law: the chain goes from a run to the one before it at the first lock that it misses, as the root is defined; a link
names the other locks that it misses too. It ends where somebody does not wait, or where the rows end.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]


def chain_of(runs: Mapping[str, Row], run_id: str) -> list[Row]:
    """The rows of a run and of everybody on its chain, to the root; [] if the run is not there."""
    found: list[Row] = []
    seen: set[str] = set()
    here = runs.get(run_id)
    while here is not None and here["id"] not in seen:
        found.append(here)
        seen.add(here["id"])
        missed = here["waits_for"]
        here = runs.get(missed[0]["run_id"]) if missed else None
    return found


def shared_misses(run: Row) -> Iterator[tuple[str, int, list[Row]]]:
    """For each run that it waits for, and each place in line behind it: the id, the place, and the locks."""
    same: dict[tuple[str, int], list[Row]] = {}
    for missed in run["waits_for"]:
        same.setdefault((missed["run_id"], missed["position"]), []).append(missed)
    for (blocker, position), locks in same.items():
        yield blocker, position, locks


def view_of(run: Row, signals: Mapping[str, Row]) -> Row:
    """A run as it stands in the lock table: what ``standing`` in ``words`` tells of."""
    signal = signals.get(run["signal_id"], {})
    return {
        "run_id": run["id"],
        "signal_id": run["signal_id"],
        "session": run["session"],
        "resources": run["resources"],
        "state": run["state"],
        "since": run["since"],
        "posting": signal.get("phase") == "posting",
        "unended": signal.get("open", 0),
    }

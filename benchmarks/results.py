"""A result as a file: all values of all rounds, with the machine, the versions, the commit and the seed."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from benchmarks.figures import Figure, as_json, from_json
from benchmarks.running import Measured
from concorde_trio.errors import UsageError

FORMAT = 2
KEPT = Path(__file__).parent / "results" / "published.json"
"""The result that docs/performance.md shows."""


@attrs.frozen(kw_only=True)
class Result:
    """``at``: ISO 8601, UTC. ``suites``: by name, in the order measured."""

    at: str
    commit: str
    seed: int
    quick: bool
    machine: Mapping[str, str | int | float]
    suites: Mapping[str, Measured]

    def missed(self) -> list[tuple[str, Figure]]:
        """The figures that miss their goal, with their suite."""
        return [
            (suite, figure)
            for suite, measured in self.suites.items()
            for figure in measured.figures
            if figure.goal is not None and not figure.goal.met
        ]

    def busy(self) -> str | None:
        """Whether others were at work on the machine meanwhile, in a sentence; None if not so that it matters."""
        highest = max((measured.load[0] for measured in self.suites.values()), default=0.0)
        cores = self.machine.get("cores", 1)
        # What a suite begins with was left by the one before it, which kept a core and some of a second busy.
        if not isinstance(cores, int) or highest <= cores + 1:
            return None
        return f"Others were at work meanwhile: the load was up to {highest:.0f} on {cores} cores."

    def figures(self) -> dict[tuple[str, str], Figure]:
        """All by suite and name."""
        return {(suite, each.name): each for suite, measured in self.suites.items() for each in measured.figures}


def now() -> str:
    """This moment, as a result says it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def to_text(result: Result) -> str:
    """The JSON of a result."""
    found: dict[str, Any] = {
        "format": FORMAT,
        "at": result.at,
        "commit": result.commit,
        "seed": result.seed,
        "quick": result.quick,
        "machine": dict(result.machine),
        "suites": {
            name: {
                "seconds": round(measured.seconds, 1),
                "load": list(measured.load),
                "skipped": list(measured.skipped),
                "broke": measured.broke,
                "figures": [as_json(figure) for figure in measured.figures],
            }
            for name, measured in result.suites.items()
        },
    }
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def read(path: Path) -> Result:
    """A result that was written; UsageError if this is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["format"] != FORMAT:
            raise UsageError(
                f"{path} is a result of format {found['format']}, this reads format {FORMAT}; measure anew"
            )
        return Result(
            at=found["at"],
            commit=found["commit"],
            seed=found["seed"],
            quick=found["quick"],
            machine=found["machine"],
            suites={name: _suite(suite) for name, suite in found["suites"].items()},
        )
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is no result of these benchmarks ({type(error).__name__}: {error}); "
            "one is written by python -m benchmarks --json FILE"
        ) from error


def _suite(found: Mapping[str, Any]) -> Measured:
    before, after = found["load"]
    return Measured(
        figures=tuple(from_json(figure) for figure in found["figures"]),
        skipped=tuple(found["skipped"]),
        seconds=found["seconds"],
        load=(before, after),
        broke=found["broke"],
    )

"""Evidence in a file: what a fleet left that was broken on purpose, so that the checker can be tried on it in no time.

``python -m tests.fleet.recording FAULT`` runs such a fleet for a while and writes ``recorded/FAULT.json``. A run's signs of life
between its first and its last are left out.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from tests.fleet.checker import Audited, FleetEvidence, Row, faults

RECORDED = Path(__file__).with_name("recorded")


def write(evidence: FleetEvidence, path: Path) -> None:
    """One JSON document, of short rows."""
    document = {
        **attrs.asdict(evidence, recurse=False),
        "journal": _first_and_last(evidence.journal),
        "signals": {number: attrs.astuple(row) for number, row in evidence.signals.items()},
        "audit": [attrs.astuple(each) for each in evidence.audit],
        "over": sorted(evidence.over),
        "emitted": sorted(evidence.emitted),
    }
    path.write_text(json.dumps(document, separators=(",", ":")).replace("],[", "],\n[") + "\n", encoding="utf-8")


def read(path: Path) -> FleetEvidence:
    """What ``write`` wrote."""
    document = json.loads(path.read_text(encoding="utf-8"))
    document["signals"] = {int(number): Row(*row) for number, row in document["signals"].items()}
    document["audit"] = [Audited(*each) for each in document["audit"]]
    for name in ("payloads", "positions", "failed_runs"):
        document[name] = {int(number): value for number, value in document[name].items()}
    return FleetEvidence(**{**document, "over": frozenset(document["over"]), "emitted": frozenset(document["emitted"])})


def _first_and_last(journal: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    last = {line["run"]: place for place, line in enumerate(journal) if "run" in line}
    return [line for place, line in enumerate(journal) if line["what"] != "run-beat" or last[line["run"]] == place]


def record(broken: str, *, seed: int) -> FleetEvidence:
    """What a fleet leaves that is broken in this way."""
    from tests.fleet.driver import Driver
    from tests.stores.postgres_server import running_server

    with tempfile.TemporaryDirectory() as folder, running_server() as postgres:
        # Runs that outlive a lease, where no lease is heeded.
        lengths = (100, 6000) if broken == "no-fence" else (10, 100)
        driver = Driver(Path(folder), postgres, seed=seed, broken=broken, lengths=lengths)
        try:
            if broken == "order-by-time":
                driver.begin(backlog=30)
            else:
                driver.begin()
                driver.disturb(12, ["stop_executor", "stop_leader", "stall", "cut"])
            return driver.finish()
        finally:
            driver.close()


def main(broken: str) -> int:
    """Try seeds until something is found, and keep that."""
    for _ in range(5):
        evidence = record(broken, seed=random.randrange(2**32))
        found = faults(evidence)
        print(*found, sep="\n")
        if any(text.startswith(("LCK-2, REC-6", "SIG-3")) for text in found):
            RECORDED.mkdir(exist_ok=True)
            write(evidence, RECORDED / f"{broken}.json")
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

"""``python -m benchmarks [SUITE ...] [--json FILE] [--quick] [--check]``: measure, and say which goals are met."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks import latency, lock_table, machine, server, session_lock, sessions, worker
from benchmarks.figures import Figure, Suite, lines

SUITES: dict[str, Suite] = {
    "lock-table": lock_table.suite,
    "session-lock": session_lock.suite,
    "sessions": sessions.suite,
    "repeatable": worker.repeatable,
    "strict": worker.strict,
    "runs": worker.runs,
    "release": latency.release,
    "wake": latency.wake,
    "server": server.suite,
}


def main() -> int:
    """Run the suites; 0, and with ``--check`` 1 if a goal was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition(": ")[2])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)} (all of them)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file too; - for stdout")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: seconds, and figures that vary more")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a goal was missed")
    asked = parser.parse_args()
    if unknown := [name for name in asked.suites if name not in SUITES]:
        parser.error(f"no such suite: {', '.join(unknown)}; there are: {', '.join(SUITES)}")
    as_text = asked.json != Path("-")
    if as_text:
        print(machine.sentence())
    found: dict[str, list[Figure]] = {}
    for name in asked.suites or SUITES:
        begun = time.monotonic()
        found[name] = SUITES[name](asked.quick)
        print(f"{name}: measured in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        if as_text:
            print("\n".join(["", f"{name} (load {machine.load():.1f})", *lines(found[name])]), flush=True)
    if asked.json is not None:
        suites = {name: [figure.as_json() for figure in figures] for name, figures in found.items()}
        text = json.dumps({"machine": machine.describe(), "quick": asked.quick, "suites": suites}, indent=2)
        if as_text:
            asked.json.write_text(text + "\n", encoding="utf-8")
        else:
            print(text)
    missed = [figure.name for figures in found.values() for figure in figures if figure.goal and not figure.goal.met]
    if missed:
        print(f"missed: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed and asked.check else 0


if __name__ == "__main__":
    sys.exit(main())

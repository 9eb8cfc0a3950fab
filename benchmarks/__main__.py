"""``python -m benchmarks``: measure, put each figure beside its reference, and say which goals are met.

Exit status: 0; 1 with --check if a goal was missed that holds a figure to something beside it; 2 if a suite broke or
the words of the command are wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import comparison, machine, page, results, table
from benchmarks.catalog import SUITES
from benchmarks.peers.catalog import PEERS
from benchmarks.progress import Bars
from benchmarks.results import Result
from benchmarks.running import Asked, run
from concorde_trio.errors import UsageError

EXAMPLES = """\
examples:
  python -m benchmarks --list                         what can be measured
  python -m benchmarks repeatable strict --quick      two suites, few rounds
  python -m benchmarks --json now.json                everything, kept
  python -m benchmarks --against now.json             everything, beside what was kept
  python -m benchmarks repeatable --profile where     and by function, in where/repeatable.txt
  python -m benchmarks peers                          this beside other queues; installs them into .venv-peers
  python -m benchmarks huey procrastinate             the same with these two only
  python -m benchmarks --publish                      everything, for docs/performance.md (make bench)
"""


def parser() -> argparse.ArgumentParser:
    """The words of the command."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure. Each figure is the median of rounds that took turns with what stands beside it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("names", nargs="*", metavar="SUITE", help="suites, or peers (see --list); all of them if none")
    made.add_argument("--list", action="store_true", help="list suites and peers")
    made.add_argument(
        "--quick", action="store_true", help="few rounds: figures that vary more, in a fraction of the time"
    )
    made.add_argument("--seed", type=int, default=1, metavar="N", help="of all random numbers (1)")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the result to this file too; - for stdout only")
    made.add_argument("--against", type=Path, metavar="FILE", help="compare with a result that was kept")
    made.add_argument("--check", action="store_true", help="exit with 1 if a goal was missed")
    made.add_argument("--plots", type=Path, metavar="FOLDER", help="draw the charts as SVG files into this folder")
    made.add_argument(
        "--profile", type=Path, metavar="FOLDER", help="where the time goes, a file a suite; no figures then"
    )
    made.add_argument("--folder", type=Path, help="make the databases here: the disk that is measured")
    made.add_argument(
        "--publish",
        action="store_true",
        help=f"keep the result in {_short(results.KEPT)}, and its table and charts in docs",
    )
    return made


def main(words: Sequence[str] | None = None) -> int:
    """Do what the words say; the exit status."""
    parse = parser()
    asked = parse.parse_args(words)
    if asked.list:
        for name, entry in SUITES.items():
            print(f"{name:14} {entry.about}")
        print("\npeers:")
        for name, peer in PEERS.items():
            print(f"{name:24} {peer.about}")
        return 0
    suites, only = _chosen(parse, asked.names)
    if asked.publish and (asked.names or asked.quick or asked.profile):
        parse.error("--publish measures everything, in full: give it no suites, no --quick and no --profile")
    if asked.folder is not None and not asked.folder.is_dir():
        parse.error(f"--folder {asked.folder} is no folder; make it first")
    for file in (asked.json, asked.against):
        if file is not None and file != Path("-") and not file.absolute().parent.is_dir():
            parse.error(f"there is no folder {file.parent}; make it first")
    try:
        earlier = None if asked.against is None else results.read(asked.against)
    except UsageError as error:
        parse.error(str(error))
    as_text = asked.json != Path("-")
    about = machine.describe(asked.folder)
    to = table.console()
    if as_text:
        to.print(machine.sentence(about), soft_wrap=True)
    try:
        with Bars(len(suites)) as bars:
            how = Asked(quick=asked.quick, seed=asked.seed, folder=asked.folder, only=only, profile=asked.profile)
            measured = run(suites, how, bars)
    except KeyboardInterrupt:
        print("interrupted; nothing was kept", file=sys.stderr)
        return 130
    result = Result(
        at=results.now(), commit=machine.commit(), seed=asked.seed, quick=asked.quick, machine=about, suites=measured
    )
    if not as_text:
        print(results.to_text(result), end="")
    elif asked.profile is not None:
        to.print(f"profiles: {', '.join(str(asked.profile / f'{suite}.txt') for suite in suites)}", soft_wrap=True)
    else:
        _show(to, result, earlier)
    _keep(asked, result)
    return _verdict(result, check=asked.check, profiled=asked.profile is not None)


def _chosen(parse: argparse.ArgumentParser, names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The suites, in the order of the words, and the peers that were named."""
    unknown = [name for name in names if name not in SUITES and name not in PEERS]
    if unknown:
        parse.error(f"no such suite or peer: {', '.join(unknown)}; there are: {', '.join([*SUITES, *PEERS])}")
    only = tuple(name for name in names if name in PEERS)
    chosen = list(dict.fromkeys("peers" if name in PEERS else name for name in names)) or list(SUITES)
    return chosen, only


def _show(to: Console, result: Result, earlier: Result | None) -> None:
    changes = None if earlier is None else comparison.changes(result, earlier)
    for suite, measured in result.suites.items():
        table.show(to, suite, measured, changes)
    if (busy := result.busy()) is not None:
        to.print(f"[yellow]{busy}[/]", soft_wrap=True)
    if earlier is not None:
        to.print(f"then: {earlier.commit}, {earlier.at}; now: {result.commit}, {result.at}", soft_wrap=True)
        for sentence in comparison.caution(result, earlier):
            to.print(f"[yellow]{sentence}[/]", soft_wrap=True)


def _keep(asked: argparse.Namespace, result: Result) -> None:
    if asked.json is not None and asked.json != Path("-"):
        asked.json.write_text(results.to_text(result), encoding="utf-8")
    if asked.plots is not None:
        page.draw(result, asked.plots)
    if asked.publish:
        if any(measured.broke is not None for measured in result.suites.values()):
            print("a suite broke: nothing was published", file=sys.stderr)
            return
        results.KEPT.parent.mkdir(exist_ok=True)
        results.KEPT.write_text(results.to_text(result), encoding="utf-8")
        page.publish(results.read(results.KEPT))


def _verdict(result: Result, *, check: bool, profiled: bool) -> int:
    missed = [] if profiled else result.missed()  # a profile slows down what it looks at
    for suite, figure in missed:
        assert figure.goal is not None
        print(f"missed: {suite}: {figure.name}: {table.goal(figure.goal)}", file=sys.stderr)
    broke = [name for name, measured in result.suites.items() if measured.broke is not None]
    for name in broke:
        print(f"broke: {name}", file=sys.stderr)
    if broke:
        return 2
    return 1 if check and any(figure.goal is not None and not figure.goal.absolute for _, figure in missed) else 0


def _short(path: Path) -> str:
    return str(path.relative_to(machine.ROOT))


if __name__ == "__main__":
    sys.exit(main())
